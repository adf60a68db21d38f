"""Whether a scenario is valid, and the JSON Schema of scenarios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from cprsim.errors import Problem
from cprsim.present.answer import Answer
from cprsim.present.document import Document, ListingBlock
from cprsim.results.words import count
from cprsim.scenario import Scenario

QUESTION = "Is this a scenario?"
COLUMNS = ("file", "line", "key", "message")


def answer_of_valid(name: str, scenario: Scenario, warnings: Sequence[str]) -> Answer:
    """A scenario that can run."""
    strategies = [entry.name for entry in scenario.recovery]
    said = f"{name}: ok ({scenario.name}: {', '.join(strategies)})"
    remarks = [f"Warning: {one}" for one in warnings]
    return Answer(
        "validate",
        scenario.name,
        lambda: Document(f"Checked: {scenario.name}", QUESTION, [said], remarks=remarks),
        frames={"problems": pd.DataFrame(columns=COLUMNS)},
        values={"valid": True, "strategies": strategies, "warnings": list(warnings)},
    )


def answer_of_problems(name: str, problems: Sequence[Problem]) -> Answer:
    """A scenario that can't run, and why: each problem with its file and line."""
    listing = ListingBlock("What is wrong", "\n".join(map(str, problems)))
    said = f"{name}: {count(len(problems), 'problem')}"
    rows = [(str(one.place.file), one.place.line, one.key, one.message) for one in problems]
    return Answer(
        "validate",
        name,
        lambda: Document(f"Checked: {name}", QUESTION, [said], table=listing),
        frames={"problems": pd.DataFrame(rows, columns=COLUMNS, dtype=object)},
        values={"valid": False},
        exit_code=2,
    )


def answer_of_schema(schema: dict[str, Any]) -> Answer:
    """Every key with its meaning and unit, for editors: in a pipe, nothing but the schema."""
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    listing = ListingBlock("JSON Schema", text)
    return Answer(
        "validate",
        "schema",
        lambda: Document(
            "The JSON Schema of scenarios", "Which keys are there?", [], table=listing
        ),
        values={"schema": schema},
    )
