"""What docs/trust.md promises and no room alone can show."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cprsim.results.folder import seal
from cprsim.results.run import load_result
from cprsim.selector.choice import load_selection
from cprsim.sweeps.folder import load_sweep
from tests.making import WITHOUT_FIGURES, call, small_scenario

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
EVIL = "</script>\"'><img src=x onerror=alert(1)>"
OVER = ("--over", "costs.save=1 min,2 min", "--workers", 1)
REFUSED = (
    ("run", "small.yaml", "--set", "accuracy.curve=curve.json"),
    ("run", "small.yaml", "--set", "failures.mtbf=1 s", "--set", "job.useful=100000 h"),
    ("sweep", "small.yaml", "--over", "cluster.emb_ps=4,-4", "--workers", 1),
    ("sweep", "small.yaml", *OVER, "--precision", "nonsense"),
    ("select", "small.yaml", "--max-auc-loss", 0.1, "--curve", "curve.json"),
    ("measure", "small.yaml", "--set", "kernel.samples=-1", "--out", "measured.json"),
    ("fit", "log.csv", "--save", "fragment.yaml"),
    ("compare", ".", "."),
    ("report", "curve.json", "--out", "page.html"),
    ("plot", ".", "--out", "figures"),
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to work in, with a sound scenario, a log and a curve that are none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(small_scenario(), "utf-8")
    (tmp_path / "log.csv").write_text("node,start,end\na,2,1\n", "utf-8")
    (tmp_path / "curve.json").write_text('{"kind": "cprsim staleness curve"}', "utf-8")
    return tmp_path


@pytest.mark.parametrize("arguments", REFUSED, ids=lambda words: " ".join(map(str, words))[:60])
def test_a_refusal_writes_nothing(folder, arguments) -> None:
    before = contents(folder)
    done = call(*arguments)
    assert done.exit_code == 2, done.output
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, by its path."""
    found = {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
    return {str(path.relative_to(folder)): content for path, content in found.items()}


# What is killed, the function in which it kills itself, and what reads its folder.
KILLED = {
    "run": (("run", "small.yaml"), "cprsim.results.folder._installed", load_result),
    "select": (
        ("select", "small.yaml", "--target-pls", 0.1, "--replications", 100),
        "cprsim.results.folder._put_in_place",
        load_selection,
    ),
    "sweep": (("sweep", "small.yaml", *OVER), "cprsim.results.folder._put_in_place", load_sweep),
}
KILL = f"""\
import os, signal, sys
from importlib import import_module
{WITHOUT_FIGURES}
room, function = sys.argv.pop(1).rsplit(".", 1)
setattr(import_module(room), function, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
from cprsim.cli import main
main()
"""


@pytest.mark.parametrize("moment", KILLED)
def test_a_kill_leaves_no_half_written_result_and_the_same_command_finishes(
    folder, moment, monkeypatch
) -> None:
    arguments, function, read = KILLED[moment]
    command = [sys.executable, "-c", KILL, function, *map(str, arguments)]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    results = folder / "results"
    assert list(results.glob(".*.unfinished/new/*")), "it was killed before it wrote anything"
    assert visible(results) == []

    monkeypatch.setattr("cprsim.plots.save.save_figures", lambda *_, **__: [])
    assert call(*arguments).exit_code == 0
    (finished,) = visible(results)
    read(finished)
    assert not list(results.glob(".*.unfinished"))


def visible(results: Path) -> list[Path]:
    """What looks like results; the points of a sweep are kept beside them, each whole."""
    points = results / "points"
    for path in points.rglob("*.json"):
        json.loads(path.read_text("utf-8"))
    return [path for path in results.glob("[!.]*") if path != points]


def test_no_script_from_a_name_runs_in_a_report(folder, monkeypatch) -> None:
    """The result is a foreign one: no scenario takes such names."""
    monkeypatch.setattr("cprsim.plots.save.save_figures", lambda *_, **__: [])
    assert call("run", "small.yaml").exit_code == 0
    (result,) = visible(folder / "results")
    rename_everything(result)
    done = call("report", result, "--title", EVIL, "--out", "page.html")
    assert done.exit_code == 0, done.output
    text = (folder / "page.html").read_text("utf-8")
    assert text.count("alert(1)") > 5, "the names are shown"
    for obeyed in ("<script", "<img src=x", "<iframe", "javascript:"):
        assert obeyed not in text
    assert not re.search(r"<[^>]*\son\w+=", text), "no tag has an event"
    (policy,) = re.findall(r'content-security-policy" content="([^"]*)"', text, re.IGNORECASE)
    assert html.unescape(policy).startswith("default-src 'none'")
    assert "script-src" not in policy


def rename_everything(result: Path) -> None:
    """Put the evil name for everything that has a name, and seal the folder again."""
    job = json.loads((result / "job.json").read_text("utf-8"))
    job["name"] = f"job {EVIL}"
    for number, strategy in enumerate(job["policies"]):
        strategy |= {"name": f"{EVIL} {number}", "interval_rule": EVIL}
    (result / "job.json").write_text(json.dumps(job), "utf-8")
    names = {old: f"{EVIL} {number}" for number, old in enumerate(("full", "partial", "cpr"))}
    for path in result.glob("*.parquet"):
        table = pd.read_parquet(path)
        table.assign(strategy=table["strategy"].map(names)).to_parquet(path)
    manifest = json.loads((result / "manifest.json").read_text("utf-8"))
    del manifest["manifest_sha256"]
    (result / "manifest.json").unlink()
    seal(result, manifest | {"name": EVIL, "command": ["cprsim", EVIL], "python": EVIL})


def test_what_the_promise_sheet_names_is_there() -> None:
    text = (ROOT / "docs/trust.md").read_text("utf-8")
    for name in re.findall(r"\b(?:tests|benchmarks|cprsim)/[\w/]+\.py", text):
        assert (ROOT / name).is_file(), name
    for name, test in re.findall(r"(tests/[\w/]+\.py) -k (\w+)", text):
        assert test in (ROOT / name).read_text("utf-8"), f"{name} has no {test}"
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (ROOT / "docs" / target).exists(), target
