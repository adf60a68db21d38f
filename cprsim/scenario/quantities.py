"""Building blocks of the schema: quantities with units, bounded numbers, sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from math import log, sqrt
from typing import Annotated, Any, Literal, Self, Union, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    ModelWrapValidatorHandler,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from cprsim.errors import MOST_PROBLEMS, ParameterError, choices, one_line
from cprsim.failures.limits import SHAPE, SIGMA, SPREAD_95
from cprsim.files.units import BANDWIDTH, HAZARD, SHARE, SIZE, TIME, Quantity
from cprsim.job.distributions import (
    Constant,
    Distribution,
    Mixture,
    PiecewiseHazard,
    with_mean,
)
from cprsim.job.records import MAX_NODES, OverLink
from cprsim.scenario.yaml_text import dotted

EXPLAINED = "explained"  # type of errors whose message is complete
NO_KIND = "no_kind"  # type of errors of a section whose key `kind` chooses what it is
UNION_TAG = "as:"  # begins the names of a union's members in pydantic's locations
_UNIT = re.compile("_(bytes_per_h|per_h|bytes|fraction|h)$")


def _key(field: str) -> str:
    """The key of a field: its name without the unit."""
    return _UNIT.sub("", field)


class Model(BaseModel):
    """A section of the scenario: unknown keys are errors, values never change.

    Its errors are explained: the value found, then pydantic's message or one of ours.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, alias_generator=_key
    )

    @property
    def given(self) -> dict[str, Any]:
        """Values of the fields that are given, by key."""
        fields = type(self).model_fields.items()
        return {
            field.alias or name: value
            for name, field in fields
            if (value := getattr(self, name)) is not None
        }

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (dotted key below this section, message) for fields that contradict each other."""
        return iter(())

    @model_validator(mode="wrap")
    @classmethod
    def _explained(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            section = handler(data)
        except ValidationError as error:
            causes = _causes(error)
            problems = [_explained(cls, cause) for cause in causes[:MOST_PROBLEMS]]
            if (n_more := len(causes) - MOST_PROBLEMS) > 0:
                loc, message, value = problems[-1]
                problems[-1] = loc, f"{message}; {n_more:,} more problems in this section", value
            raise _error(cls, problems) from None
        problems = [
            (tuple(filter(None, key.split("."))), message, data)
            for key, message in section.problems()
        ]
        if problems:
            raise _error(cls, problems)
        return section


def _error(section: type[Model], problems: Iterable[tuple[Any, str, Any]]) -> ValidationError:
    lines = [
        InitErrorDetails(type=PydanticCustomError(EXPLAINED, message), loc=loc, input=value)
        for loc, message, value in problems
    ]
    return ValidationError.from_exception_data(section.__name__, lines)


def _causes(error: ValidationError) -> list[ErrorDetails]:
    """Errors without those that only follow from another error.

    A list with invalid entries is reported as too short, and a default that depends on an invalid
    key has no value.
    """
    errors = error.errors(include_url=False)
    around = {details["loc"][:n] for details in errors for n in range(len(details["loc"]))}
    return [
        details
        for details in errors
        if details["type"] != "default_factory_not_called"
        and not (details["type"] == "too_short" and details["loc"] in around)
    ]


def _explained(section: type[Model], error: ErrorDetails) -> tuple[Any, str, Any]:
    """Location, message and found value of an error."""
    kind, message, loc, value = error["type"], error["msg"], error["loc"], error["input"]
    if kind == EXPLAINED:
        return loc, message, value
    keys = {field.alias or name: field for name, field in section.model_fields.items()}
    if kind == "extra_forbidden":
        return loc, f"unknown key; {choices(loc[-1], tuple(keys))}", value
    if kind == "unexpected_keyword_argument":  # of a record
        return loc, "unknown key", value
    if kind in ("missing", "missing_argument"):
        field = keys.get(str(loc[0]))
        meaning = ((field and field.description) or "").split(". ")[0].rstrip(".")
        in_brackets = f" ({meaning[:1].lower()}{meaning[1:]})" if meaning else ""
        return loc, f"is missing{in_brackets}", value
    if kind == NO_KIND and isinstance(value, dict):
        loc, value = (*loc, "kind"), value.get("kind")
    elif kind in ("model_type", "dataclass_type", "dict_type"):
        message = "is not a section of keys ({key: value})"
    elif kind == "value_error":
        message = str(error["ctx"]["error"])
    elif kind != NO_KIND:
        message = re.sub(r"^\w+ (?=should)| after validation.*", "", message)
        message = f"{message[:1].lower()}{message[1:]}"
        message = message.replace("tuple", "list").replace("a valid string", "a text, in quotes")
    return loc, f"{quoted(value)} {message}", value


def written_key(loc: tuple[int | str, ...], data: Any) -> str:
    """The dotted key, as written by the user, of a location that pydantic reports.

    Without the tags of unions, and without the keys that a short form left out.
    """
    key, section = "", data
    for i, part in enumerate(map(str, loc)):
        entries = dict(enumerate(section)) if isinstance(section, list) else section
        entries = {str(k): v for k, v in entries.items()} if isinstance(entries, dict) else {}
        is_missing = part not in entries and isinstance(section, dict) and i == len(loc) - 1
        if part == "[key]" or part.startswith(UNION_TAG) or not (part in entries or is_missing):
            continue
        key, section = dotted(key, part), entries.get(part)
    return key


def quoted(value: object) -> str:
    """A value found, in backquotes and not too long."""
    return "nothing" if value is None else f"`{one_line(str(value))}`"


def within(least: float, most: float) -> Any:
    """The bounds of a plain number, which is no text."""
    return Field(strict=True, ge=least, le=most)


Text = Annotated[str, Field(strict=True, min_length=1, max_length=4000)]
Time = Annotated[float, Quantity(TIME, "0 s", "10000 h")]
PositiveTime = Annotated[float, Quantity(TIME, "1 us", "10000 h")]
Age = Annotated[float, Quantity(TIME, "0 h", "100000000 h", "12 h")]
Mtbf = Annotated[float, Quantity(TIME, "1 s", "100000000 h", "28 h")]
UsefulTime = Annotated[float, Quantity(TIME, "1 s", "100000 h", "50 h")]
ShardSize = Annotated[float, Quantity(SIZE, "1 B", "1000 PB", "50 GB")]
Bandwidth = Annotated[float, Quantity(BANDWIDTH, "1 kbit/s", "1 EB/s", "25 Gbit/s")]
NodeCount = Annotated[int, within(0, MAX_NODES)]
PositiveCount = Annotated[int, within(1, MAX_NODES)]
Share = Annotated[float, within(0, 1)]
PositiveShare = Annotated[float, Field(strict=True, gt=0, le=1)]
PartShare = Annotated[float, Quantity(SHARE, "0.0001 %", "100 %", "30 %", or_number=True)]
Seed = Annotated[int, within(0, 2**63 - 1)]


# ---------------------------------------------------------------------- one of several

FORMS: dict[str, Callable[[Any], bool]] = {  # how a value is written, or was; the first counts
    "link": lambda value: (
        isinstance(value, OverLink) or (isinstance(value, dict) and "link" in value)
    ),
    "mix": lambda value: isinstance(value, MixSpec) or (isinstance(value, dict) and "mix" in value),
    "section": lambda value: isinstance(value, dict | BaseModel),
    "lists": lambda value: (
        isinstance(value, list | tuple) and any(isinstance(entry, list | tuple) for entry in value)
    ),
    "list": lambda value: isinstance(value, list | tuple),
    "text": lambda value: isinstance(value, str | float),
    "number": lambda value: isinstance(value, int),
}


def one_of(*forms: str, words: Collection[str] = ()) -> GetPydanticSchema:
    """Annotates a union with the form of each member in turn, and the words of a member for words.

    A value of no given form is validated by the member whose form comes last in `FORMS`. Forms
    outside `FORMS` are values of the key `kind`.
    """
    known = [form for form in FORMS if form in forms]
    no_kind = f"is no kind of failures. Known: {', '.join(forms)}"

    def form_of(value: Any) -> str:
        if words and str(value) in words:
            return f"{UNION_TAG}word"
        if not known:
            kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
            return f"{UNION_TAG}{kind}"
        return UNION_TAG + next((form for form in known[:-1] if FORMS[form](value)), known[-1])

    def schema(source: Any, handler: GetCoreSchemaHandler) -> Any:
        tags, members = [f"{UNION_TAG}{form}" for form in forms], get_args(source)
        tagged = [Annotated[of, Tag(tag)] for of, tag in zip(members, tags, strict=True)]
        return handler(Annotated[Union[*tagged], Discriminator(form_of, NO_KIND, no_kind)])

    return GetPydanticSchema(schema)


def parameters(
    section: Model, kind: str, needed: Collection[str], others: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Check that the keys a kind of section needs are given, and no others."""
    given = section.given
    for key in needed:
        if key not in given:
            yield key, f"is missing: {kind} needs it"
    for key in others:
        if key in given and key not in needed:
            takes = f", which takes {' and '.join(needed)}" if needed else ""
            yield key, f"is no parameter of {kind}{takes}: leave it out"


PIECEWISE = "piecewise"
MAX_PIECES = 100
OR_DISTRIBUTION = ", or {family: gamma, mean: 94 s, shape: 2}"
PARAMETERS: dict[str, tuple[str, ...]] = {  # of each family, besides its mean
    "exponential": (), "gamma": ("shape",), "weibull": ("shape",), "lognormal": ("sigma",),
}  # fmt: skip

Family = Literal["exponential", "gamma", "weibull", "lognormal"]
FixedTime = Annotated[float, Quantity(TIME, "0 h", "10000 h", "94 s", OR_DISTRIBUTION)]
Hazard = Annotated[
    float, Quantity(HAZARD, "0.00000001 failures/h", "3600 failures/h", "0.02 failures/h")
]
NUMBER_OF_PIECES = Field(min_length=1, max_length=MAX_PIECES)
Shape = Annotated[float, within(*SHAPE)]


def _ascending(ends: tuple[float, float]) -> tuple[float, float]:
    if not ends[0] < ends[1]:
        raise ParameterError("is no interval: the lower end comes first")
    return ends


SpreadEnd = Annotated[float, Field(strict=True, gt=0, le=SPREAD_95[1])]
Mtbf95 = Annotated[
    Annotated[tuple[Mtbf, Mtbf], AfterValidator(_ascending)] | None,
    Field(
        description="95 % interval of mtbf [two times], as `cprsim fit` finds it; absent: taken as "
        "known. `cprsim select` and `systems` try it.",
        examples=[["9 h", "21 h"]],
    ),
]
Spread95 = Annotated[
    Annotated[tuple[SpreadEnd, SpreadEnd], AfterValidator(_ascending)] | None,
    Field(
        description="95 % interval of shape or sigma, no unit; absent: taken as known.",
        examples=[[0.5, 0.9]],
    ),
]
Sigma = Annotated[
    float | None,
    Field(
        strict=True,
        gt=0,
        le=SIGMA[1],
        description="Of lognormal: standard deviation of the logarithm, no unit.",
    ),
]


class DurationSpec(Model):
    """A time that varies: its family, its mean and one more parameter."""

    family: Family = Field(description="Distribution: exponential, gamma, weibull or lognormal.")
    shape: Annotated[float, within(SHAPE[0], 1e9)] | None = Field(
        None, description="Shape of gamma or weibull, no unit; the larger, the less it varies."
    )
    sigma: Sigma = None
    mean_h: PositiveTime = Field(description="Mean [time].")
    median_h: PositiveTime | None = Field(
        None, description="Of lognormal, instead of sigma: the median [time]."
    )

    @property
    def distribution(self) -> Distribution:
        """The distribution for the simulation; a lognormal's mean / median is exp(sigma² / 2)."""
        spread = self.sigma or self.shape
        if self.median_h is not None:
            spread = sqrt(2.0 * log(self.mean_h / self.median_h))
        return with_mean(self.family, self.mean_h, spread)

    def problems(self) -> Iterator[tuple[str, str]]:
        needed, has_median = PARAMETERS[self.family], self.median_h is not None
        if has_median and needed == ("sigma",):
            needed = ("median",)
        problems = [*parameters(self, self.family, needed, ("shape", "sigma", "median"))]
        if self.median_h is not None and not self.median_h < self.mean_h:
            problems.append(("median", "must be below the mean: a lognormal's median always is"))
        yield from problems or _drawn(self, "median" if has_median else "")


class MixedSection(Model):
    """One of the times of a mixture."""

    share_fraction: PartShare = Field(
        description="How often it is this one [per cent, or a number]; all add up to 1."
    )
    value: Annotated[FixedTime | DurationSpec, one_of("text", "section")] = Field(
        description="A time or a distribution."
    )


class MixSpec(Model):
    """A time that is one of several: minutes if somebody is awake, else until the morning."""

    mix: tuple[MixedSection, ...] = Field(
        min_length=1, max_length=MAX_PIECES, description="The times, each with its share."
    )

    @property
    def distribution(self) -> Mixture:
        shares = tuple(of.share_fraction for of in self.mix)
        return Mixture(shares, tuple(duration_of(of.value) for of in self.mix))

    def problems(self) -> Iterator[tuple[str, str]]:
        total = sum(of.share_fraction for of in self.mix)
        if abs(total - 1.0) > 1e-6:
            yield "mix", f"the shares add up to {100 * total:g} %; they must add up to 100 %"


Duration = Annotated[FixedTime | DurationSpec | MixSpec, one_of("text", "section", "mix")]


def duration_of(spec: float | DurationSpec | MixSpec) -> Distribution | Constant | Mixture:
    """A fixed time [h] or a time that varies, as the engines draw from it."""
    return Constant(spec) if isinstance(spec, float) else spec.distribution


class Lifetime(Model):
    """Time between failures: a family with its mean, or a hazard that is constant between ages."""

    family: Literal[Family, "piecewise"] = Field(
        description="Distribution: exponential, gamma, weibull, lognormal, or piecewise (a hazard "
        "that is constant between ages)."
    )
    shape: Shape | None = Field(
        None, description="Shape of gamma or weibull, no unit; 1 is exponential, below 1 clusters."
    )
    sigma: Sigma = None
    mean_between_h: Mtbf | None = Field(
        None, alias="mtbf", description="Mean time between failures [time]; not of piecewise."
    )
    mtbf_95_h: Mtbf95 = None
    spread_95: Spread95 = None
    ages_h: Annotated[tuple[Age, ...], NUMBER_OF_PIECES] | None = Field(
        None,
        description="Of piecewise: ages at which the hazard changes [time], the first of them 0 h.",
        examples=[["0 h", "12 h"]],
    )
    hazards_per_h: Annotated[tuple[Hazard, ...], NUMBER_OF_PIECES] | None = Field(
        None,
        description="Of piecewise: the hazard from each of the ages on [failures per time].",
        examples=[["0.1 failures/h", "0.02 failures/h"]],
    )

    @property
    def spread(self) -> float | None:
        """The one parameter besides the mean: shape, or sigma; None for the others."""
        return self.sigma or self.shape

    @property
    def mtbf_h(self) -> float:
        return self.mean_between_h or self.distribution.mean_h

    @property
    def mtbf_key(self) -> str:
        """The key that decides the mean."""
        return "hazards" if self.family == PIECEWISE else "mtbf"

    @property
    def distribution(self) -> Distribution:
        if self.ages_h is not None and self.hazards_per_h is not None:
            return PiecewiseHazard(self.ages_h, self.hazards_per_h).simulable()
        return with_mean(self.family, self.mean_between_h or 0.0, self.spread)

    def problems(self) -> Iterator[tuple[str, str]]:
        is_piecewise, spread = self.family == PIECEWISE, PARAMETERS.get(self.family, ())
        needed = ("ages", "hazards") if is_piecewise else ("mtbf", *spread)
        others = ["mtbf", "shape", "sigma", "ages", "hazards"]
        others += ["mtbf_95"] * is_piecewise + ["spread_95"] * (not spread)
        problems = [*parameters(self, self.family, needed, others)]
        yield from problems or _drawn(self, needed[0])


def _drawn(section: DurationSpec | Lifetime, key: str) -> Iterator[tuple[str, str]]:
    """Check that the simulation can draw from it."""
    try:
        section.distribution  # noqa: B018
    except ParameterError as error:
        yield key, str(error)


_NUMBER = re.compile(r"[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)


def times(value: Any, factor: float) -> Any:
    """A number, a quantity, or a list of them, times `factor`; counts stay whole, from 1 on."""
    if isinstance(value, list):
        return [times(entry, factor) for entry in value]
    if isinstance(value, int):
        return max(1, round(value * factor))
    if isinstance(value, float):
        return value * factor
    return _NUMBER.sub(lambda found: f"{float(found[0]) * factor:.6g}", str(value), count=1)
