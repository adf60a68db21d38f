"""Everything that ``cprsim select`` prints: the limit, the table, the decision and its reasons."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from rich.console import Console

from cprsim.present.terminal import plain_table, print_whole, say
from cprsim.report.selection_sentences import sentences
from cprsim.results.words import (
    NO_NUMBER,
    count,
    hours,
    percent,
    portion,
    with_interval,
)
from cprsim.selector import Candidate, Limit, Selection
from cprsim.selector.words import decimals, entries, quantity_of, typed

CHOSEN = "*"
HOW_TO_RUN = "To run them so, put into the scenario:"
HEADINGS = ("overhead\n% of useful", "less than full\n% points", "PLS")


OF_COSTS = HEADINGS[:2]
FIRST = 2  # columns before those of numbers


def print_selection(console: Console, selection: Selection, name: str, n_nodes: int) -> None:
    """Print a selection.

    Parameters
    ----------
    console : where to; wraps sentences on a terminal and leaves them whole in a pipe
    name, n_nodes : of the scenario and its job
    """
    say(
        console,
        f"{name}: {hours(selection.useful_h)} of useful work on {count(n_nodes, 'node')}, "
        f"{count(selection.n_replications, 'replication')}. " + asked_of(selection),
    )
    if selection.curve is not None and selection.limited:
        say(console, f"Staleness curve: {selection.curve}.")
    console.print()
    print_table(console, selection)
    for paragraph in sentences(selection):
        console.print()
        for sentence in paragraph:
            say(console, sentence)
    console.print(f"\n{HOW_TO_RUN}\n", markup=False, highlight=False)
    console.print(entries_text(selection), markup=False, highlight=False, soft_wrap=True)


def entries_text(selection: Selection) -> str:
    """The section `recovery` of a scenario that runs every strategy as selected."""
    chosen = selection.chosen.strategy
    lines = [
        f"  - {text}{'  # recommended' if strategy == chosen else ''}"
        for strategy, text in entries(selection).items()
    ]
    return "\n".join(["recovery:", *lines])


def asked_of(selection: Selection) -> str:
    """The limit in a sentence, or that there is no need of one."""
    if not selection.limited:
        return "Nothing that is compared loses samples, so that no limit is needed."
    return limit_in_words(selection.limit)


def limit_in_words(limit: Limit) -> str:
    """What is held to the limit, in a sentence."""
    what, held = quantity_of(limit), f"held at its {100 * limit.confidence:g} % upper bound"
    if limit.risk is None:
        return f"Limit: expected {what} at most {limit.most:g}, {held}."
    jobs = f"{100 * limit.risk:g} % of the jobs"
    return f"Limit: {what} of {jobs} at most {limit.most:g}, {held}."


def print_table(console: Console, selection: Selection) -> None:
    """A row per candidate: full recovery at its best, the strategies, the paper's formula."""
    table = plain_table()
    table.add_column("strategy", no_wrap=True)
    table.add_column("saves\nevery", no_wrap=True)
    what = quantity_of(selection.limit)
    headings = HEADINGS if what == "PLS" else (*HEADINGS, f"{what}\nexpected")
    bound = f"{100 * selection.limit.confidence:g} % upper\nbound"
    shown = (*headings, bound, "keeps\nlimit") if selection.limited else OF_COSTS
    for heading in shown:
        table.add_column(heading, justify="right", no_wrap=True, vertical="top")
    for row in _rows(selection, wide=what != "PLS"):
        table.add_row(*row[: FIRST + len(shown)])
    print_whole(console, table)


def _rows(selection: Selection, *, wide: bool) -> Iterator[list[str]]:
    digits = decimals(selection.limit.most)
    yield _row(selection, selection.full, "full", digits, wide=wide)
    for name, one in selection.best.items():
        if one is None:
            yield [f"  {name}", "no interval worth its saves keeps the limit"]
        else:
            yield _row(selection, one, name, digits, wide=wide)
    for one in selection.formula:
        yield _row(selection, one, f"{one.strategy}, {one.rule} formula", digits, wide=wide)


def _row(selection: Selection, one: Candidate, name: str, digits: int, *, wide: bool) -> list[str]:
    mark = CHOSEN if one is selection.chosen else " "
    first = [f"{mark} {name}", every(one)]
    if one.finished_fraction < 1:
        return [*first, f"{percent(one.finished_fraction)} done"]
    against = one.benefit
    same = one is selection.full or isnan(against.mean)
    expected = with_interval(one.loss.mean, one.loss.half_width, at_least=digits)
    return [
        *first,
        with_interval(100 * one.overhead.mean, 100 * one.overhead.half_width),
        NO_NUMBER if same else with_interval(100 * against.mean, 100 * against.half_width),
        portion(one.pls.mean) if one is not selection.full else NO_NUMBER,
        *([expected] if wide else []),
        f"{one.held:.{digits}f}",
        "yes" if one.keeps else "no",
    ]


def every(one: Candidate) -> str:
    """The interval as it can be typed, and gives the same saves."""
    in_option = f" ({one.option})" if one.option else ""
    if one.n_saves == 0:
        return f"never saves{in_option}"
    if one.rule or (one.is_system and not one.option):
        return hours(one.policy.save_interval_h)
    return f"{typed(one.policy.save_interval_h)}{in_option}"
