"""A first scenario with the commands that it is for; what is shipped."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from cprsim.failures.presets import PRESETS, FailurePreset
from cprsim.files import about as about_of
from cprsim.present.answer import Answer
from cprsim.present.document import Document, ListingBlock, Section, Table, word_columns
from cprsim.results.words import count, hours
from cprsim.scenario import Scenario
from cprsim.scenario.first import LLM, Known
from cprsim.units import TIME

NEXT = {
    "What do failures cost, under each strategy?": "run {file}",
    "How does that depend on the interval between saves?": (
        "sweep {file} --over recovery.{today}.interval='10 min:8 h:log6'"
    ),
    "Which recovery system costs least?": "systems {file}",
    "Which strategy and interval, if 5 % of the samples may be lost?": (
        "select {file} --target-pls 0.05"
    ),
    "How do the nodes fail, by a log of your own?": "fit LOG --save failures.yaml",
    "One page of a result, by the folder that run names?": "report RESULT",
}


def answer_of_first(
    known: Known, scenario: Scenario, n_assumed: int, notes: Sequence[str], files: Sequence[Path]
) -> Answer:
    """A scenario that was written, and the commands to go on with."""
    left_out = {"select" if known.kind == LLM else "systems", "fit" if known.fitted else ""}
    names = {"file": shlex.quote(str(files[0])), "today": "today" if known.interval_h else "full"}
    commands = pd.DataFrame(
        [
            {"question": question, "command": f"cprsim {command.format(**names)}"}
            for question, command in NEXT.items()
            if command.split()[0] not in left_out
        ]
    )
    unknown = {
        "--state": known.state_bytes,
        "--storage": known.storage_bytes_per_h,
        "--length": known.length_h,
    }
    guessed = ", ".join(option for option, value in unknown.items() if value is None)
    document = Document(
        f"A first scenario: {scenario.name}",
        "What is a first scenario of this job, and what is it for?",
        [f"{files[0]} runs; {count(n_assumed, 'line')} of it assume a number, for you to correct."],
        table=ListingBlock(
            "Commands",
            "\n".join(f"# {one.question}\n{one.command}" for one in commands.itertuples()),
        ),
        remarks=[
            f"The job: {scenario.cluster.state_said}; {TIME.format(scenario.job.useful_h)} of work"
            f"{f' (guessed: {guessed})' if guessed else ''}.",
            *notes,
        ],
    )
    return Answer(
        "init",
        scenario.name,
        lambda: document,
        frames={"commands": commands},
        values={"n_assumed": n_assumed, "notes": list(notes)},
        files=files,
    )


def answer_of_copy(name: str, files: Sequence[Path]) -> Answer:
    """A shipped scenario that was copied."""
    said = f"{files[0]} is a copy of {name}, for you to change."
    document = Document(f"A copy of {name}", "Which scenario was copied?", [said])
    return Answer("init", name, lambda: document, files=files)


def answer_of_list(scenarios: Mapping[str, Path]) -> Answer:
    """The shipped scenarios, and published rates of failures."""
    abouts = {name: about_of(path) for name, path in scenarios.items()}
    rows = [
        *(["scenario", name, about.replace("`", "'")] for name, about in abouts.items()),
        *(["failure rate", one.name, _rate(one)] for one in PRESETS),
    ]
    sources = [[one.name, one.note, one.source] for one in PRESETS]
    document = Document(
        "What comes with cprsim",
        "Which scenarios and rates of failures come with cprsim?",
        ["Every command takes a scenario by its name; cprsim init --from NAME copies it."],
        table=Table("", word_columns("", "name", "what it is"), rows, grouped=True),
        sections=[
            Section("The rates", [Table("", word_columns("name", "what", "source"), sources)])
        ],
    )
    shipped = pd.DataFrame(
        {"name": abouts.keys(), "about": abouts.values(), "file": scenarios.values()}
    )
    frames = {"scenarios": shipped, "presets": pd.DataFrame(map(asdict, PRESETS))}
    return Answer("init", "what is shipped", lambda: document, frames=frames)


def _rate(one: FailurePreset) -> str:
    shape = "" if one.shape is None else f", shape {one.shape:.3g}"
    return f"{one.family}, mean {hours(one.mean_h)}{shape}, per {one.of} ({one.mark})"
