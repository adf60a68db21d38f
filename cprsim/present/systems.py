"""A comparison of recovery systems: what each costs and takes, which is cheapest, how to run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

from cprsim.codec import encode, finite_or_none
from cprsim.estimate import NO_NUMBER, interval
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
from cprsim.present.money import bills_as_json, cheapest, money_of, money_section
from cprsim.present.provenance import origin
from cprsim.present.run import places_of_run
from cprsim.present.sensitivity import sensitivity_sentences
from cprsim.recovery.fates import Fate
from cprsim.results import FINISHED
from cprsim.results.metrics import parts_among
from cprsim.results.money import bills_in
from cprsim.results.words import (
    count,
    hours,
    percent_number,
    significant,
    with_interval,
)
from cprsim.systems_compared.best import FOUND
from cprsim.systems_compared.folder import Comparison
from cprsim.systems_compared.standings import (
    BEST,
    KEPT,
    UNPRICED,
    Standing,
    bills_that_count,
    standings,
    tied_names,
)
from cprsim.systems_compared.words import (
    columns_of_fates,
    difference,
    every,
    fate_in_words,
    intervals_in_words,
    name_of,
    overhead,
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
TO_RUN = "To run them so, put into the scenario:"


def systems_blocks(comparison: Comparison, *, found_again: bool = False) -> list[Block]:
    """What a terminal shows.

    Parameters
    ----------
    found_again : nothing was simulated, because the finished folder was there already
    """
    result, found = comparison.result, standings(comparison)
    n = max(one.summary[FINISHED].n for one in found)
    heading = (
        f"{comparison.name}: {hours(result.useful_h)} of useful work on "
        f"{count(result.n_nodes, 'node')}, {count(n, 'replication')}; "
        f"{count(len(found), 'system')}, {intervals_in_words(comparison)}. Overhead and what it "
        "is more than the best's in % of useful time, ± the half-width of the 95 % interval."
    )
    return [
        Words([heading]),
        *tables_of(found),
        *money_of(result),
        Words([*answer(found), *answer_in_money(comparison, found)]),
        Words(careful(comparison, found)),
        Words(not_compared(comparison)),
        Words([TO_RUN]),
        ListingBlock("For the scenario", entries_text(found)),
        places_of_run(result, found_again=found_again),
    ]


def document_of_systems(comparison: Comparison) -> Document:
    """Everything about one comparison. Raises ResultError for an unreadable file."""
    found, result = standings(comparison), comparison.result
    return Document(
        title=f"Which recovery system: {comparison.name}",
        question=(
            f"Which recovery system costs a job of {hours(result.useful_h)} of useful work on "
            f"{result.n_nodes} nodes least, {intervals_in_words(comparison)}?"
        ),
        answer=[
            *answer(found),
            *answer_in_money(comparison, found),
            *careful(comparison, found),
        ],
        sections=[
            Section("All that can run the job", [_picture(comparison), *tables_of(found)]),
            Section("What it costs in all", money_section(result)),
            Section("What can't run it", [Words(not_compared(comparison))]),
            Section("How to run them", [ListingBlock("For the scenario", entries_text(found))]),
            *origin(result.manifest, result.path),
        ],
    )


def _picture(comparison: Comparison) -> Picture:
    return Picture(
        caption="Overhead by system and cause",
        alternative=(
            "A bar per system, the cheapest on top: mean overhead in percent of useful time, by "
            "cause, with the 95 % interval of the total. The tables below have the numbers."
        ),
        draw=lambda: systems_figure(comparison),
    )


def entries_text(found: Sequence[Standing]) -> str:
    """The section `recovery` of a scenario that runs every system as compared."""
    return "\n".join(["recovery:", *(f"  - {one.beside.text}" for one in found)])


# --------------------------------------------------------------------------- tables


def tables_of(found: Sequence[Standing]) -> list[Table]:
    """Costs, where the hours go, what is survived: a row per system."""
    tables = (_costs(found), _hours(found), _survived(found))
    return [table for table in tables if table.columns[1:]]


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table with headings in several lines on a terminal."""
    columns = [
        Column(heading.replace("\n", " "), is_number=place > 0, brief=heading)
        for place, heading in enumerate(headings)
    ]
    return Table(caption, columns, rows)


def _costs(found: Sequence[Standing]) -> Table:
    """What each costs and takes; what none takes has no column."""
    heading = ("system", "saves\nevery", "overhead\n%", "more than\nthe best", "ETTR")
    beside: dict[str, Callable[[Standing], str]] = {}
    if any(_fixed(one, "ettr_paid") != _fixed(one, "ettr") for one in found):
        beside["ETTR\npaid"] = lambda one: _fixed(one, "ettr_paid")
    if any(one.accuracy not in (KEPT, UNPRICED) for one in found):
        beside["AUC lost\n×10⁻⁴"] = _accuracy_lost
    if any(one.policy.extra_memory_fraction for one in found):
        beside["memory\n%"] = lambda one: percent_number(one.policy.extra_memory_fraction)
    if any(one.policy.extra_nodes for one in found):
        beside["extra\nnodes"] = lambda one: significant(one.policy.extra_nodes)
    cells = [(*_cost(one), *(cell(one) for cell in beside.values())) for one in found]
    caption = (
        "What each costs and takes; ± the half-width of the 95 % interval, of paired differences "
        "where it is more than the best"
    )
    return _table(caption, (*heading, *beside), cells)


def _cost(one: Standing) -> tuple[str, ...]:
    return name_of(one), every(one), overhead(one), difference(one), _fixed(one, "ettr")


def _accuracy_lost(one: Standing) -> str:
    """What it loses of AUC, in 0.0001."""
    loss = one.summary["auc_loss"]
    if one.accuracy in (KEPT, UNPRICED):
        return "0" if one.accuracy == KEPT else UNPRICED
    return NO_NUMBER if isnan(loss.mean) else with_interval(1e4 * loss.mean, 1e4 * loss.half_width)


def _fixed(one: Standing, quantity: str) -> str:
    return f"{one.summary[quantity].mean:.3f}" if one.finishes else NO_NUMBER


def _hours(found: Sequence[Standing]) -> Table:
    """Where the hours go, in % of useful time; columns of nothing are left out."""
    done = [one for one in found if one.finishes]
    groups = {
        heading: parts
        for heading, parts in GROUPS.items()
        if any(_share(one, parts) > 0 for one in done)
    }
    rows = [
        (one.name, *(percent_number(_share(one, parts)) for parts in groups.values()))
        for one in done
    ]
    caption = "Where the hours go, in % of useful time"
    return _table(caption, ("of which, %", *groups), rows)


def _share(one: Standing, parts: Sequence[str]) -> float:
    return sum(one.part(part) for part in parts)


def _survived(found: Sequence[Standing]) -> Table:
    """What a failure of each kind takes at most, and the bytes that are moved."""
    kinds = columns_of_fates(found)
    known = found[0].beside.traffic.storage_bytes_per_h is not None
    traffic = ("to store\nGbit/s", "to peers\nGbit/s") if known else ()
    heading = ("lost at most\nby", *(_folded(names) for names in kinds), *traffic)
    rows = [
        (
            one.name,
            *(fate_in_words(one.beside.fates[names[0]]) for names in kinds),
            *((_traffic(one)) if known else ()),
        )
        for one in found
    ]
    caption = "Progress lost at most by a failure of each kind, and the bytes that saves move"
    return _table(caption, heading, rows)


def _folded(names: Sequence[str]) -> str:
    first, *others = names
    return "\n".join([first.replace(" ", "\n"), *others])


def _traffic(one: Standing) -> tuple[str, str]:
    traffic = one.beside.traffic
    return (_gbit_s(traffic.storage_bytes_per_h), _gbit_s(traffic.peers_bytes_per_h))


def _gbit_s(bytes_per_h: float | None) -> str:
    return NO_NUMBER if bytes_per_h is None else significant(bytes_per_h * GBIT_S_OF_BYTES_PER_H)


# --------------------------------------------------------------------------- sentences


def answer(found: Sequence[Standing]) -> list[str]:
    """Which system, and which can't be told from it."""
    best = next((one for one in found if one.verdict == BEST), None)
    if best is None:
        return ["No system that keeps the job's accuracy lets all jobs finish."]
    sentences = [f"Cheapest: {best.name}, {overhead(best)} % of useful time."]
    if tied := tied_names(found):
        sentences.append(
            f"It can't be told from it: {', '.join(tied)} (the 95 % interval of the paired "
            "difference holds 0)."
        )
    return sentences


def answer_in_money(comparison: Comparison, found: Sequence[Standing]) -> list[str]:
    """Which system of those that may be the best is the cheapest in all; what would change that."""
    bills = bills_that_count(found, bills_in(comparison.result))
    best = next((one.name for one in found if one.verdict == BEST), None)
    sentences = [cheapest(bills, best)] if bills else []
    unsure = comparison.sensitivity
    return sentences if unsure is None else [*sentences, *sensitivity_sentences(unsure)]


def careful(comparison: Comparison, found: Sequence[Standing]) -> list[str]:
    """What the hours do not show."""
    sentences = [*_accuracy(comparison, found)]
    bare = [one.name for one in found if one.beside.how == FOUND and every(one) == "never"]
    if bare:
        n = max(one.summary[FINISHED].n for one in found)
        sentences.append(
            f"Never saving is the best interval of {', '.join(bare)}: in {n:,} simulated jobs what "
            "their saves are for hardly comes. Such a loss is of all that was done."
        )
    if any(one.beside.traffic.storage_bytes_per_h is not None for one in found):
        sentences.append(
            "Traffic is per hour of work, to the store of all nodes together and to peers of each "
            "node, as if each save moved the whole state: saves of parts or deltas move less."
        )
    return [*sentences, *comparison.result.warnings]


def _accuracy(comparison: Comparison, found: Sequence[Standing]) -> Iterator[str]:
    unpriced = [one for one in found if one.accuracy == UNPRICED]
    if unpriced:
        yield (
            f"* Accuracy is lost and not priced under {', '.join(one.name for one in unpriced)}: "
            "not taken for the best, whatever the hours."
        )
    by_words: dict[str, list[str]] = {}
    for one in unpriced:
        by_words.setdefault(one.beside.not_counted, []).append(one.name)
    for words, names in by_words.items():
        if words:
            yield f"{', '.join(names)}: {words}; that is in no number here."
    for one in found:
        if one.accuracy == "priced":
            loss = one.summary["auc_loss"]
            yield (
                f"{one.name} loses {with_interval(loss.mean, loss.half_width)} of AUC; without a "
                "limit in the section `accuracy` it is not taken for the best."
            )
    within = [one.name for one in found if one.accuracy == "within the limit"]
    if within and comparison.limit is not None:
        limit = comparison.limit
        yield f"{', '.join(within)} keep the limit: {limit['quantity']} at most {limit['most']:g}."


def not_compared(comparison: Comparison) -> list[str]:
    """Who can't run the job, and why; those that lack the same are together."""
    names: dict[str, list[str]] = {}
    for name, why in comparison.left_out.items():
        names.setdefault(why.rpartition(": give ")[2], []).append(name)
    return [_left_out(some, what, comparison.left_out) for what, some in names.items()]


def _left_out(names: Sequence[str], what: str, why: Mapping[str, str]) -> str:
    """With the whole reason where there is one alone; else with what all of them lack."""
    reasons = {why[name] for name in names}
    reason = reasons.pop() if len(reasons) == 1 else f"give {what}"
    return f"Not compared: {', '.join(names)}: {reason}."


# --------------------------------------------------------------------------- JSON


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """The object that ``cprsim compare-systems --json`` prints; docs/metrics.md has the metrics."""
    found, result = standings(comparison), comparison.result
    return {
        "name": comparison.name,
        "results": str(result.path),
        "useful_h": result.useful_h,
        "n_nodes": result.n_nodes,
        "fixed": comparison.fixed,
        "limit": comparison.limit,
        "best": next((one.name for one in found if one.verdict == BEST), None),
        "cant_be_told": tied_names(found),
        "systems": [_system(one) for one in found],
        "left_out": dict(comparison.left_out),
        "assumed": list(comparison.assumed),
        "said": [
            *answer(found),
            *answer_in_money(comparison, found),
            *careful(comparison, found),
        ],
        **bills_as_json(bills_in(result)),
        "sensitivity": comparison.sensitivity and encode(comparison.sensitivity),
    }


def _system(one: Standing) -> dict[str, Any]:
    policy, beside = one.policy, one.beside
    return {
        "name": one.name,
        "strategy": beside.strategy,
        "entry": beside.text,
        "interval_h": finite_or_none(policy.save_interval_h),
        "interval": beside.how,
        "replications": one.summary[FINISHED].n,
        FINISHED: finite_or_none(one.summary[FINISHED].mean),
        "overhead_fraction": interval(one.overhead),
        "parts": {name: interval(one.summary[name]) for name in parts_among(one.summary)},
        "more_than_best": one.more and interval(one.more),
        "verdict": one.verdict,
        **{name: finite_or_none(one.summary[name].mean) for name in MEANS},
        "unknown": list(beside.unknown),
        "accuracy": one.accuracy,
        "auc_loss": None if one.accuracy == UNPRICED else interval(one.summary["auc_loss"]),
        "extra_nodes": policy.extra_nodes,
        "extra_memory_fraction": policy.extra_memory_fraction,
        "traffic": asdict(beside.traffic),
        "after": {name: _fate(fate) for name, fate in beside.fates.items()},
    }


def row_of(one: Standing) -> dict[str, Any]:
    """One system as a flat row: what tables of a program take."""
    cells = _system(one)
    taken = ("name", "strategy", "interval_h", FINISHED)
    back = ("verdict", *MEANS, "accuracy", "extra_nodes", "extra_memory_fraction")
    losses = {f"after_{kind.replace(' ', '_')}": fate for kind, fate in cells["after"].items()}
    return {
        **{name: cells[name] for name in taken},
        **_ends("overhead_fraction", cells["overhead_fraction"]),
        **{name: part["mean"] for name, part in cells["parts"].items()},
        **_ends("more_than_best", cells["more_than_best"]),
        **{name: cells[name] for name in back},
        **_ends("auc_loss", cells["auc_loss"]),
        **cells["traffic"],
        **{name: _lost_at_most(fate) for name, fate in losses.items()},
    }


def _ends(name: str, found: dict[str, Any] | None) -> dict[str, Any]:
    """A mean and the ends of its interval, in columns; without numbers where there are none."""
    found = found or {}
    return {name: found.get("mean")} | {f"{name}_{end}": found.get(end) for end in ("low", "high")}


def _lost_at_most(fate: dict[str, Any]) -> str:
    return fate["takes"] if fate["up_to_h"] is None else f"{fate['takes']}, {fate['up_to_h']:g} h"


def _fate(fate: Fate) -> dict[str, Any]:
    return {
        "takes": fate.kind.name.lower(),
        "up_to_h": finite_or_none(fate.up_to_h),
        "from": fate.tier,
    }
