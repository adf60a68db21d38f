"""What an answer recommends, in one shape for all commands, and the input on which it turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isinf
from typing import Any

from cprsim.records import Estimate
from cprsim.results.decisive import WITHOUT, Assumption, BreakEven
from cprsim.results.words import percent, significant
from cprsim.scenario.yaml_text import read_yaml


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

    `entry` is what a scenario lists under `recovery` to run it; `less` the overhead that it has
    less than what it beats, paired. Overheads are shares of useful time.
    """
    name = entry.get("name", entry["strategy"])
    return {
        "name": name,
        "strategy": entry["strategy"],
        "entry": {key: value for key, value in entry.items() if value not in (None, {})},
        "overhead": overhead.by_name,
        "beats": None if beats is None or beats == name else beats,
        "by": None if beats is None or beats == name or less is None else less.by_name,
        "turns_on": turns_on,
    }


def turns_on(assumption: Assumption | None, of: str = "") -> str:
    """The input that moves an answer most, with both values; empty where none is known to.

    `of`: what was tried, where that is not all of the answer.
    """
    if assumption is None:
        return ""
    at, name = f"at {assumption.tried}", assumption.choice
    if assumption.tried == WITHOUT:
        at = "without such failures"
    then = f"{_costs(assumption.overhead_tried)} instead of {_costs(assumption.overhead)}"
    words = f"{name} costs {then}, the same choice"
    if assumption.choice_tried != name:
        words = f"{assumption.choice_tried} costs least, {then}"
    key = f"`{assumption.key}`, {assumption.value}, {assumption.mark}"
    return f"{of or 'It'} turns on {key}: {at} {words}."


def _costs(overhead: float) -> str:
    return "too much to finish" if isinf(overhead) else percent(overhead)


def break_even_sentences(break_evens: Iterable[BreakEven]) -> list[str]:
    """A sentence for each unknown input."""
    sentences = []
    for input_ in break_evens:
        unit = f" {input_.unit}" if input_.unit else ""
        span = f"{input_.low:.3g} to {input_.high:.3g}{unit}"
        if input_.at is None:
            sentences.append(f"{input_.key}: no value from {span} reverses it.")
        else:
            at = f"{significant(input_.at)}{unit}"
            sentences.append(
                f"{input_.key} (from {span}): at {at}, {input_.becomes} costs as little."
            )
    return sentences
