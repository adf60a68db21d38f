"""What a page says, without a browser: numbers, the same bytes again, damage refused."""

import html
import re
import shutil

import pytest

import cprsim
from cprsim.commands.run.sentences import answer
from cprsim.errors import ResultError, WriteError
from cprsim.pages.answer import Answer
from cprsim.pages.html import render
from cprsim.results.run import load_result
from cprsim.results.words import percent
from tests.making import small_scenario, undrawing

pytestmark = pytest.mark.usefixtures("undrawn")

TITLE = '<img src=x onerror=alert(1)> & "co"'


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Answer:
    with undrawing():
        return cprsim.run(small_scenario(), folder=tmp_path_factory.mktemp("page"))


def test_the_same_result_gives_the_same_bytes_wherever_it_lies(run, tmp_path):
    moved = tmp_path / "elsewhere" / run.folder.name
    shutil.copytree(run.folder, moved)
    pages = [
        cprsim.read(folder).report(tmp_path / f"{n}.html", title=TITLE).read_bytes()
        for n, folder in enumerate((run.folder, moved))
    ]
    assert pages[0] == pages[1]
    assert TITLE.encode() not in pages[0]


def test_the_answer_comes_first_and_the_scenario_the_seed_and_the_versions_are_there(run):
    result = load_result(run.folder)
    summary, manifest = result.summary, result.manifest
    best = min(summary, key=lambda name: summary[name]["overhead_fraction"].mean)
    overhead, first = summary[best]["overhead_fraction"], answer(result)[0]
    for said in (f"Use {best} ", percent(overhead.mean), percent(overhead.high)):
        assert said in first
    page = render(cprsim.read(run.folder).document)
    assert page.index("answer") < page.index("<main")
    text = html.unescape(page)
    for said in (
        (run.folder / "scenario.yaml").read_text("utf-8"), manifest["digest"],
        manifest["cprsim"]["source"], f"numpy {manifest['libraries']['numpy']}",
        manifest["files"]["replications.parquet"]["sha256"],
    ):  # fmt: skip
        assert said in text
    assert manifest["host"]["platform"] not in text
    assert manifest["started_at"] not in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", " is no folder, and no file of a staleness curve"),
        ("empty", " is no finished result: it has no manifest.json"),
        ("mine.json.runs", " holds the single runs of a measurement: name its curve, mine.json"),
        ("damaged", " is damaged: summary.csv differs from its digest"),
    ],
)
def test_what_is_no_result_is_refused(run, tmp_path, name, said):
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine.json.runs").mkdir()
    (tmp_path / "mine.json.runs" / "measurement.json").write_text("{}", "utf-8")
    shutil.copytree(run.folder, tmp_path / "damaged")
    with (tmp_path / "damaged" / "summary.csv").open("a") as file:
        file.write("more\n")
    with pytest.raises(ResultError, match=f"^{re.escape(str(tmp_path / name) + said)}$"):
        cprsim.report(run.folder, tmp_path / name)


def test_a_page_that_cannot_be_written_leaves_the_old_one(run, tmp_path, monkeypatch):
    out = tmp_path / "page.html"
    out.write_text("old", "utf-8")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cprsim.files.os.fsync", full)
    with pytest.raises(WriteError, match=f"^can't write {out}: No space left on device$"):
        run.report(out)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    for name, said in (("missing/page.md", "there is no folder"), ("page.pdf", "name a page")):
        with pytest.raises(ResultError, match=f"{name}: {said}"):
            run.report(tmp_path / name)
