"""Content of the page: sliders, and the answer for the current values beside today's."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from typing import Any

from cprsim.commands import function_of
from cprsim.commands.explore.sliders import BY_HAND, Slider, sliders_of
from cprsim.commands.options import Scenario, source_of
from cprsim.commands.run.answer import costs_table, main_of_run, overhead_picture
from cprsim.errors import CprsimError, watch
from cprsim.job.records import NO_NUMBER, Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.document import Table, row_columns
from cprsim.pages.figures import words_of_key
from cprsim.pages.html import rendered
from cprsim.pages.money import WORK, money_section, unit_of
from cprsim.results.metrics import FINISHED, OVERHEAD
from cprsim.results.run import Result
from cprsim.results.words import significant, with_interval
from cprsim.scenario.prices import HOURS_PER_MONTH, shown
from cprsim.scenario.reading import MARKS_KEY, LoadedScenario
from cprsim.scenario.yaml_text import dump_plain

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
        return Scenario(replace(source_of(self.today), text=dump_plain(data)))

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
        """The command that gives the same answer."""
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
        document, tables = main_of_run(now), money_section(now)
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
    return f"{with_interval(100 * of.mean, 100 * of.half_width)} %"


def compared(now: Result, today: Result) -> Table:
    """A row per strategy: overhead, and cost of a month of useful work, now and today."""
    (costs, unit), (before, _) = _months(now), _months(today)
    columns = row_columns("strategy", "overhead now", "today", "a month now", "today")
    rows = [
        [name, *(_overhead(of, name) for of in (now, today)),
         *(of.get(name, NO_NUMBER) for of in (costs, before))]
        for name in now.summary
    ]  # fmt: skip
    caption = f"Now, and today: the scenario as in its file. A month is {WORK}, in {unit}"
    return Table(caption, columns, rows)


def _months(result: Result) -> tuple[dict[str, str], str]:
    """Cost of a month by strategy, and its unit: node-hours where nothing has a price."""
    if bills := result.bills:
        return {name: shown(of.month.total_cents, "") for name, of in bills.items()}, unit_of(bills)
    hours = {name: of["overhead_node_h"].mean for name, of in result.summary.items()}
    jobs = HOURS_PER_MONTH / result.useful_h
    return {name: significant(jobs * of) for name, of in hours.items()}, "node-hours of overhead"
