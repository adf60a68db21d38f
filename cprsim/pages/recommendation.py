"""The recommendation of an answer, in one form for all commands, and its decisive input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isinf
from typing import Any

from cprsim.job.records import Estimate
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.metrics import OVERHEAD, Quantities
from cprsim.results.money import SPARE, JobPrices
from cprsim.results.unknown import AS_OTHERS, WITHOUT, Assumption, BreakEven, SpareNeed, waiting
from cprsim.results.words import count, estimated, percent, significant, with_interval
from cprsim.scenario.prices import HOURS_PER_MONTH, shown
from cprsim.scenario.yaml_text import read_yaml

UNSURE = 0.1  # of a value: from this half of an interval on it is shown


def entry_from(text: str) -> dict[str, Any]:
    """An entry of `recovery` that is written on one line."""
    entry: Any = read_yaml(text, "recovery")[0]
    return {"strategy": entry} if isinstance(entry, str) else entry


def recommendation(
    entry: Mapping[str, Any],
    overhead: Estimate,
    *,
    beats: str | None,
    less: Estimate | None,
    turns_on: Assumption | None,
) -> dict[str, Any]:
    """The recommended strategy or system as numbers.

    `entry` is its entry of `recovery` in a scenario; `less` the paired difference by which its
    overhead is below that of `beats`. Overheads are shares of useful time. `runs_as` is its
    maintained implementation, None where it stands in a paper only.
    """
    name, system = entry.get("name", entry["strategy"]), SYSTEMS[entry["strategy"]]
    other = None if beats == name else beats
    return {
        "name": name,
        "strategy": entry["strategy"],
        "entry": {key: value for key, value in entry.items() if value not in (None, {})},
        "overhead": overhead.by_name,
        "beats": other,
        "by": None if other is None or less is None else less.by_name,
        "turns_on": turns_on,
        "runs_as": system.said_to_run_as or None,
    }


def maintained(recommended: Mapping[str, Any] | None) -> str:
    """Words for a system without maintained software; else empty."""
    is_paper = recommended is not None and recommended["runs_as"] is None
    return "no maintained implementation" if is_paper else ""


def turns_on(assumption: Assumption | None, of: str = "", best: str | None = None) -> str:
    """The input that changes an answer most, with both values; empty if none is known.

    `of`: the part of the answer that was tried, if not all; `best`: the option that it chooses.
    """
    if assumption is None:
        return ""
    at, name = f"with {assumption.tried}", assumption.choice
    if assumption.tried == WITHOUT:
        at = "without such failures"
    elif assumption.tried == AS_OTHERS:
        at = "if such failures took what the others take"
    tried, half = _costs(assumption.overhead_tried), assumption.half_width
    if half > UNSURE * assumption.overhead_tried:
        tried = f"{with_interval(100 * assumption.overhead_tried, 100 * half)} %"
    then = f"{tried} instead of {_costs(assumption.overhead)}"
    what = "choice" if best in (None, name) else "strategy"
    words = f"{name} costs {then}; the {what} is the same"
    if assumption.choice_tried != name:
        words = f"{assumption.choice_tried} costs least, {then}"
    key = f"`{assumption.key}` ({assumption.mark}: {assumption.value})"
    moves = _costs(assumption.overhead_tried) != _costs(assumption.overhead)
    depends = "depends most" if moves or assumption.choice_tried != name else "hardly depends"
    return f"{of or 'The answer'} {depends} on {key}: {at}, {words}."


def _costs(overhead: float) -> str:
    return "too much to finish" if isinf(overhead) else percent(overhead)


def break_even_sentences(break_evens: Iterable[BreakEven]) -> list[str]:
    """A sentence for each unknown input."""
    sentences = []
    for input_ in break_evens:
        unit = f" {input_.unit}" if input_.unit else ""
        span = f"{input_.low:.3g} to {input_.high:.3g}{unit}"
        if input_.at is None:
            sentences.append(f"{input_.key} (from {span}): the cheapest option does not change.")
        else:
            at = f"{significant(input_.at)}{unit}"
            sentences.append(
                f"{input_.key} (from {span}): at {at}, {input_.becomes} costs the same."
            )
    return sentences


def back_to_start(struck: float) -> str:
    """Share of jobs with shards back at their start, under a strategy that never saves."""
    return f"In {percent(struck)} of the jobs a failure returns shards to their initial state."


def never_saves(names: Sequence[str], worst: float | None = None, n_jobs: int = 0) -> str:
    """The loss in a bad case by strategies that never save and leave no shard stale."""
    costs = f", and the worst of {n_jobs:,} jobs costs {percent(worst or 0.0)} of useful time"
    return (
        f"Without saves ({', '.join(names)}) a failure can lose all work of the job"
        f"{costs if worst is not None else ''}."
    )


def others_do_not_wait(summary: Quantities) -> str:
    """Where most of an overhead is waits: that entries alone are compared; else empty."""
    mostly_waits = 2 * waiting(summary) > summary[OVERHEAD].mean
    return mostly_waits * (
        "Only the entries of `recovery` are compared; `cprsim systems` compares others, and "
        "some of them do not wait for spares."
    )


def waits_decide(
    needs: Sequence[SpareNeed], n_nodes: int, prices: JobPrices | None, of: str = "the job's nodes"
) -> Iterator[str]:
    """Numbers of spares, with their cost, that pay, change the cheapest, or halve a pick's cost."""
    for are_more in (True, False):
        some = [need for need in needs if (need.n_spares > need.n_now) is are_more]
        clauses = dict[str, str]()
        for need in some:
            n = abs(need.n_spares - need.n_now)
            nodes = count(n, "more node" if are_more else "fewer node")
            cost = f"{nodes}, {percent(n / n_nodes)} of {of}"
            if prices is not None and prices.prices.node_hour:
                cents = 100 * n * HOURS_PER_MONTH * float(prices.prices.node_hour[SPARE])
                cost += f", {shown(cents, prices.currency)} per {HOURS_PER_MONTH:g} h"
            then = "costs least:" if need.is_best else "costs under half as much:"
            then = "is the cheapest:" if need.is_best and need.pays else then
            then = then if are_more else "costs"
            clause = f"{need.system} {then} {estimated(need.overhead, 100)} % of useful time"
            clause += "" if are_more else " (less, counting these nodes)"
            clause += "" if need.pays else " (more than the best now, counting these nodes)"
            spares = f"with {count(need.n_spares, 'spare')} ({cost}), "
            clauses[spares] = f"{clauses[spares]}; {clause}" if spares in clauses else clause
        each = "; ".join(spares + clause for spares, clause in clauses.items())
        what = "Waits for spares" if any(need.waits for need in some) else "Absent nodes"
        what = f"{what} are much of the cost"
        if all(need.is_best for need in some):
            what = "More spares would change the choice"
        pays = f"{'More' if are_more else 'Fewer'} spares pay"
        pays = pays if any(need.pays for need in some) else what
        if some:
            yield f"{pays}: {each}."
