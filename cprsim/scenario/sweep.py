"""The section `sweep`: which values of the scenario are varied, and how they go together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import prod
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator

from cprsim.errors import ParameterError, one_line
from cprsim.scenario.quantities import Model
from cprsim.scenario.yaml_text import Scalar, scalar
from cprsim.units import plain_number, split_quantity, unit_factor

EXAMPLE = "write LOW:HIGH:logN, LOW:HIGH:linN or a list, for example 0.25h:48h:log40 or 14 h,20 h"
MOST_POINTS = 100_000
MOST_AXES = 8
_RANGE = re.compile(r"(?P<low>[^:]+):(?P<high>[^:]+):\s*(?P<kind>lin|log)\s*(?P<n>\d{1,6})\s*")
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")


@dataclass(frozen=True, slots=True)
class Values:
    """What one key of a scenario takes on along an axis.

    Parameters
    ----------
    written : as a scenario would say them, in the order of the axis
    numbers : the same as numbers in `unit`, for tables and figures; None where they are no numbers
    unit : the one in which the user wrote the first of them; empty for plain numbers and words
    logarithmic : whether neighbours differ by a factor
    said : the range or list that the user wrote
    """

    written: tuple[Scalar, ...]
    numbers: tuple[float, ...] | None
    unit: str
    logarithmic: bool = False
    said: str | Sequence[Scalar] = field(default=(), compare=False)

    def __len__(self) -> int:
        return len(self.written)

    @property
    def listed(self) -> tuple[Scalar, ...]:
        """The values as tables have them: numbers in `unit`, or words."""
        return self.written if self.numbers is None else self.numbers

    def column(self, key: str) -> str:
        """Name of a key in tables, with the unit of its numbers: ``failures.mtbf_h``."""
        unit = self.unit.lower().replace("%", "percent").replace("/", "_per_")
        return f"{key}_{unit}" if unit else key


def values_along(said: str | Sequence[Scalar]) -> Values:
    """The values that a text such as ``30 s:10 min:log12`` or a list stands for.

    Ends without a fraction make whole numbers: ``4:64:log5`` counts nodes, ``0.01:0.2:log5`` is a
    share. Raises ParameterError, whose message goes on where the text found ends.
    """
    if not isinstance(said, str):
        return _listed(said, list(said))
    if match := _RANGE.fullmatch(said):
        return _between(said, match["low"], match["high"], match["kind"] == "log", int(match["n"]))
    if ":" in said:
        raise ParameterError(f"is no range: {EXAMPLE}")
    return _listed(said, [scalar(entry.strip()) for entry in said.split(",")])


def _listed(said: str | Sequence[Scalar], written: list[Scalar]) -> Values:
    if any(isinstance(value, list | dict) for value in written):
        raise ParameterError("holds a list or a section: an axis changes one value")
    if not written or any(value in (None, "") for value in written):
        raise ParameterError(f"has an empty value: {EXAMPLE}")
    value, n = Counter(map(str, written)).most_common(1)[0]
    if n > 1:
        raise ParameterError(f"has `{one_line(value)}` twice")
    try:  # numbers in the unit of the first one
        parts = [split_quantity(str(value)) for value in written]
        unit = parts[0][1]
        numbers = tuple(float(number * unit_factor(own, unit)) for number, own in parts)
    except ParameterError:  # they are words, or do not go together
        return Values(tuple(written), None, "", said=said)
    return Values(tuple(written), numbers, unit, said=said)


def _between(said: str, low: str, high: str, logarithmic: bool, n: int) -> Values:
    (first, unit), (last, own) = split_quantity(low.strip()), split_quantity(high.strip())
    ends = float(first), float(last * unit_factor(own, unit))
    if n < 2:
        raise ParameterError("has one value; a range has 2 or more")
    if logarithmic and min(ends) <= 0:
        raise ParameterError("can't go from or to 0 or below by factors: write linN for logN")
    if ends[0] == ends[1]:
        raise ParameterError("begins where it ends")
    spaced = np.geomspace if logarithmic else np.linspace
    inner = [f"{value:.6g}" for value in spaced(*ends, n)[1:-1]]  # they are read by people
    texts = [f"{ends[0]:.15g}", *inner, f"{ends[1]:.15g}"]
    written: Sequence[Scalar] = [float(text) for text in texts]
    if unit:
        written = [f"{plain_number(Decimal(text))} {unit}" for text in texts]
    elif _WHOLE.fullmatch(low) and _WHOLE.fullmatch(high):
        written = list(dict.fromkeys(round(float(text)) for text in texts))
        texts = [str(number) for number in written]
    return Values(tuple(written), tuple(map(float, texts)), unit, logarithmic, said)


def _key(key: str) -> str:
    is_one_word = not any(sign.isspace() or sign == "=" for sign in key)
    if not is_one_word or "." not in key or key.startswith(("sweep.", "kernel.")):
        raise ParameterError("is no key that can be varied: write for example costs.save")
    return key


def _read(said: object) -> Values:
    if not isinstance(said, Sequence):
        raise ParameterError(f"is no range: {EXAMPLE}")
    return values_along(said)


AxisKey = Annotated[str, AfterValidator(_key)]
AxisValues = Annotated[
    Values,
    PlainValidator(_read, json_schema_input_type=str | tuple[bool | int | float | str, ...]),
    PlainSerializer(lambda values: values.said),
]


class Sweep(Model):
    """What `cprsim sweep` varies."""

    mode: Literal["grid", "one-at-a-time"] = Field(
        "grid",
        description="grid: every combination of the values; one-at-a-time: each axis alone, the "
        "others as the scenario says.",
    )
    over: dict[AxisKey, AxisValues] = Field(
        min_length=1,
        max_length=MOST_AXES,
        description="Keys and their values: LOW:HIGH:logN, LOW:HIGH:linN or a list. "
        "`recovery.interval` stands for that of every strategy that saves, `recovery.target_pls` "
        "for that of every one that takes a target.",
        examples=[{"costs.save": "30 s:10 min:log12", "failures.mtbf": ["14 h", "28 h"]}],
    )

    @property
    def n_points(self) -> int:
        """How many points the axes make, the unvaried one of one-at-a-time included."""
        lengths = [len(values) for values in self.over.values()]
        return prod(lengths) if self.mode == "grid" else 1 + sum(lengths)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Points can be counted."""
        if self.n_points > MOST_POINTS:
            yield "over", f"makes {self.n_points:,} points; at most {MOST_POINTS:,} are possible"
