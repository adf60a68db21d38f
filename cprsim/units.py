"""Quantities as users write them ("28 h", "25 Gbit/s"), and the one unit that each has inside.

Factors are exact, and a value is rounded once, at the end: what `Dimension.format` writes is read
as the same float.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Any

from cprsim.errors import ParameterError

MAX_TEXT = 80  # characters; no quantity is longer
NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
POSITIVE = NUMBER.replace("[+-]?", "", 1)
IN_STEPS = rf"^\s*({POSITIVE})\s*steps?\s*$"  # of training, an interval
_QUANTITY = re.compile(
    rf"\s*(?P<number>{NUMBER}|[+-]?\.?(?:nan|inf|infinity))"
    r"(?:\s*(?P<unit>[A-Za-zµμ%]{1,20}(?:\s*/\s*[A-Za-zµμ]{1,20})?))?\s*",
    re.IGNORECASE,
)
SECOND = Fraction(1, 3600)
HOURS_OF = {
    "ns": SECOND / 10**9,
    **dict.fromkeys(("us", "µs", "μs"), SECOND / 10**6),
    "ms": SECOND / 1000,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), Fraction(1, 60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Fraction(1)),
    **dict.fromkeys(("d", "day", "days"), Fraction(24)),
    **dict.fromkeys(("week", "weeks"), Fraction(168)),
    **dict.fromkeys(("month", "months"), Fraction(1461, 2)),
    **dict.fromkeys(("a", "yr", "yrs", "year", "years"), Fraction(8766)),
}
BYTES_OF = {
    **dict.fromkeys(("B", "byte", "bytes"), Fraction(1)),
    **{f"{prefix}B": Fraction(1000**n) for n, prefix in enumerate("kMGTPE", 1)},
    **{f"{prefix}iB": Fraction(1024**n) for n, prefix in enumerate("KMGTPE", 1)},
    **dict.fromkeys(("bit", "bits"), Fraction(1, 8)),
    **{f"{prefix}bit": Fraction(1000**n, 8) for n, prefix in enumerate("kMGTPE", 1)},
}


def _per_time(units: dict[str, Fraction]) -> dict[str, Fraction]:
    return {f"{one}/{h}": units[one] / HOURS_OF[h] for one in units for h in HOURS_OF}


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """A kind of quantity: how users may write it and which unit it has inside."""

    what: str  # with its article, as errors say it
    factors: dict[str, Fraction]  # what each unit is in the unit inside
    written: tuple[str, ...]  # units that `format` may choose, the preferred one first
    also: tuple[str, ...] = ()  # further units that the JSON Schema offers
    examples: tuple[str, ...] = ()

    @property
    def pattern(self) -> str:
        """Regular expression (ECMA 262) of the texts that editors should accept."""
        units = "|".join((*self.written, *self.also))
        return rf"^\s*{POSITIVE}\s*({units})\s*$"

    def parse(self, text: str, hint: str = "") -> float:
        """The quantity in the unit inside; `hint` replaces the examples in errors.

        Raises ParameterError where `text` is no number with a fitting unit, or not finite.
        """
        try:
            number, unit = split_quantity(text, f"is not {self.what}")
            if not unit:
                raise ParameterError("has no unit")
            if unit not in self.factors:
                raise ParameterError(f"has `{unit}`, which is no unit of {self.what}")
            return as_float(number * self.factors[unit])
        except ParameterError as error:
            raise ParameterError(f"{error}: write for example {hint or self.hint}") from None

    def format(self, value: float) -> str:
        """The shortest number in one of the `written` units that is read as this very float."""
        return _shortest(self, value)

    @property
    def hint(self) -> str:
        """Examples of what would be right."""
        return " or ".join(self.examples)


@lru_cache(maxsize=10_000)  # the points of a sweep say the same few values again and again
def _shortest(dimension: Dimension, value: float) -> str:
    found = []
    for unit in dimension.written:
        factor = dimension.factors[unit]
        exact = Fraction(value) / factor
        if unit != dimension.written[0] and not Fraction(1, 10) <= exact < 10**6:
            continue  # readable numbers only; the first unit can always say it
        number = Decimal(exact.numerator) / exact.denominator
        for digits in (4, 8, 12, 15, 16, 17, 20):
            text = plain_number(Decimal(f"{number:.{digits}g}"))
            if float(Fraction(text) * factor) == value:
                found.append((len(text), f"{text} {unit}"))
                break
    return min(found, key=lambda one: one[0])[1]


TIME = Dimension(
    what="a time",
    factors=HOURS_OF,
    written=("h", "min", "s", "d"),
    also=("ms", "sec", "seconds?", "minutes?", "hours?", "days?", "weeks?", "years?"),
    examples=("28 h", "94 s", "5.62 min"),
)
SIZE = Dimension(
    what="a size in bytes",
    factors=BYTES_OF,
    written=("B", "GB", "MB", "kB", "TB", "GiB", "MiB", "KiB", "TiB"),
    also=("PB", "bytes?"),
    examples=("2.16 GB", "50 GB"),
)
BANDWIDTH = Dimension(
    what="a bandwidth",
    factors=_per_time(BYTES_OF),
    written=("B/h", "Gbit/s", "GB/s", "Mbit/s", "MB/s"),
    also=("Tbit/s", "TB/s", "kbit/s", "kB/s", "GiB/s", "MiB/s"),
    examples=("25 Gbit/s", "3.1 GB/s"),
)
THROUGHPUT = Dimension(
    what="a throughput",
    factors=_per_time(dict.fromkeys(("sample", "samples"), Fraction(1))),
    written=("samples/h", "samples/s"),
    also=("samples/min", "sample/s", "samples/d"),
    examples=("20000 samples/s",),
)
HAZARD = Dimension(
    what="a hazard",
    factors=_per_time(dict.fromkeys(("failure", "failures"), Fraction(1))),
    written=("failures/h", "failures/d", "failures/min"),
    also=("failure/h", "failures/s", "failures/week", "failures/year"),
    examples=("0.02 failures/h", "12 failures/year"),
)
SHARE = Dimension(
    what="a share in per cent",
    factors={"%": Fraction(1, 100)},
    written=("%",),
    examples=("0.5 %",),
)


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

    def read(self, value: object) -> float:
        """The value in the unit inside. Raises ParameterError."""
        example = (self.example or self.dimension.hint) + self.otherwise
        if isinstance(value, float) and not isfinite(value):
            raise ParameterError(f"is not a finite number: write for example {example}")
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise ParameterError(f"is a bare number: write its unit, for example {example}")
        if not isinstance(value, str):
            raise ParameterError(f"is not {self.dimension.what}: write for example {example}")
        if self.in_steps and re.fullmatch(IN_STEPS, value):
            raise ParameterError("is in steps of a length that is not said: give `job.step`")
        inside = self.dimension.parse(value, example)
        low, high = self.dimension.parse(self.low), self.dimension.parse(self.high)
        if not low <= inside <= high:
            raise ParameterError(f"is out of range: it must lie between {self.low} and {self.high}")
        return inside

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """How the scenario's schema reads and writes it; nobody else imports pydantic by this."""
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
        return {"type": "string", "pattern": pattern, "examples": examples}


def split_quantity(
    text: str, otherwise: str = "is neither a number nor a quantity such as 94 s"
) -> tuple[Fraction, str]:
    """Number and unit of a text such as ``94 s``, exactly; the unit of a bare number is empty.

    Raises ParameterError, that it `otherwise` is, where it is neither.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= MAX_TEXT else None
    if match is None:
        raise ParameterError(otherwise)
    written = match["number"]
    is_number = not written.lower().endswith(("nan", "inf", "infinity"))
    if not is_number or not isfinite(float(written)):
        raise ParameterError("is not a finite number")
    number = Fraction(written) if float(written) else Fraction(0)  # too small for a float: 0
    return number, re.sub(r"\s", "", match["unit"] or "")


def unit_factor(unit: str, other: str) -> Fraction:
    """What one `unit` is in the `other` one; empty units are those of bare numbers.

    Raises ParameterError where they do not measure the same.
    """
    if unit == other == "":
        return Fraction(1)
    for factors in (dimension.factors for dimension in DIMENSIONS):
        if unit in factors and other in factors:
            return factors[unit] / factors[other]
    raise ParameterError(f"mixes `{unit or 'no unit'}` and `{other or 'no unit'}`")


def plain_number(number: Decimal) -> str:
    """A number as people write it: no trailing zeros, no exponent in the everyday range."""
    everyday = number == 0 or -6 <= number.adjusted() < 15
    return f"{number.normalize():{'f' if everyday else 'e'}}"


def as_float(value: Fraction) -> float:
    """The nearest float. Raises ParameterError where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        raise ParameterError("is too large") from None
