"""The section `sweep`: which values of the scenario are varied, and how they go together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Discriminator, Field, Tag

from cprsim.errors import ParameterError, one_line
from cprsim.scenario.quantities import Model
from cprsim.scenario.yaml_text import Plain, scalar
from cprsim.units import plain_number, split_quantity, unit_factor

EXAMPLE = "write LOW:HIGH:logN, LOW:HIGH:linN or a list, for example 0.25h:48h:log40 or 14 h,20 h"
MOST_VALUES = 10_000
MOST_COUNTED = 10**15  # by a range of whole numbers: floats are exact as far
DIGITS = 6  # of the values between the ends: they are read by people
_RANGE = re.compile(r"(?P<low>[^:]+):(?P<high>[^:]+):\s*(?P<kind>lin|log)\s*(?P<n>\d{1,6})\s*")


@dataclass(frozen=True, slots=True)
class Values:
    """What one key of a scenario takes on along an axis.

    Parameters
    ----------
    written : as a scenario would say them, in the order of the axis
    numbers : the same as numbers in `unit`, for tables and figures; None where they are no numbers
    unit : the one in which the user wrote the first of them; empty for plain numbers and words
    logarithmic : whether neighbours differ by a factor
    """

    written: tuple[Plain, ...]
    numbers: tuple[float, ...] | None
    unit: str
    logarithmic: bool = False


def values_along(written: str | Sequence[Plain]) -> Values:
    """The values that a text such as ``30 s:10 min:log12`` or a list stands for.

    Ends without a fraction make whole numbers: ``4:64:log5`` counts nodes, ``0.01:0.2:log5`` is a
    share. Raises ParameterError, whose message goes on where the text found ends.
    """
    if not isinstance(written, str):
        return _listed(list(written))
    if match := _RANGE.fullmatch(written):
        return _between(match["low"], match["high"], match["kind"] == "log", int(match["n"]))
    if ":" in written:
        raise ParameterError(f"is no range: {EXAMPLE}")
    return _listed([scalar(entry.strip()) for entry in written.split(",")])


def _listed(written: list[Any]) -> Values:
    """A list, in the order in which it stands."""
    if any(isinstance(value, list | dict) for value in written):
        raise ParameterError("holds a list or a section: an axis changes one value")
    if not written or any(value is None or value == "" for value in written):
        raise ParameterError(f"has an empty value: {EXAMPLE}")
    if len(written) > MOST_VALUES:
        raise ParameterError(f"has {len(written)} values; at most {MOST_VALUES} are possible")
    twice = next((value for value, n in Counter(written).items() if n > 1), None)
    if twice is not None:
        raise ParameterError(f"has `{one_line(str(twice))}` twice")
    try:  # numbers in the unit of the first one
        parts = [split_quantity(str(value)) for value in written]
        unit = parts[0][1]
        numbers = tuple(float(number * unit_factor(own, unit)) for number, own in parts)
    except ParameterError:  # they are words, or do not go together
        return Values(tuple(written), None, "")
    return Values(tuple(written), numbers, unit)


def _between(low: str, high: str, logarithmic: bool, n: int) -> Values:
    (first, unit), (last, own) = split_quantity(low.strip()), split_quantity(high.strip())
    last *= unit_factor(own, unit)
    low_number, high_number = float(first), float(last)
    if not 2 <= n <= MOST_VALUES:
        raise ParameterError(f"has {n} values; a range has 2 to {MOST_VALUES}")
    if logarithmic and min(first, last) <= 0:
        raise ParameterError("can't go from or to 0 or below by factors: write linN for logN")
    if first == last:
        raise ParameterError("begins where it ends")
    spaced = np.geomspace if logarithmic else np.linspace
    inner = [_rounded(value) for value in spaced(low_number, high_number, n)[1:-1]]
    numbers = [_exact(first), *inner, _exact(last)]
    if not unit and all(_is_whole(end) for end in (low, high)):
        if max(abs(first), abs(last)) > MOST_COUNTED:
            raise ParameterError(f"counts beyond {MOST_COUNTED:,}")
        numbers = list(dict.fromkeys(number.quantize(Decimal(1)) for number in numbers))
        whole = [int(number) for number in numbers]
        return Values(tuple(whole), tuple(map(float, whole)), "", logarithmic)
    written: list[Plain] = [
        f"{plain_number(number)} {unit}" if unit else float(number) for number in numbers
    ]
    return Values(tuple(written), tuple(map(float, numbers)), unit, logarithmic)


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text.strip()) is not None


def _rounded(value: float) -> Decimal:
    return Decimal(f"{value:.{DIGITS}g}")


def _exact(number: Fraction) -> Decimal:
    return Decimal(f"{Decimal(number.numerator) / Decimal(number.denominator):.15g}")


MOST_POINTS = 100_000
MOST_AXES = 8
MOST_IN_A_KEY = 200  # characters


def _readable(written: Any) -> Any:
    values_along(written)
    return written


def _is_dotted(key: str) -> bool:
    """Whether it can be a key such as `costs.save`; names of strategies hold all kinds of signs."""
    begins_well = key[:1].isascii() and key[:1].isalnum()
    is_one_word = not any(sign.isspace() or sign == "=" for sign in key)
    return len(key) <= MOST_IN_A_KEY and begins_well and is_one_word and "." in key[1:-1]


def _written_as(written: Any) -> str:
    return "as:list" if isinstance(written, list | tuple) else "as:text"


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
        return tuple(Axis(key, values_along(written)) for key, written in self.over.items())

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
