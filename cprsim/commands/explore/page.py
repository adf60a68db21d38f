"""Content of the page: sliders, and the answer for the current values beside today's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from typing import Any, NamedTuple

from cprsim.commands import function_of
from cprsim.commands.options import Scenario, source_of
from cprsim.commands.run.answer import costs_table, main_of_run, overhead_picture
from cprsim.errors import CprsimError, ParameterError, Place, watch
from cprsim.files.units import DIMENSIONS, split_quantity, unit_factor
from cprsim.job.records import NO_NUMBER, Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.document import Table
from cprsim.pages.figures import words_of_key
from cprsim.pages.html import rendered
from cprsim.pages.money import WORK, money_tables, unit_of
from cprsim.recovery.paper import STRATEGIES
from cprsim.results.identity import flat
from cprsim.results.metrics import FINISHED, OVERHEAD
from cprsim.results.run import Result
from cprsim.results.words import estimated, hours, significant
from cprsim.scenario.assemble import assemble
from cprsim.scenario.prices import HOURS_PER_MONTH, shown
from cprsim.scenario.reading import MARKS_KEY, LoadedScenario, number_at, value_at
from cprsim.scenario.yaml_text import Plain, dump_plain

COARSE = 100  # replications while a slider moves


@dataclass(frozen=True)
class Explored:
    """The explored scenario as it is today, with its name on the command line."""

    today: Scenario
    name: str

    def loaded(self, sets: Sequence[str] = ()) -> LoadedScenario:
        """The scenario with the current values. Raises ScenarioError."""
        return source_of(self.today, sets).read()

    @cached_property
    def unmarked(self) -> Scenario:
        """Today without marks: a run tries no other values of assumed inputs, and takes less."""
        data = {key: of for key, of in self.loaded().data.items() if key != MARKS_KEY}
        return Scenario(self.today.path, dump_plain(data), self.today.overrides)

    @cached_property
    def answer_today(self) -> Answer:
        """The answer for the scenario as in its file."""
        return self._run(self.today)

    def answer(self, sets: Sequence[str], *, is_coarse: bool = False) -> Answer:
        """The answer of `cprsim run` for the current values; if coarse, with fewer replications."""
        n = self.loaded(sets).scenario.simulation.replications
        if sets and is_coarse and (n is None or n > COARSE):
            return self._run(self.unmarked, sets, replications=COARSE)
        return self._run(self.today, sets) if sets else self.answer_today

    def _run(self, *scenario: Any, **options: Any) -> Answer:
        answer: Any = function_of("run")(*scenario, **options)
        watch.doing("serving the page")
        return answer  # type: ignore[no-any-return]

    def command(self, sets: Sequence[str]) -> str:
        run = f"cprsim run {shlex.quote(self.name)}"
        return " \\\n    ".join([run, *(f"--set {shlex.quote(one)}" for one in sets)])

    def page(self, sets: Sequence[str], nonce: str) -> str:
        """The page with its sliders at the current values; its script asks for the answer."""
        values = {key.strip(): of for key, _, of in (one.partition("=") for one in sets)}
        sliders, found = sliders_of(self.loaded()), dict[str, Slider]()
        with suppress(CprsimError):  # which the answer shows
            found = sliders_of(self.loaded(sets)) if values.keys() - sliders.keys() else {}
        for key in [key for key in values if key not in sliders]:
            sliders[key] = found.get(key, Slider(key, BY_HAND))._replace(group=BY_HAND, today=None)
        more = {"name": self.name, "nonce": nonce, "values": values, "words": words_of_key}
        return rendered("explorer.html", sliders=list(sliders.values()), **more)

    def shown(self, sets: Sequence[str], *, is_coarse: bool, pixels: int) -> dict[str, Any]:
        """The answer as the page shows it. Raises CprsimError."""
        answer = self.answer(sets, is_coarse=is_coarse)  # its files are there as long as it is
        now: Result = answer.stored.made
        today: Result | None = self.answer_today.stored.made if sets else None
        width_in = min(max(pixels / 96, 4.0), 11.0)  # of the figure, by the pixels of CSS
        document, tables = main_of_run(now), money_tables(now.bills)
        if today is not None:
            table = costs_table(today)
            tables.append(replace(table, caption=f"Today: {table.caption}"))
        picture, command = overhead_picture(now, today, width_in), self.command(sets)
        pair = [] if today is None else [compared(now, today)]
        more = {"document": document, "compared": pair, "tables": tables, "command": command}
        html = rendered("explored.html", picture=picture, **more)
        summary = _summary(now) + (f"; today {_summary(today)}" if today else "")
        n_each = [of[FINISHED].n for of in now.summary.values()]
        return {"html": html, "summary": summary, "replications": max(n_each)}


def _summary(result: Result) -> str:
    """The cheapest strategy and its overhead."""
    best = result.cheapest
    return f"{best.name} {_overhead(result, best.name)}" if best else "no strategy finishes"


def _overhead(result: Result, name: str) -> str:
    of = result.summary.get(name, {}).get(OVERHEAD, Estimate(nan))
    return f"{estimated(of, 100)} %"


def compared(now: Result, today: Result) -> Table:
    """A row per strategy: overhead, and cost of a month of useful work, now and today."""
    (costs, unit), (before, _) = _months(now), _months(today)
    headings = ["strategy", "overhead now", "today", "a month now", "today"]
    rows = [
        [name, *(_overhead(of, name) for of in (now, today)),
         *(of.get(name, NO_NUMBER) for of in (costs, before))]
        for name in now.summary
    ]  # fmt: skip
    caption = f"Now, and today: the scenario as in its file. A month is {WORK}, in {unit}"
    return Table(caption, headings, rows)


def _months(result: Result) -> tuple[dict[str, str], str]:
    """Cost of a month by strategy, and its unit: node-hours where nothing has a price."""
    if bills := result.bills:
        return {name: shown(of.month.total_cents, "") for name, of in bills.items()}, unit_of(bills)
    jobs, summary = HOURS_PER_MONTH / result.useful_h, result.summary
    node_h = {name: significant(jobs * of["overhead_node_h"].mean) for name, of in summary.items()}
    return node_h, "node-hours of overhead"


# --------------------------------------------------------------------------- sliders

SECTIONS = (  # with numbers that decide what failures cost, in the order of the page
    "failures", "costs", "recovery", "cluster", "storage", "scopes", "silent", "planned", "job",
    "accuracy", "prices",
)  # fmt: skip
DEFAULTS, BY_HAND = "not in the file: defaults", "set by hand"
FACTORS = (8.0, 4.0, 2.0)  # from a value to an end of its range: the first that makes a scenario


class Slider(NamedTuple):
    """One number of the scenario: its value today, and its range."""

    key: str
    group: str  # heading under which the page shows it
    today: str | None = None  # as the scenario says it; empty: by a rule; None: the key is added
    rule: str = ""  # with its value today
    unit: str = ""  # of the numbers below
    number: float = 0.0
    low: float | None = None  # None: a field alone, without a slider
    high: float | None = None
    is_whole: bool = False


def sliders_of(loaded: LoadedScenario) -> dict[str, Slider]:
    """The sliders of a scenario by key: its numbers, intervals that rules decide, and defaults."""
    base, rows = loaded.varied({}, Place), dict[str, tuple[str, str, bool]]()
    filled = base.scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    for data in (loaded.data, filled):
        for key, _ in flat({section: data[section] for section in SECTIONS if section in data}):
            value = number_at(data, key)
            if value is not None and _takes(base, key, value, changes_nothing=True):
                rows.setdefault(key, (str(value), "", isinstance(value, int)))
    rows |= {key: (value, rule, False) for key, value, rule in _intervals(loaded)}
    found = list[Slider]()
    for key, (value, rule, is_whole) in rows.items():
        is_default = not rule and value_at(loaded.data, key) is None
        group = DEFAULTS if is_default else key.partition(".")[0]
        today, by_rule = ("", f"{rule}: {value}") if rule else (value, "")
        with suppress(ParameterError):  # it is no quantity
            unit, number, low, high = _range(base, key, value, is_whole)
            if low < high and "=" not in key:  # such a name would end the key of a `--set`
                found.append(Slider(key, group, today, by_rule, unit, number, low, high, is_whole))
    found.sort(key=lambda slider: [*SECTIONS, DEFAULTS].index(slider.group))
    return {slider.key: slider for slider in found}


def _takes(base: LoadedScenario, key: str, value: Plain, *, changes_nothing: bool = False) -> bool:
    """Whether a value makes a scenario at this key; the same one: then the key sets the number."""
    try:
        varied = base.varied({key: value}, Place)
    except CprsimError:
        return False
    return not changes_nothing or varied.scenario == base.scenario


def _intervals(loaded: LoadedScenario) -> Iterator[tuple[str, str, str]]:
    """Key, value today and rule of each interval that the scenario leaves to a rule."""
    for entry, policy in zip(loaded.scenario.recovery, assemble(loaded).policies, strict=True):
        option = entry.system.interval
        if option is None or isinstance(entry.interval, float) or option in (entry.options or {}):
            continue
        # of several tiers a user chooses how often the slowest is written
        tiers_h = [capture.every_h for capture in policy.captures if capture.every_h is not None]
        every_h = policy.interval_h if policy.from_cpr_paper else max(tiers_h, default=inf)
        if every_h < inf:
            below = option if entry.strategy in STRATEGIES else f"options.{option}"
            value = hours(every_h).replace(",", "")
            yield f"recovery.{entry.name}.{below}", value, policy.interval_rule


def _range(
    base: LoadedScenario, key: str, value: str, is_whole: bool
) -> tuple[str, float, float, float]:
    """Unit, number and both ends of its range. Raises ParameterError: it is no quantity."""
    exact, unit = split_quantity(value)
    number, unknown = float(exact), (base.scenario.unknown or {}).get(key)
    if unknown is not None:  # the scenario says the range
        ends = [split_quantity(str(end)) for end in (unknown.low, unknown.high)]
        low, high = (float(end * unit_factor(own, unit)) for end, own in ends)
        return unit, number, min(low, number), max(high, number)

    def first(*candidates: float) -> float:
        for end in candidates:
            at = round(end) if is_whole else float(f"{end:.3g}")
            if _takes(base, key, f"{at:.15g} {unit}" if unit else at):
                return at
        return round(number) if is_whole else number

    if number:
        low = first(*(number / factor for factor in FACTORS))
        return unit, number, low, first(*(number * factor for factor in FACTORS))
    scales = [  # a zero has none: that of the least example of its quantity
        min(map(one.parse, one.examples)) / float(one.factors[unit])
        for one in DIMENSIONS if unit in one.factors
    ]  # fmt: skip
    return unit, number, number, first(*(factor * of for of in scales for factor in FACTORS))
