"""What a terminal shows besides the words: bold and colour; the help, in words, with examples."""

import re
import shlex
from io import StringIO
from pathlib import Path

import pytest

from cprsim.cli.console import style_on
from cprsim.commands import NAMES
from cprsim.pages.document import Document, Table
from cprsim.pages.terminal import Look, text_of
from tests.making import call

ESCAPE = re.compile(r"\x1b\[[\d;]*m")
DOCUMENT = Document(
    "Costs", "What?", ["Use \x1b[31mcpr, of 2.5 parts: it costs least of all. It loses samples."],
    table=Table("", ["strategy", "overhead, %"], [["full", "8.6"], ["cpr", "1.4"]]),
    remarks=["One log is short."],
)  # fmt: skip
RUN_BY_OTHERS = {"calibrate", "explore", "measure", "rehearse", "reproduce", "train"}  # slowly


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_sentence_and_row_are_marked_and_the_text_is_the_same(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    look = Look(30, style_on(Terminal()), "cpr", ["One log is short."])
    shown = text_of(DOCUMENT, look=look)
    assert ESCAPE.sub("", shown) == text_of(DOCUMENT, look=Look(30))
    marked = [ESCAPE.sub("", line) for line in shown.splitlines() if ESCAPE.search(line)]
    assert ["".join(line.split()) for line in marked[-2:]] == ["cpr1.4", "Onelogisshort."]
    bold = "".join(re.findall(r"\x1b\[1m([^\x1b]*)", shown.split("\n\n")[0]))
    assert bold == r"Use \x1b[31mcpr, of 2.5 parts:it costs least of all."


def test_units_stay_with_their_numbers_and_the_longest_cells_have_the_most_room() -> None:
    cells = ["young", "a save every 1.37 h", "all nodes go back to the last save, 18.5 min ago"]
    headings = ["name", "interval", "what it does"]
    table = Table("", headings, [cells], headings)
    lines = text_of(Document("", "", ["It takes 8.39 %."], table=table), look=Look(45)).splitlines()
    assert len(lines) == 6  # each cell in two
    shown = text_of(Document("", "", ["It takes all 8.3 ± 0.2 %."], table=table), look=Look(24))
    assert all(text in shown for text in ("1.37 h", "18.5 min", "8.3 ± 0.2 %"))


@pytest.mark.parametrize(
    ("stream", "name", "value"),
    [(StringIO(), "TERM", "xterm"), (Terminal(), "TERM", "dumb"), (Terminal(), "NO_COLOR", "1")],
)
def test_nothing_is_marked_where_nobody_wants_it(monkeypatch, stream, name, value) -> None:
    monkeypatch.setenv(name, value)
    assert style_on(stream)("word", bold=True, fg="red") == "word"


@pytest.mark.parametrize("name", NAMES)
def test_help_is_in_words_and_has_an_example(name) -> None:
    text = call(name, "--help").output
    assert not re.search(r"<\w+|RANGE|x[<>]=|list\[", text)
    (example,) = re.findall(r"Example:\n    cprsim (.*)\n", text)
    words = shlex.split(example)
    assert words[0] == name
    undescribed = re.findall(r"^  (--[\w-]+) [A-Z|:/,.=\w]+ +(?=$|\[)", text, re.M)
    assert undescribed == []


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*NAMES} - RUN_BY_OTHERS))
def test_the_example_works(cprsim, name, tmp_path) -> None:
    attempts = "job,start,end,last_step,last_saved_step,step_seconds,node\n" + "".join(
        f"a,2026-03-{day:02d}T08:00Z,2026-03-{day:02d}T14:00Z,{day}180,{day}000,10,n{day % 3}\n"
        for day in range(1, 20)
    )
    days = "".join(f"n{n % 4},2026-01-{n:02d}T08Z,2026-01-{n:02d}T09Z\n" for n in range(1, 21))
    Path("attempts.csv").write_text(attempts, "utf-8")
    Path("failures.csv").write_text(f"node,start,end\n{days}", "utf-8")
    (example,) = re.findall(r"Example:\n    cprsim (.*)\n", call(name, "--help").output)
    if name == "report":
        assert cprsim("run", "quickstart", "--replications", 20).exit_code == 0
        example = example.replace("results/quickstart-*", str(next(tmp_path.glob("results/q*"))))
    done = cprsim(*shlex.split(example))
    assert done.exit_code == 0, done.output
