"""Quantities as users write them ("28 h", "25 Gbit/s"), and the internal unit of each.

Factors are exact, and a value is rounded once, at the end: what `Dimension.format` writes is read
as the same float.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from cprsim.errors import MissingKeyError, ParameterError

MAX_TEXT = 80  # characters; no quantity is longer
LARGEST_NUMBER = 1e250  # number; in any unit it is a finite float
NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
POSITIVE = NUMBER.removeprefix("[+-]?")
IN_STEPS = rf"^\s*({POSITIVE})\s*steps?\s*$"  # of training, an interval
_UNIT = r"[A-Za-zµμ%$€£¥]{1,20}(?:\s*/\s*[A-Za-zµμ]{1,20})?"
_QUANTITY = re.compile(rf"\s*(?P<number>{NUMBER})(?:\s*(?P<unit>{_UNIT}))?\s*")


def _by_name(factors: Mapping[str, Fraction | int]) -> dict[str, Fraction]:
    """Factors by name, from a dictionary whose keys list several names."""
    return {name: Fraction(factor) for names, factor in factors.items() for name in names.split()}


SECOND = Fraction(1, 3600)
HOURS_OF = _by_name({
    "ns": SECOND / 10**9,
    "us µs μs": SECOND / 10**6,
    "ms": SECOND / 1000,
    "s sec secs second seconds": SECOND,
    "min mins minute minutes": Fraction(1, 60),
    "h hr hrs hour hours": 1,
    "d day days": 24,
    "week weeks": 168,
    "month months": Fraction(1461, 2),
    "a yr yrs year years": 8766,
})  # fmt: skip
BYTES_OF = _by_name({
    "B byte bytes": 1,
    "bit bits": Fraction(1, 8),
    **{f"{prefix}B": 1000**n for n, prefix in enumerate("kMGTPE", 1)},
    **{f"{prefix}iB": 1024**n for n, prefix in enumerate("KMGTPE", 1)},
    **{f"{prefix}bit": Fraction(1000**n, 8) for n, prefix in enumerate("kMGTPE", 1)},
})  # fmt: skip


def _per_time(factors: Mapping[str, Fraction]) -> dict[str, Fraction]:
    return {f"{unit}/{h}": factors[unit] / HOURS_OF[h] for unit in factors for h in HOURS_OF}


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """A kind of quantity: the units that users may write, and the internal unit."""

    name: str  # with its article, as errors say it
    factors: dict[str, Fraction]  # what each unit is in the unit inside
    examples: tuple[str, ...]
    written: str  # units that `format` may choose, the preferred one first

    @property
    def pattern(self) -> str:
        """Regular expression (ECMA 262) of the texts that editors should accept."""
        parts = zip(*(unit.split("/") for unit in self.factors), strict=True)
        unit = r"\s*/\s*".join(f"({'|'.join(dict.fromkeys(part))})" for part in parts)
        return rf"^\s*{POSITIVE}\s*{unit}\s*$"

    def parse(self, text: str, hint: str = "") -> float:
        """The quantity in the internal unit; `hint` replaces the examples in errors.

        Raises ParameterError where `text` is no number with a fitting unit, or not finite.
        """
        try:
            number, unit = split_quantity(text, f"is not {self.name}")
            if not unit:
                raise ParameterError("has no unit")
            if unit not in self.factors:
                raise ParameterError(f"has `{unit}`, which is no unit of {self.name}")
            return float(number * self.factors[unit])
        except ParameterError as error:
            raise ParameterError(f"{error}: write for example {hint or self.hint}") from None

    def format(self, value: float) -> str:
        """The shortest number in one of the `written` units that is read as this very float."""
        return _shortest(self, value)

    @property
    def hint(self) -> str:
        """Examples of valid quantities."""
        return " or ".join(self.examples)


@lru_cache(maxsize=10_000)  # the points of a sweep say the same few values again and again
def _shortest(dimension: Dimension, value: float) -> str:
    texts = []
    first, *units = dimension.written.split()
    for unit in (first, *units):
        exact = Fraction(value) / dimension.factors[unit]
        if unit != first and not Fraction(1, 10) <= exact < 10**6:
            continue  # readable numbers only; the first unit can always say it
        number = Decimal(exact.numerator) / exact.denominator
        for digits in (4, 8, 12, 15, 16, 17, 20):
            text = plain_number(Decimal(f"{number:.{digits}g}"))
            if float(Fraction(text) * dimension.factors[unit]) == value:
                texts.append(f"{text} {unit}")
                break
    return min(texts, key=lambda text: text.index(" "))


TIME = Dimension(
    "a time",
    HOURS_OF,
    examples=("28 h", "94 s", "5.62 min"),
    written="h min s d",
)
SIZE = Dimension(
    "a size in bytes",
    BYTES_OF,
    examples=("2.16 GB", "50 GB"),
    written="B GB MB kB TB GiB MiB KiB TiB",
)
BANDWIDTH = Dimension(
    "a bandwidth",
    _per_time(BYTES_OF),
    examples=("25 Gbit/s", "3.1 GB/s"),
    written="B/h Gbit/s GB/s Mbit/s MB/s",
)
THROUGHPUT = Dimension(
    "a throughput",
    _per_time(_by_name({"sample samples": 1})),
    examples=("20000 samples/s",),
    written="samples/h samples/s",
)
HAZARD = Dimension(
    "a hazard",
    _per_time(_by_name({"failure failures": 1})),
    examples=("0.02 failures/h", "12 failures/year"),
    written="failures/h failures/d failures/min",
)
SHARE = Dimension("a share in per cent", {"%": Fraction(1, 100)}, ("0.5 %",), written="%")
DIMENSIONS = (TIME, SIZE, BANDWIDTH, THROUGHPUT, HAZARD, SHARE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """Annotates a float that users write with a unit; it lies between `low` and `high`."""

    dimension: Dimension
    low: str
    high: str
    example: str = ""
    otherwise: str = ""  # what may stand there instead of a quantity
    in_steps: bool = False  # whether `10 steps` may, which become a time by `job.step`
    or_number: bool = False  # whether a number may, in the internal unit

    def read(self, value: object) -> float:
        """The value in the internal unit. Raises ParameterError."""
        example = (self.example or self.dimension.hint) + self.otherwise
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not self.or_number:
                raise ParameterError(f"is a bare number: write its unit, for example {example}")
            inside = float(value)
        elif not isinstance(value, str):
            raise ParameterError(f"is not {self.dimension.name}: write for example {example}")
        elif self.in_steps and re.fullmatch(IN_STEPS, value):
            message = "is in steps of a length that is not said: give `job.step`"
            raise MissingKeyError(message, "job.step")
        else:
            inside = self.dimension.parse(value, example)
        if not self.dimension.parse(self.low) <= inside <= self.dimension.parse(self.high):
            raise ParameterError(f"is out of range: it must lie between {self.low} and {self.high}")
        return inside

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Schema of the quantity; pydantic is imported here, so that other users don't load it."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            self.read,
            serialization=core_schema.plain_serializer_function_ser_schema(self.dimension.format),
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        examples = [self.example] if self.example else list(self.dimension.examples)
        pattern = self.dimension.pattern
        if self.in_steps:
            examples, pattern = [*examples, "10 steps"], f"{pattern}|{IN_STEPS}"
        text = {"type": "string", "pattern": pattern, "examples": examples}
        return {"anyOf": [{"type": "number"}, text]} if self.or_number else text


def split_quantity(
    text: str, otherwise: str = "is neither a number nor a quantity such as 94 s or 2.50 USD"
) -> tuple[Fraction, str]:
    """Number and unit of a text such as ``94 s``, exactly; the unit of a bare number is empty.

    Raises ParameterError, that it `otherwise` is, where it is neither.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= MAX_TEXT else None
    if match is None:
        raise ParameterError(otherwise)
    number = float(match["number"])
    if abs(number) > LARGEST_NUMBER:
        raise ParameterError("is too large")
    exact = Fraction(match["number"]) if number else Fraction(0)  # too small for a float: 0
    return exact, re.sub(r"\s", "", match["unit"] or "")


def unit_factor(unit: str, inside: str) -> Fraction:
    """Size of one `unit` in the unit `inside`; a label, or none, converts only to itself.

    Raises ParameterError where they do not measure the same.
    """
    if unit == inside:
        return Fraction(1)
    for factors in (dimension.factors for dimension in DIMENSIONS):
        if unit in factors and inside in factors:
            return factors[unit] / factors[inside]
    raise ParameterError(f"mixes `{unit or 'no unit'}` and `{inside or 'no unit'}`")


def plain_number(number: Decimal) -> str:
    """A number as people write it: no trailing zeros, no exponent in the everyday range."""
    everyday = number == 0 or -6 <= number.adjusted() < 15
    return f"{number.normalize():{'f' if everyday else 'e'}}"
