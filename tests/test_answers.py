"""What holds for the answers of all commands: one contract for frames, JSON, pages and terminals.

A further command is a line in `CASES`: its words on the command line, and the same in Python.
"""

import html
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import cprsim
from cprsim.errors import json_printable, printable
from cprsim.pages.answer import Answer
from cprsim.pages.document import (
    Document,
    ListingBlock,
    Section,
    Table,
    Words,
)
from cprsim.pages.html import typeset
from cprsim.pages.terminal import Look, text_of
from tests.fleet.making import JOB, REST
from tests.golden.numbers import written_log
from tests.making import PRICES, SCENARIOS, call, small_scenario, undrawing

EXAMPLES = SCENARIOS.parent / "docs" / "examples"
EVIL = "<b>evil</b> | \x1b[31m \"'><script>"  # that no page and no terminal obeys
SMALL = small_scenario(replications=30).replace("emb_ps: 4", "emb_ps: 4, shard_size: 50 GB")
CURVE = EXAMPLES.parents[1] / "cprsim" / "accuracy" / "shipped" / "criteo-kaggle-linear.json"
KEPT = EXAMPLES.parents[1] / "results" / "reproduction" / "shadowsync"
KERNEL = "kernel: {samples: 3000, most_rows: 30, dimension: 4, bottom: [8], top: [8], batch: 50}\n"


def hostile() -> Answer:
    """An answer with what others wrote in every place."""
    table = Table(EVIL, [EVIL, "n", "m"], [[EVIL, "1.5 ± 0.2", EVIL]])
    blocks = [Words([EVIL]), table, ListingBlock(EVIL, f"</pre>{EVIL}")]
    document = Document(EVIL, EVIL, [EVIL], [Section(EVIL, blocks)], table, [EVIL])
    frame = pd.DataFrame({"name": [EVIL], "x_h": [1.5], "y": [float("nan")]})
    return Answer("hostile", EVIL, lambda: document, {"all": frame}, {"said": EVIL})


class Case(NamedTuple):
    """One answer, asked for in two ways; files of the folder are named as they are there."""

    words: str
    ask: Callable[[], Answer]


CASES = {
    "hostile": Case("", hostile),
    "run": Case("run small.yaml", lambda: cprsim.run("small.yaml")),
    "replay": Case("run small.yaml --replay 3", lambda: cprsim.run("small.yaml", replay=3)),
    "ledger": Case(
        f"ledger {EXAMPLES}/attempts.csv", lambda: cprsim.ledger(EXAMPLES / "attempts.csv")
    ),
    "sweep": Case(
        "sweep small.yaml --over recovery.full.interval=1h,40h --over failures.mtbf=9h,30h "
        "--workers 1",
        lambda: cprsim.sweep(
            "small.yaml",
            {"recovery.full.interval": ["1h", "40h"], "failures.mtbf": "9h,30h"},
            workers=1,
        ),
    ),
    "tornado": Case(
        "sweep small.yaml --over costs.save=30s,9min --over prices.node_hour=1USD,2USD "
        "--mode one-at-a-time --workers 1",
        lambda: cprsim.sweep(
            "small.yaml",
            {"costs.save": ["30s", "9min"], "prices.node_hour": "1USD,2USD"},
            mode="one-at-a-time",
            workers=1,
        ),
    ),
    "fleet": Case(
        "fleet fleet.yaml --over spares=0,2 --workers 1",
        lambda: cprsim.fleet("fleet.yaml", {"spares": [0, 2]}, workers=1),
    ),
    "sync": Case(
        "sync shadowsync --trainers 2,6", lambda: cprsim.sync("shadowsync", trainers=[2, 6])
    ),
    "studies": Case("reproduce --list", lambda: cprsim.reproduce(listed=True)),
    "reproduction": Case(f"report {KEPT} --out page.html", lambda: cprsim.read(KEPT)),
    "reproductions": Case(
        f"report {KEPT} {KEPT}/../systems --out page.html",
        lambda: cprsim.report(KEPT, KEPT / "../systems"),
    ),
    "select": Case(
        "select small.yaml --target-pls 0.02 --replications 100",
        lambda: cprsim.select("small.yaml", target_pls=0.02, replications=100),
    ),
    "systems": Case("systems", cprsim.systems),
    "explanation": Case("systems --explain gemini", lambda: cprsim.systems(explain="gemini")),
    "comparison of systems": Case(
        "systems small.yaml --fixed --only full --only partial --out systems",
        lambda: cprsim.systems("small.yaml", fixed=True, only=["full", "partial"]),
    ),
    "fit": Case(
        f"fit {EXAMPLES}/failures.csv --time-unit h --nodes 16 --bootstrap 0",
        lambda: cprsim.fit(EXAMPLES / "failures.csv", time_unit="h", nodes=16, bootstrap=0),
    ),
    "fit of costs": Case(
        f"fit {EXAMPLES}/saves.csv --bootstrap 0",
        lambda: cprsim.fit(EXAMPLES / "saves.csv", bootstrap=0),
    ),
    "curve": Case(f"report {CURVE} --out page.html", lambda: cprsim.read(CURVE)),
    "train": Case("train trained.yaml", lambda: cprsim.train("trained.yaml")),
    "backtest": Case(
        "backtest jobs.jsonl --recovery full,partial --draws 4 --set prices.node_hour=2",
        lambda: cprsim.backtest(
            "jobs.jsonl", recovery="full,partial", draws=4, overrides={"prices.node_hour": 2}
        ),
    ),
    "calibrate": Case("calibrate jobs.jsonl", lambda: cprsim.calibrate("jobs.jsonl")),
    "validate": Case("validate small.yaml", lambda: cprsim.validate("small.yaml")),
    "validate, wrong": Case(
        "validate small.yaml --set costs.save=-1",
        lambda: cprsim.validate("small.yaml", {"costs.save": -1}),
    ),
    "init": Case(
        "init first.yaml --kind llm --nodes 8 --force",
        lambda: cprsim.init("first.yaml", kind="llm", nodes=8, force=True),
    ),
    "init, list": Case("init --list", lambda: cprsim.init(listed=True)),
    "comparison": Case("report kept other --out page.html", lambda: cprsim.report("kept", "other")),
}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Small inputs of all kinds, in the working directory."""
    path = tmp_path_factory.mktemp("answers")
    with pytest.MonkeyPatch.context() as patch, undrawing():
        patch.chdir(path)
        Path("small.yaml").write_text(SMALL + PRICES, "utf-8")
        Path("fleet.yaml").write_text(
            (JOB + REST).replace("jobs: 24, kinds: 12", "jobs: 6, kinds: 3"), "utf-8"
        )
        Path("trained.yaml").write_text(SMALL + KERNEL, "utf-8")
        written_log(Path("jobs.jsonl"))
        cprsim.run("small.yaml", folder="kept")
        cprsim.run("small.yaml", seed=2, folder="other")
        yield path


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, Answer]:
    return {}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, answers: dict[str, Answer]) -> tuple[Case, Answer]:
    return CASES[request.param], asked(answers, request.param)


def asked(answers: dict[str, Answer], name: str) -> Answer:
    if name not in answers:
        answers[name] = CASES[name].ask()
    return answers[name]


def cells(table: Table) -> list[str]:
    """What stands in a table, with its headings."""
    rows = [str(cell) for row in table.rows for cell in row]
    return [one for one in (*table.headings, *rows) if one]


def plain(text: str) -> str:
    """HTML without tags."""
    return printable(html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\N{NO-BREAK SPACE}", " "))


def test_frames_are_tidy(case: tuple[Case, Answer]) -> None:
    _, answer = case
    for frame in (*answer.frames.values(), *answer.rows.values()):
        names = [str(name) for name in frame.columns]
        assert len(set(names)) == len(names)
    for frame in answer.frames.values():
        for name in map(str, frame.columns):
            assert re.fullmatch(r"[\w.:@-]+", name), name
            if name.endswith("_low") and name[:-4] in frame:
                mean, low, high = (
                    pd.to_numeric(frame[one]).to_numpy(float)
                    for one in (name[:-4], name, f"{name[:-4]}_high")
                )
                known = np.isfinite(mean) & np.isfinite(low) & np.isfinite(high)
                assert (low[known] <= mean[known] + 1e-9).all()
                assert (mean[known] <= high[known] + 1e-9).all()


def test_the_parts_of_a_bill_are_its_total_to_the_cent(case: tuple[Case, Answer]) -> None:
    _, answer = case
    if "bills" in answer.frames:
        bills = answer.frames["bills"]
        for _, mine in bills.groupby([name for name in ("result", "strategy") if name in bills]):
            for column in ("job_cost", "month_cost"):
                cents = 100 * mine.set_index("part")[column]
                assert (cents.round() - cents).abs().max() < 1e-6
                assert round(cents.drop("total").sum()) == round(cents["total"]) > 0


def test_json_is_the_frames_and_the_values(case: tuple[Case, Answer]) -> None:
    _, answer = case
    said = json.loads(answer.to_json())
    assert said.keys() == {"format", "kind", "name", "folder", "files", "values", "frames"}
    assert (said["format"], said["kind"]) == (2, answer.kind)
    assert said["values"].keys() == answer.values.keys()
    for name, frame in answer.frames.items():
        assert len(said["frames"][name]) == len(frame)
        for row, (_, mine) in zip(said["frames"][name], frame.iterrows(), strict=True):
            assert list(row) == list(frame.columns)
            for column, value in mine.items():
                if isinstance(value, float | np.floating) and np.isfinite(value):
                    assert row[column] == value


def test_the_shell_says_the_same_as_python(case: tuple[Case, Answer], folder: Path) -> None:
    asked, answer = case
    if not asked.words:
        pytest.skip("no command makes it")
    called = call(*asked.words.split(), "--json", "-q")
    assert called.exit_code == answer.exit_code, called.output
    found, mine = json.loads(called.stdout), json.loads(json_printable(answer.to_json()))
    for one in (found, mine):
        del one["folder"], one["files"]
    assert found == mine


def test_a_page_is_valid_escaped_and_shows_every_number(case: tuple[Case, Answer]) -> None:
    _, answer = case
    answer.report("page.html")
    text = Path("page.html").read_text("utf-8")
    page = ElementTree.fromstring(re.sub("<((?:meta|img) [^>]*)>", r"<\1/>", text))
    ids = [tag.attrib["id"] for tag in page.iter() if "id" in tag.attrib]
    assert len(ids) == len(set(ids))
    named = (tag.get("aria-labelledby", tag.get("href", "")[1:]) for tag in page.iter())
    assert {name for names in named for name in names.split()} <= set(ids)
    levels = [int(tag.tag[1]) for tag in page.iter() if re.fullmatch(r"h\d", tag.tag)]
    assert levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    assert "<b>evil" not in text
    assert "\x1b" not in text
    assert "<script" not in text
    assert "Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style" in text
    shown = plain(text)
    words = (block for block in answer.document.blocks if isinstance(block, Words))
    assert not any("(docs/" in said for block in words for said in block.paragraphs)
    tables = [block for block in answer.document.blocks if isinstance(block, Table)]
    for said in (*answer.document.answer, *(cell for table in tables for cell in cells(table))):
        assert plain(typeset(said)) in shown


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize("everything", [False, True])
def test_a_terminal_is_never_too_narrow(
    case: tuple[Case, Answer], width: int, everything: bool
) -> None:
    _, answer = case
    shown = text_of(answer.document, verbose=everything, look=Look(width))
    listed = {
        line
        for block in answer.document.blocks
        if isinstance(block, ListingBlock)
        for line in printable(block.text).splitlines()
    }
    for line in shown.splitlines():
        assert len(line) <= width or line in listed
    words = "".join(shown.split())
    table = answer.document.table
    if isinstance(table, Table) and not everything:
        assert all(word in words for cell in cells(table) for word in printable(cell).split())


def test_an_answer_is_brief_on_a_terminal(case: tuple[Case, Answer]) -> None:
    _, answer = case
    assert 1 <= len(answer.document.answer) <= 2
    assert printable(answer.document.answer[0]) in str(answer)
    assert sum(printable(remark) in str(answer) for remark in answer.document.remarks) <= 3
    assert repr(answer).startswith("<cprsim.Answer ")
    shown = answer._repr_html_()
    assert all(text not in shown for text in ("<script", "<style", "<b>evil"))


def test_figures_have_own_names_and_legends_beside_the_data(case: tuple[Case, Answer]) -> None:
    _, answer = case
    names = [one.name for one in answer.document.pictures]
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)
    assert len(set(names)) == len(names) or answer.document.parts
    for figure in answer.figures.values():
        figure.draw_without_rendering()
        legends = [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]
        for legend, axes in product(legends, figure.axes):
            assert not legend.get_window_extent().overlaps(axes.bbox)


@pytest.mark.parametrize("kind", ["sweep", "select", "reproduction", "curve"])
def test_results_of_several_kinds_say_what_each_says(answers: dict[str, Answer], kind: str) -> None:
    both = cprsim.report(asked(answers, "run"), asked(answers, kind))
    assert both.frames.keys() == {"inputs"}
    assert [said[:3] for said in both.document.answer] == ["A: ", "B: "]
