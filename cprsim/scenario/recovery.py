"""The section `recovery`: which strategies and systems are compared, and how often each saves.

Options of systems: their kinds, and the records of a policy, are the schema. A field `every_h` is
the key `every`, a time; a duration a time, a distribution or ``{link: pcie}``. A placement is
written ``outside``, ``own``, ``{ring: 2}`` or ``{groups: {size: 8, tolerates: 2}}``, a stage
without a cost as its kind alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, Literal, Union, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetPydanticSchema,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    create_model,
)
from pydantic.json_schema import WithJsonSchema

from cprsim.errors import ParameterError, choices
from cprsim.files.units import SIZE, TIME, Quantity
from cprsim.job.policy import (
    GROWTH_H,
    OWN,
    Elastic,
    Groups,
    Outside,
    Placement,
    Ring,
    Rule,
    SaveSchedule,
    Stage,
    Tax,
    Tier,
)
from cprsim.job.records import Duration, OverLink, SmallTables, Storage, SubSaves
from cprsim.recovery.building_blocks import YOUNG_H
from cprsim.recovery.paper import INTERVAL_RULES, NEVER, PRIORITY_PREFIX, STRATEGIES
from cprsim.recovery.system import System
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.cluster import OwnCosts
from cprsim.scenario.quantities import (
    Bandwidth,
    Model,
    PositiveCount,
    PositiveShare,
    Share,
    duration_of,
    one_of,
    within,
    written_key,
)
from cprsim.scenario.quantities import Duration as DurationSection

PLACES = {"outside": Outside(), "own": OWN}
MOST_ENTRIES = 4096  # entries of a list
Time = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 s")]
TimeOrSteps = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 s", in_steps=True)]
Name = Annotated[str, Field(strict=True, max_length=60)]


def _list(kind: Any, least: int = 0) -> Any:
    return Annotated[tuple[kind, ...], Field(min_length=least, max_length=MOST_ENTRIES)]


def _or_word(time: Any, words: Mapping[str, float]) -> Any:
    """Type of a time, or of a word that is replaced by a time."""
    word: Any = Annotated[Literal[tuple(words)], AfterValidator(words.get)]
    return Annotated[time | word, one_of("text", "word", words=words)]


Cost = Annotated[
    Annotated[DurationSection, AfterValidator(duration_of)] | OverLink, one_of("section", "link")
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
        field.name: (
            WRITTEN_AS.get(field.name) or WRITTEN_AS.get(hints[field.name], hints[field.name]),
            defaults.get(field.name, ... if field.default is MISSING else field.default),
        )
        for field in fields(record)
    }
    model = create_model(record.__name__, __base__=Model, __doc__=record.__doc__, **entries)
    return Annotated[model, AfterValidator(lambda made: record(**dict(made)))]


class PlacementSection(Model):
    """Where copies lie, among the nodes of a role."""

    ring: PositiveCount | None = None
    groups: section(Groups) | None = None  # type: ignore[valid-type]

    def problems(self) -> Iterator[tuple[str, str]]:
        if len(self.given) != 1:
            yield "", "is no placement: write outside, own, {ring: 2} or {groups: {...}}"


WRITTEN_AS[Placement] = Annotated[
    Annotated[Literal["outside", "own"], AfterValidator(PLACES.get)]
    | Annotated[PlacementSection, AfterValidator(lambda made: made.groups or Ring(made.ring))],
    one_of("text", "section"),
]
STAGE = section(Stage)
STAGE_ALONE = BeforeValidator(
    lambda stage: {"kind": stage} if isinstance(stage, str) else stage,
    json_schema_input_type=STAGE | str,
)
WRITTEN_AS[tuple[Stage, ...]] = _list(Annotated[STAGE, STAGE_ALONE])

TYPE_OF_OPTION: dict[Any, Any] = {  # of options, and types of records
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
    tuple[Tier, ...]: _list(section(Tier, placement=Field(default_factory=Outside), role="")),
    tuple[SaveSchedule, ...]: _list(section(SaveSchedule)),
    tuple[Rule, ...]: _list(section(Rule)),
    Elastic: section(Elastic, role=""),
    Tax: section(Tax),
}


@cache
def options_model(*systems: str) -> type[Model]:
    """The section of the options of systems; each option says which of them have it."""
    kinds: dict[str, dict[Any, Any]] = {}
    meanings: dict[str, dict[str, list[str]]] = {}  # by option and by what it means: the systems
    for system in systems:
        for key, option in SYSTEMS[system].options.items():
            kinds.setdefault(key, {})[option.kind] = TYPE_OF_OPTION[option.kind]
            meanings.setdefault(key, {}).setdefault(option.meaning, []).append(system)
    entries: dict[str, Any] = {}
    for key, of in kinds.items():
        description = ". ".join(
            f"{', '.join(of_systems)}: {words}" for words, of_systems in meanings[key].items()
        )
        written_as: Any = Union[*of.values(), None]
        field_name = f"{key}_"  # a plain name may be one of the model's own
        entries[field_name] = (written_as, Field(None, alias=key, description=description))
    return create_model("Options", __base__=Model, __doc__="Options of systems.", **entries)


def options_of(system: str, written: dict[str, Any] | None) -> dict[str, Any]:
    """The options of a system that the scenario gives, by their names."""
    given: dict[str, Any] = options_model(system).model_validate(written or {}).given
    return given


def _schema_of_options(schema: Any, handler: Any) -> Any:
    """Of all systems; a scenario is validated by the options of its strategies."""
    of_all = options_model(*(name for name in SYSTEMS if name not in STRATEGIES))
    return handler(of_all.__pydantic_core_schema__)


SystemOptions = Annotated[
    dict[str, Any], GetPydanticSchema(get_pydantic_json_schema=_schema_of_options)
]


ENTRY_NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._+=-]{0,59}$"
NEEDS_TARGET = ("cpr", "cpr-undivided")  # the interval rules that start from a target PLS
OR_RULE = f", or a rule: {', '.join(INTERVAL_RULES)}"
SubSaveTime = Annotated[float, Quantity(TIME, "0 s", "100 h", "2 s")]
IntervalTime = Annotated[float, Quantity(TIME, "1 ms", "100000 h", "2.5 h", OR_RULE, in_steps=True)]
RuleName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(INTERVAL_RULES)})]
Interval = Annotated[IntervalTime | RuleName, one_of("text", "word", words=INTERVAL_RULES)]


def _known_strategy(name: str) -> str:
    if name not in SYSTEMS:
        raise ParameterError(f"is no strategy: {choices(name, tuple(SYSTEMS))}")
    return name


StrategyName = Annotated[
    str,
    AfterValidator(_known_strategy),
    GetPydanticSchema(
        get_pydantic_json_schema=lambda schema, handler: {"type": "string", "enum": [*SYSTEMS]}
    ),
]


def _with_summaries(schema: dict[str, Any]) -> None:
    of_each = "; ".join(f"{name}: {system.summary}" for name, system in SYSTEMS.items())
    schema["description"] += f" {of_each}."


class SubSavesSection(Model):
    """How a priority strategy cuts its interval; the defaults are the paper's (recalled)."""

    fraction: PositiveShare = Field(
        0.125,
        description="r: share of the rows of each large table that one sub-save writes, and of "
        "the interval between two of them; one over a whole number.",
    )
    selection_h: SubSaveTime = Field(0.0, description="To choose the rows, each time [time].")
    latency_h: SubSaveTime = Field(0.0, description="Fixed cost of each sub-save on top [time].")
    large_tables: Annotated[int, within(1, 10_000)] = Field(
        7, description="Number of the largest tables, which are prioritised."
    )
    small_tables: SmallTables = Field(
        SmallTables.EACH_INTERVAL,
        description="When the other tables are saved: once an interval (equal bytes) or with every "
        "sub-save (more bytes, fresher rows).",
    )
    sample_period: Annotated[int, within(1, 10**6)] = Field(
        2, description="Of cpr-ssu: it looks at every n-th sample."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if abs(1 / self.fraction - round(1 / self.fraction)) > 1e-9:
            yield "fraction", f"is {self.fraction:g}; it must be one over a whole number, as 0.125"


class RecoverySection(Model):
    """One strategy to compare."""

    strategy: StrategyName = Field(
        description="What a failure does.", json_schema_extra=_with_summaries
    )
    name: str = Field(
        default_factory=lambda others: others["strategy"],
        strict=True,
        pattern=ENTRY_NAME,
        description="Name in the tables; default the strategy. Needed to compare a strategy "
        "with itself at other settings.",
    )
    interval: Interval | None = Field(
        None,
        description="Progress between saves: a time, or a rule: young, daly, cpr (from target_pls, "
        "divided by the servers that fail together), cpr-undivided (as published), never. Absent: "
        "the strategy's own rule. A CPR strategy with a time, or never, and without target_pls "
        "decides nothing: it recovers partially.",
    )
    target_pls: Share | None = Field(
        None,
        description="Portion of lost samples that you accept, a share between 0 and 1.",
        examples=[0.1],
    )
    assumed: bool | None = Field(
        None,
        strict=True,
        description="Whether `target_pls` is a guess that is not confirmed yet: it allows nothing.",
    )
    options: SystemOptions | None = Field(
        None, description="Further options of the recovery systems."
    )
    sub_saves: SubSavesSection | None = Field(
        None,
        description="Of the priority strategies: how each interval is cut; absent: as the paper.",
    )
    costs: OwnCosts | None = Field(
        None,
        description="What differs under this strategy from the section `costs`; not of the "
        "priority strategies.",
        examples=[{"save": "5 s"}],
    )

    @property
    def system(self) -> System:
        """The recovery system that it runs."""
        return SYSTEMS[self.strategy]

    @property
    def rule(self) -> str | float | None:
        """The interval in use: the one given, else the strategy's own."""
        default: str | None = self.system.default("interval")
        return default if self.interval is None else self.interval

    @property
    def priority_saving(self) -> SubSaves | None:
        """How the strategy cuts its intervals, as the paper does by default; None: not at all."""
        if "sub_saves" not in SYSTEMS[self.strategy].options:
            return None
        cut = self.sub_saves or SubSavesSection()
        return SubSaves(
            self.strategy.removeprefix(PRIORITY_PREFIX),
            fraction=cut.fraction,
            extra_h=cut.selection_h + cut.latency_h,
            n_large_tables=cut.large_tables,
            small_tables=cut.small_tables,
            sample_period=cut.sample_period,
        )

    @property
    def part(self) -> float:
        """A write's share of a whole save, and of the interval between whole saves."""
        return 1.0 if self.priority_saving is None else self.priority_saving.fraction

    @property
    def n_fewest(self) -> int:
        """The smallest allowed number of writes."""
        return 0 if self.priority_saving is None else self.priority_saving.n_per_interval

    def problems(self) -> Iterator[tuple[str, str]]:
        system, is_of_paper = SYSTEMS[self.strategy], self.strategy in STRATEGIES
        for key in ("interval", "target_pls", "sub_saves"):
            if getattr(self, key) is not None and key not in system.options:
                instead = "leave it out" if is_of_paper else "see its `options`"
                yield key, f"`{self.strategy}` does not take it: {instead}"
        if self.assumed and self.target_pls is None:
            yield "assumed", "goes with `target_pls`"
        if not is_of_paper:
            try:
                options_of(self.strategy, self.options)
            except ValidationError as error:
                for problem in error.errors(include_url=False):
                    yield f"options.{written_key(problem['loc'], self.options)}", problem["msg"]
        elif self.options is not None:
            yield "options", f"`{self.strategy}` has none: leave them out"
        if self.costs is not None and "sub_saves" in system.options:
            message = "saves rows first, at the costs of the section `costs`: leave them out here"
            yield "costs", f"`{self.strategy}` {message}"
        is_settled = isinstance(self.interval, float) or self.interval == NEVER
        rules = (self.rule,) if is_settled else (self.rule, system.default("interval"))
        for rule in [name for name in NEEDS_TARGET if name in rules][:1]:
            if "target_pls" not in system.options:
                yield "interval", f"`{self.strategy}` has no target PLS to derive it from"
            elif self.target_pls is None:
                message = "needs the portion of lost samples that you accept, for example 0.1"
                yield "target_pls", f"is missing: `{rule}` {message}"


RecoveryEntry = Annotated[
    RecoverySection,
    BeforeValidator(  # `- full` is short for `- {strategy: full}`
        lambda entry: {"strategy": entry} if isinstance(entry, str) else entry,
        json_schema_input_type=StrategyName | RecoverySection,
    ),
]
