"""Answers of ``init``: a new scenario with the next commands, or the shipped scenarios."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.commands.init.first import LLM, Known, n_assumed
from cprsim.failures.presets import FAILURE_PRESETS, FailurePreset
from cprsim.files import about as about_of
from cprsim.files.units import TIME
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, ListingBlock, Table
from cprsim.results.words import count, hours
from cprsim.scenario.schema import Scenario


def answer_of_first(
    facts: Known, scenario: Scenario, text: str, notes: Sequence[str], files: Sequence[Path]
) -> Answer:
    """A new scenario, and the commands to run next."""
    file, today = shlex.quote(str(files[0])), "today" if facts.interval_h else "full"
    choose = (
        ("Which recovery system costs least?", f"systems {file}")
        if facts.kind == LLM
        else ("Which strategy and interval, if 5 % of the samples may be lost?",
              f"select {file} --target-pls 0.05")
    )  # fmt: skip
    fit = ("How do the nodes fail, by a log of your own?", "fit LOG --save failures.yaml")
    n, job = n_assumed(text), f"{TIME.format(scenario.job.useful_h)} of work"
    return answer_of_written(
        scenario.name,
        f"{files[0]} runs; replace the assumed numbers, in {count(n, 'line')}, by yours.",
        files,
        [f"The job: {scenario.cluster.state_said}; {job}.", *notes],
        [
            ("What do failures cost, under each strategy?", f"run {file}"),
            ("How does that depend on the interval between saves?",
             f"sweep {file} --over recovery.{today}.interval='10 min:8 h:log6'"),
            choose,
            *([] if facts.fitted else [fit]),
            ("One page of a result, by the folder that run names?", "report RESULT"),
        ],
        n_assumed=n,
        notes=list(notes),
    )  # fmt: skip


def answer_of_written(
    name: str, sentence: str, files: Sequence[Path], remarks: Sequence[str] = (),
    commands: Sequence[tuple[str, str]] = (), **values: Any,
) -> Answer:  # fmt: skip
    """A new scenario, its remarks, and commands with the questions that they answer."""
    rows = [(question, f"cprsim {command}") for question, command in commands]
    listing = ListingBlock("", "\n".join(f"# {question}\n{command}" for question, command in rows))
    document = Document(
        f"Written: {name}", "Which scenario was written?", [sentence],
        table=listing if rows else None, remarks=remarks,
    )  # fmt: skip
    frames = {"commands": pd.DataFrame(rows, columns=["question", "command"])}
    return Answer("init", name, lambda: document, frames, values, files=files)


def answer_of_list(scenarios: Mapping[str, Path]) -> Answer:
    """The shipped scenarios, and published rates of failures."""
    shipped = pd.DataFrame(
        [(name, about_of(path).replace("`", "'"), path) for name, path in scenarios.items()],
        columns=["name", "about", "file"],
    )
    rows = [
        *(["scenario", *words] for words in shipped[["name", "about"]].to_numpy().tolist()),
        *(["failure rate", preset.name, _rate(preset)] for preset in FAILURE_PRESETS.values()),
    ]
    headings = ["", "name", "what it is"]
    document = Document(
        "What comes with cprsim",
        "Which scenarios and rates of failures come with cprsim?",
        ["Every command takes a scenario by its name; cprsim init --from NAME copies it."],
        table=Table("", headings, rows, headings, grouped=True),
    )
    frames = {"scenarios": shipped, "presets": pd.DataFrame(map(asdict, FAILURE_PRESETS.values()))}
    return Answer("init", "what is shipped", lambda: document, frames=frames)


def _rate(preset: FailurePreset) -> str:
    shape = "" if preset.shape is None else f", shape {preset.shape:.3g}"
    times = f"{preset.family}, mean {hours(preset.mean_h)}{shape}, per {preset.of}"
    return f"{times} ({preset.mark}; {preset.source})"
