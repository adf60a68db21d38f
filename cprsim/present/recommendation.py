"""What an answer recommends, in one shape for all commands, and the input on which it turns."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import Any

from cprsim.records import Estimate
from cprsim.results.assumption import WITHOUT, Assumption
from cprsim.results.words import percent
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


def turns_on(assumption: Assumption | None) -> str:
    """The input that moves an answer most, with both values; empty where none is known to."""
    if assumption is None:
        return ""
    at, name = f"at {assumption.tried}", assumption.choice
    if assumption.tried == WITHOUT:
        at = "without such failures"
    then = f"{_costs(assumption.overhead_tried)} instead of {_costs(assumption.overhead)}"
    words = f"{name} costs {then}, the same choice"
    if assumption.choice_tried != name:
        words = f"{assumption.choice_tried} costs least, {then}"
    of = f"`{assumption.key}`, {assumption.value}, {assumption.mark}"
    return f"It turns on {of}: {at} {words}."


def _costs(overhead: float) -> str:
    return "too much to finish" if isinf(overhead) else percent(overhead)
