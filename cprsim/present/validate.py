"""Whether a scenario is valid, and the JSON Schema of scenarios."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cprsim.errors import Problem
from cprsim.present.answer import Answer
from cprsim.present.document import Document, ListingBlock
from cprsim.results.words import count
from cprsim.scenario import Scenario

QUESTION = "Is this a scenario?"


def answer_of_valid(name: str, scenario: Scenario, warnings: Sequence[str]) -> Answer:
    """A scenario that can run."""
    strategies = [entry.name for entry in scenario.recovery]
    said = f"{name}: ok ({scenario.name}: {', '.join(strategies)})"
    remarks = [f"Warning: {one}" for one in warnings]
    document = Document(f"Checked: {name}", QUESTION, [said], remarks=remarks)
    values = {"valid": True, "strategies": strategies, "warnings": list(warnings)}
    return _answer(scenario.name, document, values, ())


def answer_of_problems(name: str, problems: Sequence[Problem]) -> Answer:
    """A scenario that can't run: each problem with its file and line."""
    listing = ListingBlock("What is wrong", "\n".join(map(str, problems)))
    said = f"{name}: {count(len(problems), 'problem')}"
    document = Document(f"Checked: {name}", QUESTION, [said], table=listing)
    return _answer(name, document, {"valid": False}, problems, exit_code=2)


def _answer(
    name: str,
    document: Document,
    values: Mapping[str, Any],
    problems: Sequence[Problem],
    **how: Any,
) -> Answer:
    rows = [(str(one.place.file), one.place.line, one.key, one.message) for one in problems]
    frame = pd.DataFrame(rows, columns=["file", "line", "key", "message"], dtype=object)
    return Answer("validate", name, lambda: document, {"problems": frame}, values, **how)


def answer_of_schema(schema: dict[str, Any]) -> Answer:
    """Every key with its meaning and unit, for editors: in a pipe, nothing but the schema."""
    listing = ListingBlock("JSON Schema", json.dumps(schema, indent=2, ensure_ascii=False))
    document = Document("The JSON Schema of scenarios", "Which keys are there?", [], table=listing)
    return Answer("validate", "schema", lambda: document, values={"schema": schema})
