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
from cprsim.scenario.schema import Scenario


def answer_of_checked(
    name: str, scenario: Scenario | None, warnings: Sequence[str], problems: Sequence[Problem]
) -> Answer:
    """A scenario that can run, or None and each problem with its file and line."""
    rows = [
        (str(problem.place.file), problem.place.line, problem.key, problem.message)
        for problem in problems
    ]
    frame = pd.DataFrame(rows, columns=["file", "line", "key", "message"], dtype=object)
    values: dict[str, Any] = {"valid": scenario is not None}
    verdict = count(len(problems), "problem")
    if scenario is not None:
        values |= {
            "strategies": [entry.name for entry in scenario.recovery], "warnings": list(warnings),
        }  # fmt: skip
        verdict = f"ok ({scenario.name}: {', '.join(values['strategies'])})"
    document = Document(
        f"Checked: {name}",
        "Is this a scenario?",
        [f"{name}: {verdict}"],
        table=ListingBlock("What is wrong", "\n".join(map(str, problems))) if problems else None,
        remarks=[f"Warning: {warning}" for warning in warnings],
    )
    of = name if scenario is None else scenario.name
    return Answer("validate", of, lambda: document, {"problems": frame}, values,
                  exit_code=2 if problems else 0)  # fmt: skip


def answer_of_schema(schema: dict[str, Any]) -> Answer:
    """Every key with its meaning and unit, for editors: in a pipe, nothing but the schema."""
    listing = ListingBlock("JSON Schema", json.dumps(schema, indent=2, ensure_ascii=False))
    document = Document("The JSON Schema of scenarios", "Which keys are there?", [], table=listing)
    return Answer("validate", "schema", lambda: document, values={"schema": schema})
