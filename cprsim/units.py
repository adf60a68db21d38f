"""Quantities as users write them ("28 h", "25 Gbit/s"), and the one unit that each has inside.

A regular expression splits the number from the unit; pint sees the unit alone, which can only be a
name or one name per another. So no text is ever evaluated as an expression. pint is imported when
the first quantity is read. Conversion is exact (rational factors), rounded once at the end: the
text that `Dimension.format` writes reads back to the very same float.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache
from math import isfinite, isinf, isnan, nan
from typing import TYPE_CHECKING, Any

from cprsim.errors import ParameterError

if TYPE_CHECKING:
    from pint import UnitRegistry

MAX_TEXT = 80  # characters; no quantity is longer
NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
POSITIVE = NUMBER.replace("[+-]?", "", 1)
IN_STEPS = rf"^\s*({POSITIVE})\s*steps?\s*$"  # of training, an interval
_QUANTITY = re.compile(
    rf"\s*(?P<number>{NUMBER}|[+-]?\.?(?:nan|inf|infinity))"
    r"(?:\s*(?P<unit>[A-Za-zµμ%]{1,20}(?:\s*/\s*[A-Za-zµμ]{1,20})?))?\s*",
    re.IGNORECASE,
)


_UNITS = """
nano- = 1e-9 = n-
micro- = 1e-6 = µ- = μ- = u-
milli- = 1e-3 = m-
kilo- = 1e3 = k-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
peta- = 1e15 = P-
exa- = 1e18 = E-
kibi- = 2**10 = Ki-
mebi- = 2**20 = Mi-
gibi- = 2**30 = Gi-
tebi- = 2**40 = Ti-
pebi- = 2**50 = Pi-
exbi- = 2**60 = Ei-

second = [time] = s = sec
minute = 60 * second = min
hour = 60 * minute = h = hr
day = 24 * hour = d
week = 7 * day
fortnight = 2 * week
year = 365.25 * day = a = yr
month = year / 12

bit = [information]
byte = 8 * bit = B = octet

sample = [sample]
failure = [failure]
percent = 0.01 = %
"""
"""All that is understood, as pint reads it: its own list takes half a second to read."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A kind of quantity: how users may write it and which unit it has inside."""

    what: str  # with its article, as errors say it
    inside: str  # pint's name of the unit inside
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
        match = _QUANTITY.fullmatch(text) if len(text) <= MAX_TEXT else None
        try:
            if match is None:
                raise ParameterError(f"is not {self.what}")
            number = _number(match["number"])
            if match["unit"] is None:
                raise ParameterError("has no unit")
            return as_float(number * self._factor(match["unit"]))
        except ParameterError as error:
            raise ParameterError(f"{error}: write for example {hint or self.hint}") from None

    def format(self, value: float) -> str:
        """The shortest number in one of the `written` units that reads back to this very float."""
        return _shortest(self, value)

    @property
    def hint(self) -> str:
        """Examples of what would be right."""
        return " or ".join(self.examples)

    def candidates(self, value: float, unit: str) -> list[str]:
        """Candidates for the number before `unit`, the shorter ones first."""
        exact = Fraction(value) / self._factor(unit)
        if unit != self.written[0] and not Fraction(1, 10) <= exact < 10**6:
            return []  # readable units only; the first one can always say it
        with localcontext(prec=24):
            number = Decimal(exact.numerator) / Decimal(exact.denominator)
        return [plain_number(Decimal(f"{number:.{n}g}")) for n in (4, 8, 12, 15, 16, 17, 20)]

    def _factor(self, unit: str) -> Fraction:
        factor = _conversion(unit.replace(" ", ""), self.inside)
        if factor is None:
            raise ParameterError(f"has `{unit}`, which is no unit of {self.what}")
        return factor


@lru_cache(maxsize=10_000)  # the points of a sweep say the same few values again and again
def _shortest(dimension: Dimension, value: float) -> str:
    texts = (
        (number, unit) for unit in dimension.written for number in dimension.candidates(value, unit)
    )
    exact = [
        (number, unit) for number, unit in texts if dimension.parse(f"{number} {unit}") == value
    ]
    number, unit = min(exact, key=lambda text: len(text[0]))
    return f"{number} {unit}"


TIME = Dimension(
    what="a time",
    inside="hour",
    written=("h", "min", "s", "d"),
    also=("ms", "sec", "seconds?", "minutes?", "hours?", "days?", "weeks?", "years?"),
    examples=("28 h", "94 s", "5.62 min"),
)
SIZE = Dimension(
    what="a size in bytes",
    inside="byte",
    written=("B", "GB", "MB", "kB", "TB", "GiB", "MiB", "KiB", "TiB"),
    also=("PB", "bytes?"),
    examples=("2.16 GB", "50 GB"),
)
BANDWIDTH = Dimension(
    what="a bandwidth",
    inside="byte / hour",
    written=("B/h", "Gbit/s", "GB/s", "Mbit/s", "MB/s"),
    also=("Tbit/s", "TB/s", "kbit/s", "kB/s", "GiB/s", "MiB/s"),
    examples=("25 Gbit/s", "3.1 GB/s"),
)
THROUGHPUT = Dimension(
    what="a throughput",
    inside="sample / hour",
    written=("samples/h", "samples/s"),
    also=("samples/min", "sample/s", "samples/d"),
    examples=("20000 samples/s",),
)
HAZARD = Dimension(
    what="a hazard",
    inside="failure / hour",
    written=("failures/h", "failures/d", "failures/min"),
    also=("failure/h", "failures/s", "failures/week", "failures/year"),
    examples=("0.02 failures/h", "12 failures/year"),
)
SHARE = Dimension(
    what="a share in per cent",
    inside="dimensionless",
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


def split_quantity(text: str) -> tuple[Fraction, str]:
    """Number and unit of a text such as ``94 s``, exactly; the unit of a bare number is empty.

    Raises ParameterError where it is neither.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= MAX_TEXT else None
    if match is None:
        raise ParameterError("is neither a number nor a quantity such as 94 s")
    return _number(match["number"]), (match["unit"] or "").replace(" ", "")


def unit_factor(unit: str, other: str) -> Fraction:
    """What one `unit` is in the `other` one; empty units are those of bare numbers.

    Raises ParameterError where they do not measure the same.
    """
    if unit == other == "":
        return Fraction(1)
    for dimension in DIMENSIONS if unit and other else ():
        factors = [_conversion(one, dimension.inside) for one in (unit, other)]
        if factors[0] is not None and factors[1] is not None:
            return factors[0] / factors[1]
    raise ParameterError(f"mixes `{unit or 'no unit'}` and `{other or 'no unit'}`")


def plain_number(number: Decimal) -> str:
    """A number as people write it: no trailing zeros, no exponent in the everyday range."""
    everyday = number == 0 or -6 <= number.adjusted() < 15
    return f"{number.normalize():{'f' if everyday else 'e'}}"


@cache
def _registry() -> UnitRegistry[Fraction]:
    from pint import UnitRegistry

    registry: UnitRegistry[Fraction] = UnitRegistry(None, non_int_type=Fraction)
    registry.load_definitions(_UNITS.splitlines())
    return registry


@cache
def _conversion(unit: str, inside: str) -> Fraction | None:
    """Exact factor from `unit` to the unit inside; None where they do not measure the same."""
    from pint.errors import PintError

    registry = _registry()
    try:
        here, there = registry.Quantity(Fraction(1), unit), registry.Quantity(Fraction(1), inside)
        if here.to_root_units().units != there.to_root_units().units:
            return None  # bits, radians and shares have no dimension, but different root units
        factor = here.to(there.units).magnitude
    except (PintError, AttributeError, ValueError, TypeError, ArithmeticError, AssertionError):
        return None
    return Fraction(factor)


def _number(text: str) -> Fraction:
    """The number alone, exactly; a decimal too small for a float is 0."""
    number = nan if text.lower().endswith(("nan", "inf", "infinity")) else float(text)
    if isnan(number) or isinf(number):
        raise ParameterError("is not a finite number")
    return Fraction(text) if number else Fraction(0)


def as_float(value: Fraction) -> float:
    """The nearest float. Raises ParameterError where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        raise ParameterError("is too large") from None
