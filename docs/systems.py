"""The recovery systems and what they cost, as tables of a document, which calls this (cog)."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any

from cprsim.recovery.systems import SYSTEMS
from cprsim.reproduce.rendering import markdown
from cprsim.results.words import hours, percent_number, significant, with_interval
from cprsim.units import BANDWIDTH, SIZE, TIME

DIMENSIONS = {"time": TIME, "size": SIZE, "bandwidth": BANDWIDTH}
PARTS = ("lost", "save", "load", "wait")  # shown one by one; the rest together


def systems() -> str:
    """A row per system: what it does, and how that is known."""
    rows = [(f"`{name}`", one.summary, one.source) for name, one in _known()]
    return f"\n{markdown(('system', 'what it does', 'how that is known'), rows)}\n"


def options() -> str:
    """A row per option of each system."""
    rows = [
        (f"`{name}`" if number == 0 else "", f"`{of.name}`", _default(of), of.metadata["words"])
        for name, one in _known()
        for number, of in enumerate(fields(one.options))
    ]
    return f"\n{markdown(('system', 'option', 'default', 'what it is'), rows)}\n"


def costs(command: str) -> str:
    """What each strategy costs by a command that prints JSON, a row per strategy."""
    printed = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True)
    found = json.loads(printed.stdout)
    headings = (
        "strategy", "saves every", "overhead, %", "lost work", "saves", "loads",
        "wait for spare", "the rest", "ETTR", "ETTR paid", "extra memory, % of state", "node-h",
    )  # fmt: skip
    rows = [tuple(_cells(one, found["useful_h"])) for one in found["strategies"]]
    return f"\n`{command}`\n\n{markdown(headings, rows)}"


def _known() -> Iterator[tuple[str, Any]]:
    """Those of the package itself, in the order of the alphabet."""
    for name, one in sorted(SYSTEMS.items()):
        if one.plan.__module__.startswith("cprsim.recovery.systems."):
            yield name, one


def _default(of: Field[Any]) -> str:
    kind, value = of.metadata["kind"], of.default
    if value is None:
        return "–"
    if kind in DIMENSIONS:
        return DIMENSIONS[kind].format(value)
    return f"`{value}`" if kind == "word" else f"{value:g}"


def _cells(one: dict[str, Any], useful_h: float) -> Iterator[str]:
    overhead = one["overhead_fraction"]
    mean = 100 * overhead["mean"]
    half = 50 * (overhead["high"] - overhead["low"])
    parts = {name: (one.get(name) or {}).get("mean") or 0.0 for name in PARTS}
    every = one["interval_h"]
    yield one["name"]
    yield "never" if every is None or every >= useful_h else hours(every)
    yield with_interval(mean, half)
    yield from (percent_number(share) for share in parts.values())
    yield percent_number(overhead["mean"] - sum(parts.values()))
    yield f"{one['ettr']:.3f}"
    yield f"{one['ettr_paid']:.3f}"
    yield percent_number(one["extra_memory_fraction"])
    yield significant(one["overhead_node_h"])
