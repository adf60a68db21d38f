"""The section `recovery`: which strategies and systems are compared, and how often each saves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic.json_schema import WithJsonSchema

from cprsim.errors import ParameterError
from cprsim.records import SmallTables, SubSaves
from cprsim.recovery.paper import INTERVAL_RULES, NEVER, PRIORITY, STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.costs import OwnCosts
from cprsim.scenario.quantities import Model, choices
from cprsim.scenario.system_options import SystemOptions, option_problems
from cprsim.units import TIME, Quantity

NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._+=-]{0,59}$"
NEEDS_TARGET = ("cpr", "cpr-undivided")  # the interval rules that start from a target PLS
IntervalTime = Annotated[float, Quantity(TIME, "1 ms", "100000 h", "2.5 h", in_steps=True)]
SubSaveTime = Annotated[float, Quantity(TIME, "0 s", "100 h", "2 s")]


def _known_strategy(name: str) -> str:
    if name not in SYSTEMS:
        raise ParameterError(f"is no strategy: {choices(name, tuple(SYSTEMS))}")
    return name


def _known_rule(name: str) -> str:
    if name not in INTERVAL_RULES:
        rules = choices(name, tuple(INTERVAL_RULES))
        raise ParameterError(f"is neither a time (such as 2.5 h) nor a rule: {rules}")
    return name


def _interval_written_as(value: Any) -> str:
    is_word = isinstance(value, str) and not any(c.isdigit() for c in value)
    return "as:rule" if is_word and value.strip(".+-").lower() not in ("nan", "inf") else "as:time"


StrategyName = Annotated[
    str,
    AfterValidator(_known_strategy),
    WithJsonSchema({"type": "string", "enum": list(SYSTEMS)}),
]
Rule = Annotated[
    str,
    AfterValidator(_known_rule),
    WithJsonSchema({"type": "string", "enum": list(INTERVAL_RULES)}),
]
Interval = Annotated[
    Annotated[IntervalTime, Tag("as:time")] | Annotated[Rule, Tag("as:rule")],
    Discriminator(_interval_written_as),
]
_SUMMARIES = "; ".join(f"{name}: {one.summary}" for name, one in SYSTEMS.items())


class SubSavesSection(Model):
    """How a priority strategy cuts its interval; the defaults are the paper's (recalled)."""

    fraction: float = Field(
        0.125,
        strict=True,
        gt=0,
        le=1,
        description="r: share of the rows of each large table that one sub-save writes, and of "
        "the interval between two of them; one over a whole number.",
    )
    selection_h: SubSaveTime = Field(
        0.0, alias="selection", description="To choose the rows, each time [time]."
    )
    latency_h: SubSaveTime = Field(
        0.0, alias="latency", description="Fixed cost of each sub-save on top [time]."
    )
    large_tables: int = Field(
        7, strict=True, ge=1, le=10_000, description="The so many largest tables are prioritised."
    )
    small_tables: SmallTables = Field(
        SmallTables.EACH_INTERVAL,
        description="When the other tables are saved: once an interval (equal bytes) or with every "
        "sub-save (more bytes, fresher rows).",
    )
    sample_period: int = Field(
        2, strict=True, ge=1, le=10**6, description="Of cpr-ssu: it looks at every n-th sample."
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        """A whole number of sub-saves makes an interval."""
        if abs(1 / self.fraction - round(1 / self.fraction)) > 1e-9:
            yield "fraction", f"is {self.fraction:g}; it must be one over a whole number, as 0.125"

    def record(self, tracker: str) -> SubSaves:
        """The same as the engines take it, with the tracker that chooses the rows."""
        return SubSaves(
            tracker,
            fraction=self.fraction,
            extra_h=self.selection_h + self.latency_h,
            n_large_tables=self.large_tables,
            small_tables=self.small_tables,
            sample_period=self.sample_period,
        )


class RecoverySection(Model):
    """One strategy to compare."""

    strategy: StrategyName = Field(description=f"What a failure does. {_SUMMARIES}.")
    name: str = Field(
        strict=True,
        pattern=NAME,
        description="What the tables call it; default the strategy. Needed to compare a strategy "
        "with itself at other settings.",
    )
    interval: Interval | None = Field(
        None,
        description="Progress between saves: a time, or a rule: young, daly, cpr (from target_pls, "
        "divided by the servers that fail together), cpr-undivided (as published), never. Absent: "
        "the strategy's own rule. A CPR strategy with a time, or never, and without target_pls "
        "decides nothing: it recovers partially.",
    )
    target_pls: float | None = Field(
        None,
        strict=True,
        ge=0,
        le=1,
        description="Portion of lost samples that you accept, a share between 0 and 1.",
        examples=[0.1],
    )
    assumed: bool | None = Field(
        None,
        strict=True,
        description="Whether `target_pls` is a guess that nobody accepted yet: then what is shown "
        "begins with that.",
    )
    options: SystemOptions | None = Field(
        None, description="Of the recovery systems: what each has besides."
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
    def rule(self) -> str | float | None:
        """The interval that counts: the one given, else the strategy's own."""
        default: str | None = SYSTEMS[self.strategy].default("interval")
        return default if self.interval is None else self.interval

    @property
    def priority_saving(self) -> SubSaves | None:
        """How the strategy cuts its intervals, as the paper does by default; None: not at all."""
        if not SYSTEMS[self.strategy].takes("sub_saves"):
            return None
        tracker = self.strategy.removeprefix(PRIORITY)
        return (self.sub_saves or SubSavesSection()).record(tracker)

    @model_validator(mode="before")
    @classmethod
    def _name_by_default(cls, entry: Any) -> Any:
        if not isinstance(entry, dict) or entry.get("name") is not None:
            return entry
        strategy = entry.get("strategy")
        known = isinstance(strategy, str) and strategy in SYSTEMS
        return {**entry, "name": strategy if known else "unnamed"}

    def problems(self) -> Iterator[tuple[str, str]]:
        """What is given is what the strategy takes."""
        if self.strategy not in STRATEGIES:
            for key in ("interval", "target_pls", "assumed", "sub_saves"):
                if getattr(self, key) is not None:
                    yield key, f"system `{self.strategy}` does not take it: see its `options`"
            for key, message in option_problems(self.strategy, self.options):
                yield f"options.{key}", message
            return
        if self.options is not None:
            yield "options", f"strategy `{self.strategy}` has none: leave them out"
        strategy = SYSTEMS[self.strategy]
        saves_rows_first = strategy.takes("sub_saves")
        if not strategy.takes("interval") and self.interval is not None:
            yield "interval", f"strategy `{self.strategy}` never saves: leave the interval out"
        if self.sub_saves is not None and not saves_rows_first:
            yield "sub_saves", f"strategy `{self.strategy}` saves no rows first: leave it out"
        if self.costs is not None and saves_rows_first:
            yield (
                "costs",
                f"strategy `{self.strategy}` saves rows first, at the costs of the section "
                "`costs`: leave them out here",
            )
        settled = isinstance(self.interval, float) or self.interval == NEVER
        rules = {self.rule} if settled else {strategy.default("interval"), self.rule}
        needs = rules & set(NEEDS_TARGET)
        if self.assumed and self.target_pls is None:
            yield "assumed", "goes with `target_pls`"
        if not strategy.takes("target_pls"):
            if self.target_pls is not None:
                yield "target_pls", f"strategy `{self.strategy}` does not use it: leave it out"
            if needs:
                yield "interval", f"strategy `{self.strategy}` has no target PLS to derive it from"
        elif needs and self.target_pls is None:
            yield (
                "target_pls",
                f"is missing: `{min(needs, key=str)}` needs the portion of lost samples that you "
                "accept, for example 0.1",
            )


def _strategy_alone(entry: Any) -> Any:
    """`- full` is short for `- {strategy: full}`."""
    return {"strategy": entry} if isinstance(entry, str) else entry


RecoveryEntry = Annotated[
    RecoverySection,
    BeforeValidator(_strategy_alone, json_schema_input_type=StrategyName | RecoverySection),
]
