"""What the fields of the schema are made of: quantities with units, bounded numbers, sections.

Every message is a predicate ("has no unit: write ..."); problems.py puts the value found before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from cprsim.errors import ParameterError
from cprsim.units import BANDWIDTH, SIZE, TIME, Dimension

MAX_NODES = 100_000
CHECKS = "checks"  # type of errors that carry several (key, message) of a section


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


@dataclass(frozen=True, slots=True)
class Quantity:
    """Annotates a float that users write with a unit; it lies between `low` and `high`."""

    dimension: Dimension
    low: str
    high: str
    example: str = ""
    otherwise: str = ""  # what may stand there instead of a quantity

    def read(self, value: object) -> float:
        """The value in the unit inside. Raises ParameterError; pydantic collects such errors."""
        example = (self.example or self.dimension.hint) + self.otherwise
        if isinstance(value, float) and not isfinite(value):
            raise ParameterError(f"is not a finite number: write for example {example}")
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise ParameterError(f"is a bare number: write its unit, for example {example}")
        if not isinstance(value, str):
            raise ParameterError(f"is not {self.dimension.what}: write for example {example}")
        inside = self.dimension.parse(value, example)
        low, high = self.dimension.parse(self.low), self.dimension.parse(self.high)
        if not low <= inside <= high:
            raise ParameterError(f"is out of range: it must lie between {self.low} and {self.high}")
        return inside

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self.read,
            serialization=core_schema.plain_serializer_function_ser_schema(self.dimension.format),
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        examples = [self.example] if self.example else list(self.dimension.examples)
        return {"type": "string", "pattern": self.dimension.pattern, "examples": examples}


PositiveTime = Annotated[float, Quantity(TIME, "1 us", "10000 h", "5.9 h")]
Mtbf = Annotated[float, Quantity(TIME, "1 s", "100000000 h", "28 h")]
UsefulTime = Annotated[float, Quantity(TIME, "1 s", "100000 h", "50 h")]
ShardSize = Annotated[float, Quantity(SIZE, "1 B", "1000 PB", "50 GB")]
Bandwidth = Annotated[float, Quantity(BANDWIDTH, "1 kbit/s", "1 EB/s", "25 Gbit/s")]
NodeCount = Annotated[int, Field(strict=True, ge=0, le=MAX_NODES)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=MAX_NODES)]
