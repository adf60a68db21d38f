"""What the fields of the schema are made of: quantities with units, bounded numbers, sections.

Every message is a predicate ("has no unit: write ..."); problems.py puts the value found before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from cprsim.records import MAX_NODES
from cprsim.units import BANDWIDTH, SIZE, TIME, Quantity

CHECKS = "checks"  # type of errors that carry several (key, message) of a section
UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")  # types of errors: model, record
TAG = "as:"  # begins the names of a union's members in pydantic's locations


class Model(BaseModel):
    """A section of the scenario: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def problems(self) -> Iterator[tuple[str, str]]:
        """(dotted key below this section, message) of whatever its fields say together."""
        return iter(())

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        if found := tuple(self.problems()):
            raise PydanticCustomError(
                CHECKS, "{summary}", {"problems": found, "summary": str(found)}
            )
        return self


def choices(found: object, known: tuple[str, ...]) -> str:
    """Tell what there is to choose from, the nearest first."""
    near = get_close_matches(str(found), known, n=1)
    return (f"did you mean `{near[0]}`? " if near else "") + f"Known: {', '.join(known)}"


PositiveTime = Annotated[float, Quantity(TIME, "1 us", "10000 h", "5.9 h")]
Mtbf = Annotated[float, Quantity(TIME, "1 s", "100000000 h", "28 h")]
UsefulTime = Annotated[float, Quantity(TIME, "1 s", "100000 h", "50 h")]
ShardSize = Annotated[float, Quantity(SIZE, "1 B", "1000 PB", "50 GB")]
Bandwidth = Annotated[float, Quantity(BANDWIDTH, "1 kbit/s", "1 EB/s", "25 Gbit/s")]
NodeCount = Annotated[int, Field(strict=True, ge=0, le=MAX_NODES)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=MAX_NODES)]
