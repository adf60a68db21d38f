"""A small log in a form that was once misread, the command, and the right value or a refusal."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.making import call


@dataclass(frozen=True)
class Case:
    """One row of the table: what is read, and what has to come out."""

    name: str
    files: dict[str, str]  # by name, relative to the folder that the command runs in
    command: str
    values: dict[str, float] = field(default_factory=dict)  # by path into --json: a.0.b
    refused: tuple[str, ...] = ()  # texts of the one error that `cprsim` ends with, exit code 2
    says: tuple[str, ...] = ()  # texts of the answer
    rel: float = 1e-3
    within: dict[str, float] = field(default_factory=dict)  # in the interval of an estimate there


def at(document: Any, path: str) -> Any:
    """The value at a path into nested data: keys and places with dots between."""
    for key in path.split("."):
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def check(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the answer of a case is neither right nor a refusal with the way out."""
    monkeypatch.chdir(folder)
    for name, text in case.files.items():
        Path(name).write_text(text, "utf-8")
    if case.refused:
        refused = call(*case.command.split())
        assert refused.exit_code == 2, refused.output
        said = " ".join(refused.output.split())
        assert not [text for text in case.refused if text not in said], said
        return
    answered = call(*case.command.split(), "--json")
    assert answered.exit_code == 0, answered.output
    document = json.loads(answered.stdout)
    found = {path: at(document, path) for path in case.values}
    assert found == pytest.approx(case.values, rel=case.rel)
    for path, true in case.within.items():
        assert at(document, f"{path}_low") <= true <= at(document, f"{path}_high"), path
    if case.says:
        shown = " ".join(call(*case.command.split()).output.split())
        assert not [text for text in case.says if text not in shown], shown
