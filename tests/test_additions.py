"""What a stranger adds: a command is one function, and a line that names it."""

import json
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cprsim.cli.app import command
from cprsim.commands import COMMANDS
from cprsim.errors import ParameterError

SOURCE = '''
from __future__ import annotations

from typing import Annotated

from annotated_types import Ge

import cprsim.commands


@cprsim.commands.command("cprsim nines 0.999")
def nines(share: float, *, years: Annotated[int, Ge(1)] = 1):
    """Say what an availability means in hours.

    Parameters
    ----------
    share : float
        Of the time that it works.
    years : int, default 1
        Over so many years.
    """
    import pandas as pd

    from cprsim.errors import ParameterError
    from cprsim.pages.answer import Answer
    from cprsim.pages.document import Document

    if not 0 <= share <= 1:
        raise ParameterError(f"{share} is no share", option="--years")
    down_h = 8766 * years * (1 - share)
    document = Document("Nines", "How long is it down?", [f"{down_h:.1f} h."])
    hours = pd.DataFrame({"down_h": [down_h]})
    return Answer("nines", str(share), lambda: document, {"hours": hours})
'''


def test_a_command_is_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_a_stranger.py").write_text(SOURCE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    nines = import_module("of_a_stranger").nines
    asked = COMMANDS.pop("nines")
    app = typer.Typer(rich_markup_mode=None)
    app.command("nines")(command(asked))  # as `cprsim.cli.app` does with every name of `cprsim`
    app.callback()(lambda: None)

    def call(*words: str) -> str:
        return CliRunner().invoke(app, ["nines", *words]).output

    text = call("--help")
    words = (
        "Say what an availability means",
        "Over so many years.",
        "at least 1",
        "--json",
        "--page",
    )
    assert [said for said in words if said not in text] == []
    assert call("0.999").startswith("8.8 h.")
    said = json.loads(call("0.999", "--json", "--years", "2"))
    assert (said["kind"], said["frames"]["hours"][0]["down_h"]) == ("nines", pytest.approx(17.532))
    assert "greater than or equal to 1" in call("0.9", "--years", "0")
    with pytest.raises(ParameterError, match="years: 0 should be greater than or equal to 1"):
        nines(0.9, years=0)
    with pytest.raises(ParameterError, match=r"^years: 2.0 is no share"):  # in Python's words
        nines(2.0)
