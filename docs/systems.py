"""The recovery systems and what they cost, as tables of a document, which calls this (cog)."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import Field, fields
from itertools import groupby
from typing import Any

from cprsim.present.markdown import raw_table
from cprsim.present.systems_listing import (
    NO_SYSTEMS,
    ListedPolicy,
    after_failures,
    listing,
    made_up_job,
)
from cprsim.present.systems_words import capture_in_words, rule_in_words, stages_in_words
from cprsim.recovery import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.words import hours, percent_number, significant, with_interval
from cprsim.units import BANDWIDTH, SIZE, TIME

DIMENSIONS = {"time": TIME, "size": SIZE, "bandwidth": BANDWIDTH}
HELD_TO = {  # by the first system with the same assumptions: its tests and what they hold it to
    "async": "`test_asynchronous.py`: CheckFreq's rule and each system's costs by hand.",
    "dlrover-flash": "`test_node_copies.py`: where each loads from after failures of each kind.",
    "check-n-run": "`test_deltas.py`: the re-base rule, sizes and bits exactly.",
    "scr": "`test_levels.py`: the nearest level that survives, the intervals in closed form.",
    "just-in-time": "`test_per_step.py`: cases by hand; its break-even in the study.",
    "checkmate": "`test_per_step.py`: cases by hand.",
    "fftrainer": "`test_per_step.py`: cases by hand.",
    "swift": "`test_per_step.py`: cases by hand; half an interval over its speed in the study.",
    "torchft": "`test_leaving_out.py`: cases by hand, beside `hsdp`.",
    "bamboo": "`test_leaving_out.py`: cases by hand, speeds by counting.",
    "ecrec": "`test_ecrec.py`: cases by hand; its closed form in the study.",
    "gemini": "`test_gemini.py`: cases by hand; the published probabilities in the study.",
    "hsdp": "`test_hsdp.py`: cases by hand; effective time on each clock in the study.",
    "moc": "`test_moc.py`: bytes and staleness in closed form; its overhead in the study.",
    "prm": "`test_readers.py`: cases by hand.",
    "on-notice": "`test_announced.py` and `../test_notice.py`: cases by hand.",
    "parcae": "`test_announced.py`: cases by hand.",
    "trainmover": "`test_announced.py`: cases by hand.",
    "spare": "`test_leaving_out.py`: cases by hand; failures until a loss in the study.",
    "oobleck": "`test_elastic.py`: cases by hand; the executed artifact's throughput in the study.",
    "varuna": "`test_elastic.py`: cases by hand; the executed artifact's throughput in the study.",
    "policy": "`../../scenario/test_policy_section.py`: every other system written so.",
}
LITERATURE = {  # names of papers and products: what each is here, or why it is nothing
    "CPR (SCAR, MFU, SSU)": ("full", "partial", "cpr", "cpr-scar", "cpr-mfu", "cpr-ssu"),
    "ECRec": ("ecrec",),
    "Check-N-Run": ("check-n-run",),
    "SSDC": ("ssdc",),
    "IncrCP": ("incrcp",),
    "CheckFreq": ("checkfreq",),
    "PCcheck": ("pccheck",),
    "PyTorch DCP async": ("async",),
    "DataStates-LLM": ("datastates",),
    "FastPersist": ("fastpersist",),
    "Portus": ("portus",),
    "ParaCkpt": ("paracckpt",),
    "CheckBullet": ("checkbullet",),
    "LC-Checkpoint": ("lc-checkpoint",),
    "TRANSOM": ("transom",),
    "GEMINI": ("gemini",),
    "REFT": ("reft",),
    "NVRx local checkpoints": ("nvrx-local",),
    "ml-flashpoint": ("ml-flashpoint",),
    "DLRover flash checkpoint": ("dlrover-flash",),
    "ByteRobust": ("byterobust",),
    "SCR, FTI, VeloC": ("scr", "fti", "veloc"),
    "just-in-time checkpoints": ("just-in-time",),
    "notice, preemption, spot nodes": ("on-notice", "parcae"),
    "Checkmate": ("checkmate",),
    "AdaCheck": ("adacheck",),
    "FFTrainer": ("fftrainer",),
    "FlashRecovery": ("flashrecovery",),
    "MoC-System": ("moc",),
    "Swift": ("swift", "swift-undo"),
    "FT-HSDP": ("hsdp",),
    "torchft": ("torchft",),
    "Lazarus": ("lazarus",),
    "Oobleck": ("oobleck",),
    "Varuna": ("varuna",),
    "Bamboo": ("bamboo",),
    "ReCycle": ("recycle",),
    "SPARe": ("spare",),
    "PRM": ("prm",),
    "checkpoints in hybrid memory, near CXL": ("pmem",),
    **NO_SYSTEMS,
}
PARTS = ("lost", "save", "load", "wait")  # shown one by one; the rest together


def systems() -> str:
    """A row per system: what it does, what it needs, and what it survives."""
    headings = ("system", "what it does", "needs", "goes back to", "runs today as")
    rows = [
        (
            f"`{one.name}`",
            _mechanism(one),
            ", ".join(one.needs),
            after_failures(one),
            one.runs_as,
        )
        for one in _listed()
    ]
    return f"\n{raw_table(headings, rows)}\n"


def literature() -> str:
    """A row per name in the literature, and per system that none of them names.

    Raises ValueError where a name is said to be a system that there is not.
    """
    said = {name for found in LITERATURE.values() if isinstance(found, tuple) for name in found}
    own = {name for name, _ in _known()} - {"policy"}
    if wrong := said - own - STRATEGIES.keys():
        raise ValueError(f"there are no such systems: {sorted(wrong)}")
    found = LITERATURE | {name: (name,) for name in own - said}
    ordered = sorted(found.items(), key=lambda row: row[0].casefold())
    rows = [(name, found if isinstance(found, str) else _here(found)) for name, found in ordered]
    return f"\n{raw_table(('in the literature', 'here'), rows)}\n"


def _here(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def sections() -> str:
    """A section per family, and in it what is to be said of each system."""
    parts = []
    for family, of_family in groupby(_listed(), key=lambda one: one.family):
        parts.append(f"### {family.value.capitalize()}")
        for _, alike in groupby(of_family, key=lambda one: (one.assumptions, one.not_modelled)):
            parts += _section(list(alike))
    return "\n" + "\n\n".join(parts) + "\n"


def _section(entries: list[ListedPolicy]) -> Iterator[str]:
    """What systems of the same assumptions do, by their records, and what is said of all."""
    for one in entries:
        yield f"**`{one.name}`**: {_mechanism(one)}"
        yield "\n".join(_rules(one))
    first = entries[0]
    if first.assumptions:
        yield f"Assumed: {first.assumptions}"
    unmodelled = f" Not modelled: {first.not_modelled}" if first.not_modelled else ""
    yield f"Held to: {HELD_TO[first.name]}{unmodelled}"
    for one in entries:
        if one.not_counted:
            yield f"`{one.name}`: {one.not_counted}."


def _rules(one: ListedPolicy) -> Iterator[str]:
    assert one.policy is not None
    for number, rule in enumerate(one.policy.rules, 1):
        yield f"{number}. {rule_in_words(rule)} {stages_in_words(rule)}"
    saves = [capture_in_words(capture) for capture in one.policy.captures]
    if saves:
        yield f"\nSaves: {'. '.join(saves)}."


def _mechanism(one: ListedPolicy) -> str:
    known = f" ({', '.join(word for word in (one.cited, one.mark) if word)})" if one.cited else ""
    return f"{one.summary}{known}."


def _listed() -> list[ListedPolicy]:
    """The listing of ``cprsim systems`` without the strategies, which docs/model.md has."""
    known = dict(_known())
    return [one for one in listing(made_up_job()) if one.name in known]


def options() -> str:
    """A row per option; systems with the same options share their rows."""
    by_options: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for name, one in _known():
        own = tuple(
            (f"`{of.name}`", _default(of), of.metadata["words"]) for of in fields(one.options)
        )
        by_options.setdefault(own, []).append(f"`{name}`")
    rows = [
        (", ".join(names) if number == 0 else "", *row)
        for alike, names in by_options.items()
        for number, row in enumerate(alike)
    ]
    return f"\n{raw_table(('system', 'option', 'default', 'what it is'), rows)}\n"


def costs(command: str) -> str:
    """What each strategy costs by a command that prints JSON, a row per strategy."""
    printed = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True)
    found = json.loads(printed.stdout)
    headings = (
        "strategy", "saves every", "overhead, %", "lost work", "saves", "loads",
        "wait for spare", "the rest", "ETTR", "ETTR paid", "extra memory, % of state", "node-h",
    )  # fmt: skip
    rows = [tuple(_cells(one, found["useful_h"])) for one in found["strategies"]]
    return f"\n`{command}`\n\n{raw_table(headings, rows)}"


def _known() -> Iterator[tuple[str, Any]]:
    """Those of the package itself, in the order of the alphabet."""
    for name, one in sorted(SYSTEMS.items()):
        if one.plan.__module__.startswith("cprsim.recovery.systems."):
            yield name, one


def _default(of: Field[Any]) -> str:
    kind, value = of.metadata["kind"], of.default
    if value is None or kind == "records":
        return "–"
    if kind in DIMENSIONS:
        return DIMENSIONS[kind].format(value)
    return f"`{value}`" if isinstance(value, str) else f"{value:g}"


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
