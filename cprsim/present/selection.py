"""A selection of ``cprsim select``: what to run, within which limit, and why."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

from cprsim.files import encode
from cprsim.present.document import (
    Block,
    Cell,
    Column,
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    Words,
)
from cprsim.present.money import bills_as_json, cheapest, money_table
from cprsim.present.provenance import FOUND_AGAIN, origin, places
from cprsim.present.selection_sentences import (
    alike,
    by_stand_ins,
    decision,
    drawn,
    flips,
    formula,
    known,
    left_out,
    sentences,
    warnings,
)
from cprsim.present.sensitivity import sensitivity_sentences
from cprsim.present.systems_listing import plain_policy
from cprsim.records import NO_NUMBER
from cprsim.results.money import JobPrices, prices_in
from cprsim.results.words import count, hours, percent, portion, with_interval
from cprsim.selector.bills import bills_of_selection
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.folder import Selected
from cprsim.selector.limit import Limit
from cprsim.selector.words import decimals, entries, quantity_of, typed

CHOSEN = "*"
HOW_TO_RUN = "To run them so, put into the scenario:"
N_OF_COSTS = 4  # the first columns, which are all where nothing loses samples


def selection_blocks(made: Selected, n_nodes: int, *, found_again: bool = False) -> list[Block]:
    """What a terminal shows."""
    note = FOUND_AGAIN if found_again else ""
    return [
        *summary(made.selection, made.name, n_nodes, prices_in(made.path)),
        places(made.path, [made.path / "pareto.png"], note),
    ]


def summary(
    selection: Selection, name: str, n_nodes: int, prices: JobPrices | None = None
) -> list[Block]:
    """What is said of a selection where there is little room."""
    heading = [
        f"{name}: {hours(selection.useful_h)} of useful work on {count(n_nodes, 'node')}, "
        f"{count(selection.n_replications, 'replication')}. {asked_of(selection)}"
    ]
    if selection.curve is not None and selection.limited:
        stands_in = " It stands in for your model's." if selection.stand_ins else ""
        heading.append(f"Staleness curve: {selection.curve}.{stands_in}")
    return [
        Words(heading),
        candidates_table(selection),
        *money(selection, prices),
        *map(Words, sentences(selection)),
        Words(sensitivity(selection)),
        Words([HOW_TO_RUN]),
        _to_paste(selection),
    ]


def entries_text(selection: Selection) -> str:
    """The section `recovery` of a scenario that runs every strategy as selected."""
    chosen = selection.chosen.strategy
    lines = [
        f"  - {text}{'  # recommended' if strategy == chosen else ''}"
        for strategy, text in entries(selection).items()
    ]
    return "\n".join(["recovery:", *lines])


def _to_paste(selection: Selection) -> ListingBlock:
    """The same, and the section `accuracy` that asks for it."""
    return ListingBlock(
        "For the scenario", f"{selection.accuracy}\n{entries_text(selection)}".strip()
    )


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


# ------------------------------------------------------------------------------ the candidates


def candidates_table(selection: Selection) -> Table:
    """A row per candidate: full recovery at its best, the strategies, the paper's formula."""
    what = quantity_of(selection.limit)
    bound = f"{100 * selection.limit.confidence:g} % upper bound"
    columns = [
        Column("strategy", is_number=False),
        Column("saves every", is_number=False, brief="saves\nevery"),
        Column("overhead, %", brief="overhead\n% of useful"),
        Column("less than full recovery, % points", brief="less than full\n% points"),
        Column("PLS"),
        Column(f"expected {what}", brief=f"{what}\nexpected", in_full=what == "PLS"),
        Column(bound, brief=bound.replace(" bound", "\nbound")),
        Column("keeps the limit", brief="keeps\nlimit"),
    ]
    n = len(columns) if selection.limited else N_OF_COSTS
    return Table(
        caption=_caption(selection),
        columns=columns[:n],
        rows=[row[:n] for row in _rows(selection)],
    )


def _caption(selection: Selection) -> str:
    interval = "± the half-width of the 95 % interval."
    if not selection.limited:
        return f"Each strategy at its best; {interval}"
    curve = "" if selection.curve is None else f" Staleness curve: {selection.curve}."
    return (
        "Full recovery at its best, each strategy at the best interval that keeps the limit, and "
        f"the paper's formula; {interval}{curve}"
    )


def _rows(selection: Selection) -> Iterator[list[str | Cell]]:
    yield _row(selection, selection.full, "full")
    for name, one in selection.best.items():
        if one is None:
            yield _padded([_name(name), "no interval that is worth its saves keeps the limit"])
        else:
            yield _row(selection, one, name)
    for one in selection.formula:
        yield _row(selection, one, f"{one.strategy}, {one.rule} formula")


def _row(selection: Selection, one: Candidate, name: str) -> list[str | Cell]:
    first: list[str | Cell] = [_name(name, chosen=one is selection.chosen), every(one)]
    if one.finished_fraction < 1:
        return _padded([*first, f"{percent(one.finished_fraction)} done"])
    digits, benefit = decimals(selection.limit.most), one.benefit
    is_full = one is selection.full
    same = is_full or isnan(benefit.mean)
    return [
        *first,
        with_interval(100 * one.overhead.mean, 100 * one.overhead.half_width),
        NO_NUMBER if same else with_interval(100 * benefit.mean, 100 * benefit.half_width),
        NO_NUMBER if is_full else portion(one.pls.mean),
        with_interval(one.loss.mean, one.loss.half_width, at_least=digits),
        f"{one.held:.{digits}f}",
        "yes" if one.keeps else "no",
    ]


def _name(name: str, *, chosen: bool = False) -> Cell:
    if chosen:
        return Cell(f"{name} (recommended)", f"{CHOSEN} {name}")
    return Cell(name, f"  {name}")


def _padded(cells: list[str | Cell]) -> list[str | Cell]:
    """A row that has no number in its other columns."""
    return [*cells, *[Cell(NO_NUMBER, "")] * (8 - len(cells))]


def every(one: Candidate) -> str:
    """The interval as it can be typed, and gives the same saves."""
    in_option = f" ({one.option})" if one.option else ""
    if one.n_saves == 0:
        return f"never saves{in_option}"
    if one.rule or (one.is_system and not one.option):
        return hours(one.policy.interval_h)
    return f"{typed(one.policy.interval_h)}{in_option}"


def money(selection: Selection, prices: JobPrices | None) -> list[Block]:
    """What each candidate costs in all, and which is the cheapest, where there are prices."""
    bills = bills_of_selection(selection, prices)
    if not bills:
        return []
    return [money_table(bills), Words([cheapest(bills, selection.chosen.strategy)])]


def sensitivity(selection: Selection) -> list[str]:
    """Which unknown input would make another candidate the cheapest, where some are unknown."""
    found = selection.sensitivity
    if found is None:
        return []
    return ["At the intervals above, by cost in all:", *sensitivity_sentences(found)]


# ------------------------------------------------------------------------------ a page


def document_of_selection(made: Selected) -> Document:
    """Everything about one selection. Raises ResultError for an unreadable file."""
    chosen = made.selection
    why: list[Block] = [
        Words(
            [
                *formula(chosen),
                *flips(chosen),
                *sensitivity(chosen),
                *drawn(chosen),
                *left_out(chosen),
                *known(chosen),
            ]
        )
    ]
    return Document(
        title=f"What to run: {made.name}",
        question=(
            f"How should a job of {hours(chosen.useful_h)} of useful work recover from failures, "
            f"and how often save? {asked_of(chosen)}"
        ),
        answer=[*decision(chosen), *alike(chosen), *by_stand_ins(chosen), *warnings(chosen)],
        sections=[
            Section(
                "What there is to choose from",
                [_picture(made), candidates_table(chosen), *money(chosen, prices_in(made.path))],
            ),
            Section("How to run it", [_to_paste(chosen)]),
            Section("What the decision rests on", why),
            *origin(made.manifest, made.path),
        ],
    )


def _picture(made: Selected) -> Picture:
    from cprsim.plots.selection import selection_figure

    against, shown = "the number of saves", "A line per strategy"
    line = "over the number of saves, with the choice marked"
    if made.selection.limited:
        against = quantity_of(made.selection.limit)
        shown = "A point per strategy and interval"
        line = (
            f"over the upper bound of the {against}, with full recovery, "
            "the limit and the choice marked"
        )
    return Picture(
        caption=f"Overhead over {against}",
        alternative=(
            f"{shown}: overhead in percent of useful time {line}. The table below has "
            "the strategies at their best."
        ),
        draw=lambda: selection_figure(made.selection, made.name),
    )


# ------------------------------------------------------------------------------ for scripts


def selection_as_json(made: Selected) -> dict[str, Any]:
    """The object that ``cprsim select --json`` prints."""
    selection = made.selection
    return {
        "name": made.name,
        "results": str(made.path),
        **encode(selection),
        "full": _plain(selection.full),
        "best": {
            name: None if one is None else _plain(one) for name, one in selection.best.items()
        },
        "formula": [_plain(one) for one in selection.formula],
        "front": {name: [_plain(one) for one in front] for name, front in selection.front.items()},
        "entries": entries(selection),
        **bills_as_json(bills_of_selection(selection, prices_in(made.path))),
    }


def _plain(one: Candidate) -> dict[str, Any]:
    """A candidate; what it does stands in its own place, and of a recovery system alone."""
    does = plain_policy(one.policy)
    elsewhere = does.keys() - {"name"} | {"is_strategy"}
    shown = {key: value for key, value in encode(one).items() if key not in elsewhere}
    system = does if one.is_system else None
    return {**shown, "on_failure": one.policy.on_failure, "system": system}
