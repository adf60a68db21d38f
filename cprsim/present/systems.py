"""A comparison of recovery systems: what each costs and takes, which is cheapest, how to run it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isnan
from typing import Any

from cprsim.files import encode, finite_or_none
from cprsim.plots.systems import systems_figure
from cprsim.present.document import (
    Block,
    Column,
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    Words,
)
from cprsim.present.money import WORK, bills_as_json, cheapest, money_section
from cprsim.present.provenance import origin
from cprsim.present.sensitivity import sensitivity_sentences
from cprsim.records import NO_NUMBER, interval
from cprsim.results import FINISHED
from cprsim.results.metrics import parts_among
from cprsim.results.money import Bills, bills_in, cheapest_of
from cprsim.results.words import count, hours, percent_number, significant, with_interval
from cprsim.scenario.prices import shown
from cprsim.systems_compared.comparison import (
    BEST,
    KEPT,
    PRICED,
    TIED,
    UNPRICED,
    WITHIN,
    Comparison,
    Standing,
    verdict_of,
)
from cprsim.systems_compared.lineup import FOUND
from cprsim.systems_compared.words import (
    columns_of_fates,
    difference,
    in_percent,
    interval_of,
    intervals_in_words,
    lost_at_most,
    name_of,
    overhead,
    ratio,
)

GBIT_S_OF_BYTES_PER_H = 8 / 3600 / 1e9
GROUPS = {  # columns of the second table: the parts that each adds up
    "lost\nwork": ("lost",),
    "saves": ("save",),
    "loads": ("load",),
    "wait for\nspare": ("wait",),
    "detect": ("detect",),
    "restart": ("reschedule", "regroup"),
    "rebuild": ("replay", "rebuild"),
    "slower": ("degraded", "tax"),
}
MEANS = ("ettr", "ettr_paid", "overhead_h", "overhead_node_h", "wall_h", "failures", "saves", "pls")
NO_COLUMNS = ("entry", "interval", "replications", "more_than_today", "unknown", "runs_as")
EVERY, ETTR, ETTR_PAID = "saves\nevery", "ETTR", "ETTR\npaid"  # columns of the first
MEMORY, NODES = "memory\n%", "extra\nnodes"
OF_A_PAGE = (ETTR, ETTR_PAID, MEMORY, NODES)  # a terminal leaves them out
Cells = Mapping[str, Callable[[Any], str]]  # of a row, by the heading of the column
Row = Sequence[Any]  # of a table: what has the same cells
N_CHEAPEST = 5  # rows that a terminal shows, besides today and what runs today


def systems_blocks(
    comparison: Comparison,
    *,
    found_again: bool = False,
    everything: bool = False,
    verbose: bool = False,
) -> list[Block]:
    """What a terminal shows: the answer, one table, what it rests on."""
    result, found, picks = comparison.result, comparison.standings, _picks(comparison)
    bills, whole = bills_in(result), everything or verbose
    cells = _cells_of_costs(found, bills)
    rows = _alike(found, cells)
    if not whole:
        always = {comparison.today, *(one.name for one in picks)}
        rows = _cheapest_rows(rows, comparison.today, always)
    seen = [one for one in found if any(one in row for row in rows)]
    run = seen if whole else [one for one in picks if one.name != comparison.today]
    n_more = len(found) - len(seen)
    remarks = [
        f"{comparison.name}: {hours(result.useful_h)} of useful work on "
        f"{count(result.n_nodes, 'node')}, {count(found[0].summary[FINISHED].n, 'replication')}; "
        f"{intervals_in_words(comparison)}. In % of useful time, ± the half-width of the 95 % "
        "interval.",
        *([f"Assumed: {' '.join(comparison.assumed)}"] if comparison.assumed else []),
        *(careful(comparison) if verbose else _accuracy(comparison, seen)),
        *([] if verbose else result.warnings),
        *(not_compared(comparison) if verbose else _left_unsaid(comparison, n_more)),
    ]
    return [
        Words(answer(comparison)),
        _costs(cells, rows),
        *_contents(comparison),
        *(tables_of(found, bills)[1:] if verbose else []),
        *(money_section(result) if verbose else []),
        Words(remarks),
        *([Words(["To run it, put into the scenario:"])] if run else []),
        *([ListingBlock("For the scenario", entries_text(run))] if run else []),
        ListingBlock("", f"results  {result.path}"),
    ]


def _picks(comparison: Comparison) -> list[Standing]:
    """The best, and the cheapest that runs today where that is another."""
    best, runs = comparison.cheapest, comparison.cheapest_that_runs
    return [one for one in (best, None if runs is best else runs) if one is not None]


def _cheapest_rows(rows: Sequence[Row], today: str, always: Container[str]) -> list[Row]:
    """The cheapest, and wherever they stand today and what is recommended."""
    others = [row for row in rows if all(one.name != today for one in row)][:N_CHEAPEST]
    return [row for row in rows if row in others or any(one.name in always for one in row)]


def _left_unsaid(comparison: Comparison, n_more: int) -> Iterator[str]:
    """What `--all` and `-v` would show."""
    said = []
    if n_more:
        said.append(f"{count(n_more, 'system')} that cost more: `--all`")
    if n := len(comparison.left_out):
        said.append(f"{count(n, 'system')} not compared: `cprsim -v compare-systems` says why")
    if said:
        yield f"{'; '.join(said)}."


def document_of_systems(comparison: Comparison) -> Document:
    """Everything about one comparison. Raises ResultError for an unreadable file."""
    found, result = comparison.standings, comparison.result
    tables = tables_of(found, bills_in(result))
    picture = Picture(
        caption="Overhead by system and cause",
        alternative=(
            "A bar per system, the cheapest on top: mean overhead in percent of useful time, by "
            "cause, with the 95 % interval of the total. The tables below have the numbers."
        ),
        draw=lambda: systems_figure(comparison),
    )
    return Document(
        title=f"Which recovery system: {comparison.name}",
        question=(
            f"Which recovery system costs a job of {hours(result.useful_h)} of useful work on "
            f"{result.n_nodes} nodes least, {intervals_in_words(comparison)}?"
        ),
        answer=[*answer(comparison), *comparison.assumed, *careful(comparison)],
        sections=[
            Section("All that can run the job", [picture, *tables, *_contents(comparison)]),
            Section("What it costs in all", money_section(result)),
            Section("What can't run it", [Words(not_compared(comparison))]),
            Section("How to run them", [ListingBlock("For the scenario", entries_text(found))]),
            *origin(result.manifest, result.path),
        ],
    )


def entries_text(found: Sequence[Standing]) -> str:
    """The section `recovery` of a scenario that runs every system as compared."""
    return "\n".join(["recovery:", *(f"  - {one.facts.text}" for one in found)])


# --------------------------------------------------------------------------- tables


def tables_of(found: Sequence[Standing], bills: Bills) -> list[Table]:
    """Costs, where the hours go, what is survived: a row per system, or several that are alike."""
    cells = _cells_of_costs(found, bills)
    tables = (_costs(cells, _alike(found, cells)), _hours(found), _survived(found))
    return [table for table in tables if table.columns[1:]]


def _alike(found: Sequence[Any], cells: Cells) -> list[Row]:
    """What has the same cells, together."""
    rows: dict[tuple[str, ...], list[Any]] = {}
    for one in found:
        rows.setdefault(tuple(cell(one) for cell in cells.values()), []).append(one)
    return [*rows.values()]


def _table(
    caption: str,
    first: str,
    cells: Cells,
    rows: Sequence[Row],
    *,
    named: Callable[[Any], str] = lambda one: one.name,
) -> Table:
    """A table with headings in several lines on a terminal."""
    columns = [
        Column(
            heading.replace("\n", " "),
            is_number=heading not in (first, EVERY),
            brief=heading,
            in_full=heading in OF_A_PAGE,
        )
        for heading in (first, *cells)
    ]
    texts = [
        (", ".join(map(named, row)), *(cell(row[0]) for cell in cells.values())) for row in rows
    ]
    return Table(caption, columns, texts)


def _cells_of_costs(found: Sequence[Standing], bills: Bills) -> Cells:
    """What each costs; on a page what it takes too, where any takes it."""
    cells: dict[str, Callable[[Standing], str]] = {
        EVERY: interval_of,
        "overhead\n%": overhead,
        "more than\nthe best": difference,
        ETTR: partial(ratio, "ettr"),
    }
    if any(ratio("ettr_paid", one) != ratio("ettr", one) for one in found):
        cells[ETTR_PAID] = partial(ratio, "ettr_paid")
    if any(one.accuracy not in (KEPT, UNPRICED) for one in found):
        cells["AUC lost\n×10⁻⁴"] = _accuracy_lost
    if any(one.policy.tax.memory for one in found):
        cells[MEMORY] = lambda one: percent_number(one.policy.tax.memory)
    if any(one.policy.tax.nodes for one in found):
        cells[NODES] = lambda one: significant(one.policy.tax.nodes)
    if bills:
        unit = next(iter(bills.values())).job.currency or "cost"
        cells[f"{unit} for\n730.5 h\nof work"] = partial(_month, bills)
    return cells


def _costs(cells: Cells, rows: Sequence[Row]) -> Table:
    caption = (
        "What each costs and takes; ± the half-width of the 95 % interval, of paired differences "
        "where it is more than the best"
    )
    table = _table(caption, "system", cells, rows, named=name_of)
    columns = [*table.columns, Column("runs as", is_number=False)]
    texts = [(*texts, _runs_as(row)) for texts, row in zip(table.rows, rows, strict=True)]
    return replace(table, columns=columns, rows=texts)


def _runs_as(row: Row) -> str:
    names = dict.fromkeys(one.facts.runs_as for one in row if one.facts.runs_as)
    return ", ".join(names) or NO_NUMBER


def _month(bills: Bills, one: Standing) -> str:
    if one.name not in bills:
        return NO_NUMBER
    amount = f"{bills[one.name].month.total_cents / 100:,.0f}"
    return f"≥ {amount}" if one.facts.unknown else amount


def _accuracy_lost(one: Standing) -> str:
    """What it loses of AUC, in 0.0001."""
    loss = one.summary["auc_loss"]
    if one.accuracy in (KEPT, UNPRICED):
        return "0" if one.accuracy == KEPT else UNPRICED
    return NO_NUMBER if isnan(loss.mean) else with_interval(1e4 * loss.mean, 1e4 * loss.half_width)


def _hours(found: Sequence[Standing]) -> Table:
    """Where the hours go, in % of useful time; columns of nothing are left out."""
    done = [one for one in found if one.finishes]

    def share(parts: Sequence[str], one: Standing) -> str:
        return percent_number(sum(map(one.part, parts)))

    cells: Cells = {
        heading: partial(share, parts)
        for heading, parts in GROUPS.items()
        if any(one.part(part) > 0 for one in done for part in parts)
    }
    caption = "Where the hours go, in % of useful time"
    return _table(caption, "of which, %", cells, _alike(done, cells))


def _survived(found: Sequence[Standing]) -> Table:
    """What a failure of each kind takes at most, and the bytes that are moved."""
    cells: dict[str, Callable[[Standing], str]] = {
        "\n".join([names[0].replace(" ", "\n"), *names[1:]]): partial(lost_at_most, names[0])
        for names in columns_of_fates(found)
    }
    if found[0].facts.storage_bytes_per_h is not None:
        cells["to store\nGbit/s"] = lambda one: _gbit_s(one.facts.storage_bytes_per_h)
        cells["to peers\nGbit/s"] = lambda one: _gbit_s(one.facts.peers_bytes_per_h)
    caption = "Progress lost at most by a failure of each kind, and the bytes that saves move"
    return _table(caption, "lost at most\nby", cells, _alike(found, cells))


def _gbit_s(bytes_per_h: float | None) -> str:
    return NO_NUMBER if bytes_per_h is None else significant(bytes_per_h * GBIT_S_OF_BYTES_PER_H)


# --------------------------------------------------------------------------- sentences


def answer(comparison: Comparison) -> list[str]:
    """Which system costs least, in hours and in money, and what it saves against today."""
    sections = (_cheapest, _kept, _in_money, _against_today)
    return [sentence for section in sections for sentence in section(comparison)]


def _cheapest(comparison: Comparison) -> list[str]:
    """Which system, which that runs today, and which can't be told from it."""
    found, picks = comparison.standings, _picks(comparison)
    if not picks:
        return ["No system that keeps the job's accuracy lets all jobs finish."]
    best, *runs = picks
    sentence = f"Cheapest: {best.name}{_as(best)}, {overhead(best)} % of useful time"
    if not best.facts.runs_as:
        sentence += ", a paper only: nothing that is maintained runs it"
    sentences = [f"{sentence}."]
    sentences += [
        f"Cheapest that runs today: {one.name}{_as(one)}, {overhead(one)} %." for one in runs
    ]
    if tied := [name for name in comparison.tied if name != comparison.today]:
        sentences.append(
            f"Not distinguished from {best.name}: {_few(tied)} (the 95 % interval of the paired "
            "difference contains 0)."
        )
    lower = [one for one in found if one.facts.unknown and one.more and one.more.mean < 0]
    if lower:
        missing = [
            f"{one.name} {overhead(one)} % (`{'`, `'.join(one.facts.unknown)}`)" for one in lower
        ]
        sentences.append(
            f"May cost less, no source has a figure: {_few(missing)}. Give it in the `options` of "
            "the entry."
        )
    return sentences


def _kept(comparison: Comparison) -> list[str]:
    """The fewest contents that do not surely cost more than a greater number."""
    enough = next((one for one in comparison.contents if not one.costs_more), None)
    if enough is None:
        return []
    return [
        f"Keep {count(enough.n_kept, 'content')} (`costs.save.kept`): with more, {comparison.best} "
        f"does not surely cost less. {percent_number(enough.none_clean)} % of silent errors are "
        "then noticed with no clean content left (derived)."
    ]


def _contents(comparison: Comparison) -> list[Table]:
    """The cheapest system with each number of contents; nothing without silent errors."""
    cells: Cells = {
        "overhead\n%": lambda one: in_percent(one.overhead),
        "no clean one\nleft, %": lambda one: percent_number(one.none_clean),
    }
    caption = f"{comparison.best} by contents kept, and silent errors that are noticed too late"
    rows = _alike(comparison.contents, cells)
    table = _table(caption, "contents\nkept", cells, rows, named=lambda one: str(one.n_kept))
    return [table] if rows else []


def _as(one: Standing) -> str:
    return f" (runs as {one.facts.runs_as})" if one.facts.runs_as else ""


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - N_CHEAPEST} more" if len(names) > N_CHEAPEST else ""
    return ", ".join(names[:N_CHEAPEST]) + more


def _against_today(comparison: Comparison) -> list[str]:
    """What the best, and the cheapest that runs today, save against how the job runs now."""
    bills = bills_in(comparison.result)
    now = next((one for one in comparison.standings if one.name == comparison.today), None)
    if now is None:
        return []
    how = f"today ({now.facts.strategy}, every {interval_of(now)}: {overhead(now)} %)"
    saved = [
        f"{one.name} {_saved(comparison, one, now, bills)}"
        for one in _picks(comparison)
        if one.than_today is not None
    ]
    if now.verdict == BEST:
        return [f"Nothing costs less than {how}."]
    return [f"Against {how}: {'; '.join(saved)}."] if saved else []


def _saved(comparison: Comparison, one: Standing, now: Standing, bills: Bills) -> str:
    assert one.than_today is not None, "both finish"
    less, half = -one.than_today.mean, one.than_today.half_width
    if verdict_of(one.than_today) == TIED:
        return "is not distinguished from it"
    useful_h = comparison.result.useful_h
    words = f"saves {with_interval(less * useful_h, half * useful_h)} h a job"
    if {one.name, now.name} <= set(bills):
        months = [bills[name].month for name in (now.name, one.name)]
        cents = months[0].total_cents - months[1].total_cents
        words += f" and {shown(cents, months[0].currency)} per {WORK}"
    return words


def _in_money(comparison: Comparison) -> list[str]:
    """Which system of those that may be the best is the cheapest in all; what would change that."""
    bills = comparison.bills_that_count(bills_in(comparison.result))
    if bills and cheapest_of(bills) != comparison.today:  # `_against_today` has that
        bills = {name: bill for name, bill in bills.items() if name != comparison.today}
    sentences = [cheapest(bills, comparison.best)] if bills else []
    unsure = comparison.sensitivity
    return sentences if unsure is None else [*sentences, *sensitivity_sentences(unsure)]


def careful(comparison: Comparison) -> list[str]:
    """What the hours do not show."""
    found = comparison.standings
    sentences = [*_accuracy(comparison, found)]
    bare = [one.name for one in found if one.facts.how == FOUND and interval_of(one) == "never"]
    if bare:
        n = max(one.summary[FINISHED].n for one in found)
        sentences.append(
            f"For {', '.join(bare)}, never saving is cheapest: the failures that their saves "
            f"protect against hardly occurred in {n:,} simulated jobs. Such a failure takes all "
            "that was done."
        )
    if any(one.facts.storage_bytes_per_h is not None for one in found):
        sentences.append(
            "Traffic is per hour of work, to the store of all nodes together and to peers of each "
            "node, as if each save moved the whole state: saves of parts or deltas move less."
        )
    return [*sentences, *comparison.result.warnings]


def _accuracy(comparison: Comparison, found: Sequence[Standing]) -> Iterator[str]:
    by_words: dict[str, list[str]] = {}
    for one in found:
        if one.accuracy == UNPRICED:
            words = one.facts.not_counted or "what stale shards cost in accuracy is not priced"
            by_words.setdefault(words, []).append(one.name)
    for words, names in by_words.items():
        yield f"* {', '.join(names)}: {words}; not taken as the cheapest."
    for one in found:
        if one.accuracy == PRICED:
            loss = one.summary["auc_loss"]
            yield (
                f"{one.name} loses {with_interval(loss.mean, loss.half_width)} of AUC; without a "
                "limit in the section `accuracy` it is not taken for the best."
            )
    within = [one.name for one in found if one.accuracy == WITHIN]
    if within and comparison.limit is not None:
        limit = comparison.limit
        yield f"{', '.join(within)} keep the limit: {limit['quantity']} at most {limit['most']:g}."


def not_compared(comparison: Comparison) -> list[str]:
    """Who can't run the job, and why; those that lack the same are together."""
    by_need: dict[str, dict[str, str]] = {}
    for name, why in comparison.left_out.items():
        by_need.setdefault(why.rpartition(": give ")[2], {})[name] = why
    sentences = []
    for need, reasons in by_need.items():
        first, *others = dict.fromkeys(reasons.values())  # whole where all have the same
        reason = f"give {need}" if others else first
        sentences.append(f"Not compared: {', '.join(reasons)}: {reason}.")
    return sentences


# --------------------------------------------------------------------------- JSON


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """The object that ``cprsim compare-systems --json`` prints; docs/metrics.md has the metrics."""
    result = comparison.result
    return {
        "name": comparison.name,
        "results": str(result.path),
        "useful_h": result.useful_h,
        "n_nodes": result.n_nodes,
        "fixed": comparison.fixed,
        "limit": comparison.limit,
        "best": comparison.best,
        "best_that_runs": (runs := comparison.cheapest_that_runs) and runs.name,
        "today": comparison.today or None,
        "cant_be_told": comparison.tied,
        "systems": [_system(one) for one in comparison.standings],
        "left_out": dict(comparison.left_out),
        "assumed": list(comparison.assumed),
        "said": [*answer(comparison), *careful(comparison)],
        **bills_as_json(bills_in(result)),
        "sensitivity": comparison.sensitivity and encode(comparison.sensitivity),
        "contents": [
            encode(one) | {"overhead": interval(one.overhead)} for one in comparison.contents
        ],
    }


def _system(one: Standing) -> dict[str, Any]:
    policy, facts = one.policy, one.facts
    return {
        "name": one.name,
        "strategy": facts.strategy,
        "entry": facts.text,
        "interval_h": finite_or_none(policy.interval_h),
        "interval": facts.how,
        "replications": one.summary[FINISHED].n,
        FINISHED: finite_or_none(one.summary[FINISHED].mean),
        "overhead_fraction": interval(one.overhead),
        "parts": {name: interval(one.summary[name]) for name in parts_among(one.summary)},
        "more_than_best": one.more and interval(one.more),
        "more_than_today": one.than_today and interval(one.than_today),
        "verdict": one.verdict,
        **{name: finite_or_none(one.summary[name].mean) for name in MEANS},
        "unknown": list(facts.unknown),
        "runs_as": facts.runs_as or None,
        "accuracy": one.accuracy,
        "extra_nodes": policy.tax.nodes,
        "extra_memory_fraction": policy.tax.memory,
        "auc_loss": None if one.accuracy == UNPRICED else interval(one.summary["auc_loss"]),
        "traffic": {
            "storage_bytes_per_h": facts.storage_bytes_per_h,
            "peers_bytes_per_h": facts.peers_bytes_per_h,
        },
        "after": {name: encode(fate) for name, fate in facts.fates.items()},
    }


def row_of(one: Standing) -> dict[str, Any]:
    """One system as a flat row: what tables of a program take."""
    row: dict[str, Any] = {}
    for name, cell in _system(one).items():
        if name in ("overhead_fraction", "more_than_best", "auc_loss"):
            ends = cell or {}
            row[name] = ends.get("mean")
            row |= {f"{name}_{end}": ends.get(end) for end in ("low", "high")}
        elif name == "parts":
            row |= {part: share["mean"] for part, share in cell.items()}
        elif name == "traffic":
            row |= cell
        elif name == "after":
            for kind, fate in cell.items():
                up_to = "" if fate["up_to_h"] is None else f", {fate['up_to_h']:g} h"
                row[f"after_{kind.replace(' ', '_')}"] = fate["takes"] + up_to
        elif name not in NO_COLUMNS:
            row[name] = cell
    return row
