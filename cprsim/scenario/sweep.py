"""The section `sweep`: which values of the scenario are varied, and how they go together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from cprsim.errors import ParameterError
from cprsim.scenario.quantities import Model, predicate
from cprsim.scenario.ranges import Values, values_along

MOST_POINTS = 100_000
MOST_AXES = 8
MOST_IN_A_KEY = 200  # characters


def _readable(said: Any) -> Any:
    try:
        values_along(said)
    except ParameterError as error:
        raise predicate(str(error)) from None
    return said


def _is_dotted(key: str) -> bool:
    """Whether it can be a key such as `costs.save`; names of strategies hold all kinds of signs."""
    begins_well = key[:1].isascii() and key[:1].isalnum()
    is_one_word = not any(sign.isspace() or sign == "=" for sign in key)
    return len(key) <= MOST_IN_A_KEY and begins_well and is_one_word and "." in key[1:-1]


def _written_as(said: Any) -> str:
    return "as:list" if isinstance(said, list | tuple) else "as:text"


Range = Annotated[str, Field(strict=True), AfterValidator(_readable)]
Listed = Annotated[
    tuple[bool | int | float | str, ...], Field(min_length=1), AfterValidator(_readable)
]
Written = Annotated[
    Annotated[Range, Tag("as:text")] | Annotated[Listed, Tag("as:list")],
    Discriminator(_written_as),
]


@dataclass(frozen=True, slots=True)
class Axis:
    """One key of the scenario and what it takes on, in order."""

    key: str
    values: Values

    def __len__(self) -> int:
        return len(self.values.written)


class Sweep(Model):
    """What `cprsim sweep` varies."""

    mode: Literal["grid", "one-at-a-time"] = Field(
        "grid",
        description="grid: every combination of the values; one-at-a-time: each axis alone, the "
        "others as the scenario says.",
    )
    over: dict[str, Written] = Field(
        min_length=1,
        max_length=MOST_AXES,
        description="Keys and their values: LOW:HIGH:logN, LOW:HIGH:linN or a list. "
        "`recovery.interval` stands for that of every strategy that saves, `recovery.target_pls` "
        "for that of every one that takes a target.",
        examples=[{"costs.save": "30 s:10 min:log12", "failures.mtbf": ["14 h", "28 h"]}],
    )

    def axes(self) -> tuple[Axis, ...]:
        """The axes in the order of the file; the last one varies fastest in a grid."""
        return tuple(Axis(key, values_along(said)) for key, said in self.over.items())

    @property
    def n_points(self) -> int:
        """How many points the axes make, the unvaried one of one-at-a-time included."""
        lengths = [len(axis) for axis in self.axes()]
        return prod(lengths) if self.mode == "grid" else 1 + sum(lengths)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Keys are dotted, points can be counted."""
        for key in self.over:
            if not _is_dotted(key) or key.startswith(("sweep.", "kernel.")):
                yield f"over.{key}", "is no key that can be varied: write for example costs.save"
        if self.n_points > MOST_POINTS:
            yield "over", f"makes {self.n_points:,} points; at most {MOST_POINTS:,} are possible"
