"""The options of recovery systems: their kinds, and the records of a policy, are the schema.

A field `every_h` is the key `every`, a time; a duration a time, a distribution or ``{link: pcie}``.
A placement is written ``outside``, ``own``, ``{ring: 2}`` or ``{groups: {size: 8, tolerates: 2}}``,
a stage without a cost as its kind alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, Literal, Union, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    create_model,
)
from pydantic import Field as SchemaField

from cprsim.records import Duration, OverLink, Storage
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.pieces import YOUNG_H
from cprsim.recovery.policy import (
    GROWTH_H,
    OWN,
    Capture,
    Elastic,
    Groups,
    Outside,
    Placement,
    Ring,
    Rule,
    Stage,
    Tax,
    Tier,
)
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.distributions import Duration as DurationSection
from cprsim.scenario.distributions import duration_of
from cprsim.scenario.quantities import (
    Bandwidth,
    Model,
    OneOf,
    PositiveCount,
    Share,
    within,
    written_key,
)
from cprsim.units import SIZE, TIME, Quantity

PLACES = {"outside": Outside(), "own": OWN}
MOST = 4096  # entries of a list
Time = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 s")]
TimeOrSteps = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 s", in_steps=True)]
Name = Annotated[str, SchemaField(strict=True, max_length=60)]


def _list(kind: Any, least: int = 0) -> Any:
    return Annotated[tuple[kind, ...], SchemaField(min_length=least, max_length=MOST)]


def _or_word(time: Any, words: Mapping[str, float]) -> Any:
    """A time, or a word that stands for one."""
    word: Any = Annotated[Literal[tuple(words)], AfterValidator(words.get)]
    return Annotated[time | word, OneOf("text", "word", words=words)]


Cost = Annotated[
    Annotated[DurationSection, AfterValidator(duration_of)] | OverLink, OneOf("section", "link")
]
Growth = _or_word(Time, GROWTH_H)
WRITTEN_AS: dict[Any, Any] = {  # fields of records by name, others by type
    "every_h": _or_word(TimeOrSteps, {"young": YOUNG_H}) | None,
    "grows_h": Growth | None,
    "regroup_h": _list(Time),
    int: StrictInt,
    bool: StrictBool,
    float: StrictFloat,
    str: Name,
    tuple[float, ...]: _list(StrictFloat),
    Duration | None: Cost | None,
    Duration | Storage | None: Cost | None,
}


def section(record: type[Any], **defaults: Any) -> Any:
    """A record as a section of a scenario, whose validation makes the record."""
    hints = get_type_hints(record)
    entries: dict[str, Any] = {
        one.name: (
            WRITTEN_AS.get(one.name) or WRITTEN_AS.get(hints[one.name], hints[one.name]),
            defaults.get(one.name, ... if one.default is MISSING else one.default),
        )
        for one in fields(record)
    }
    model = create_model(record.__name__, __base__=Model, __doc__=record.__doc__, **entries)
    return Annotated[model, AfterValidator(lambda made: record(**dict(made)))]


class PlacementSection(Model):
    """Where copies lie, among the nodes of a role."""

    ring: PositiveCount | None = None
    groups: section(Groups) | None = None  # type: ignore[valid-type]

    def problems(self) -> Iterator[tuple[str, str]]:
        """It is one of them."""
        if len(self.given) != 1:
            yield "", "is no placement: write outside, own, {ring: 2} or {groups: {...}}"


WRITTEN_AS[Placement] = Annotated[
    Annotated[Literal["outside", "own"], AfterValidator(PLACES.get)]
    | Annotated[PlacementSection, AfterValidator(lambda made: made.groups or Ring(made.ring))],
    OneOf("text", "section"),
]
STAGE = section(Stage)
STAGE_ALONE = BeforeValidator(
    lambda stage: {"kind": stage} if isinstance(stage, str) else stage,
    json_schema_input_type=STAGE | str,
)
WRITTEN_AS[tuple[Stage, ...]] = _list(Annotated[STAGE, STAGE_ALONE])

KINDS: dict[Any, Any] = {  # of options, and types of records
    "time": TimeOrSteps,
    "size": Annotated[float, Quantity(SIZE, "0 B", "1000 PB", "50 GB")],
    "bandwidth": Bandwidth,
    "count": Annotated[int, within(0, 10**9)],
    "share": Share,
    "number": StrictFloat,
    "table": _list(StrictFloat, 1),
    "times": _list(Time, 1),
    "growth": Growth,
    "word": Name,
    tuple[Tier, ...]: _list(section(Tier, placement=SchemaField(default_factory=Outside), role="")),
    tuple[Capture, ...]: _list(section(Capture)),
    tuple[Rule, ...]: _list(section(Rule)),
    Elastic | None: section(Elastic, role=""),
    Tax: section(Tax),
}


@cache
def options_model(*systems: str) -> type[Model]:
    """The section of the options of systems; each option says which of them have it."""
    kinds: dict[str, dict[Any, Any]] = {}
    meant: dict[str, dict[str, list[str]]] = {}  # by option and by what it means: the systems
    for system in systems:
        options = SYSTEMS[system].options
        for one in fields(options):
            kind, words = one.metadata["kind"], one.metadata["words"]
            kind = get_type_hints(options)[one.name] if kind == "records" else kind
            kinds.setdefault(one.name, {})[kind] = KINDS[kind]
            meant.setdefault(one.name, {}).setdefault(words, []).append(system)
    entries: dict[str, Any] = {}
    for key, of in kinds.items():
        said = ". ".join(f"{', '.join(which)}: {words}" for words, which in meant[key].items())
        written_as: Any = Union[*of.values(), None]
        own = f"{key}_"  # a plain name may be one of the model's own
        entries[own] = (written_as, SchemaField(None, alias=key, description=said))
    return create_model("Options", __base__=Model, __doc__="Options of systems.", **entries)


def options_of(system: str, written: dict[str, Any] | None) -> Any:
    """A system's options from what the scenario says; what it leaves out has its default."""
    return SYSTEMS[system].options(**options_model(system).model_validate(written or {}).given)


def option_problems(system: str, written: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """(dotted key below the options, message) of what is wrong with them."""
    try:
        options_model(system).model_validate(written or {})
    except ValidationError as error:
        for one in error.errors(include_url=False):
            yield written_key(one["loc"], written), one["msg"]


SystemOptions = Annotated[
    dict[str, Any],
    BeforeValidator(
        lambda written: written,  # validated with the strategy
        json_schema_input_type=options_model(*(name for name in SYSTEMS if name not in STRATEGIES)),
    ),
]
