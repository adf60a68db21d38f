"""A recovery system of one's own, that of the documents: everything knows it.

Systems are found when the package is imported, so what is asked for runs in another process: one
for all that a system is asked for, as its start takes longer than what it does.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """
name: own
job: {useful: 20 h}
cluster: {workers: 8}
failures: {kind: job, family: exponential, mtbf: 5 h, role: worker}
costs: {save: 1 min, load: 4 min, detect: 1 min}
recovery: [full, {strategy: neighbour, options: {every: 30 min}}]
simulation: {replications: 40, seed: 1}
"""
COMMANDS = {
    "run": "run own.yaml --json --out run",
    "shown": "run own.yaml --out shown",
    "schema": "validate --schema",
    "wrong": "run wrong.yaml",
    "reproduced": "reproduce fig-overheads --effort quick --out made --json",
}
CHILD = """
import json, sys
from cprsim.pages import figures
from tests.making import call
figures.save_figures = lambda *_, **__: []
said = {}
for name, words in json.load(sys.stdin).items():
    ran = call(*words.split())
    said[name] = [ran.exit_code, ran.stdout, ran.stderr]
json.dump(said, sys.stdout)
"""
ROOT = Path(__file__).parents[3]
Said = tuple[int, str, str]  # exit code, standard output and error


def python(folder: Path, systems: Path, *words: str, stdin: str = "") -> Said:
    """Run Python where the systems of a folder are known."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {"CPRSIM_SYSTEMS": str(systems), "COLUMNS": "200", "PYTHONPATH": path}
    ran = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **environment}, cwd=folder, input=stdin, capture_output=True, text=True,
    )  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Said]:
    """What each of the commands said."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.yaml").write_text(SCENARIO)
    (folder / "wrong.yaml").write_text(SCENARIO.replace("every", "evry"))
    systems = ROOT / "examples" / "systems"
    code, out, err = python(folder, systems, "-c", CHILD, stdin=json.dumps(COMMANDS))
    assert code == 0, err
    return {name: tuple(run) for name, run in json.loads(out).items()}


def test_it_runs(runs: dict[str, Said]) -> None:
    code, out, err = runs["run"]
    assert code == 0, err
    rows = json.loads(out)["frames"]["strategies"]
    (line,) = (row for row in rows if row["strategy"] == "neighbour")
    assert line["interval_h"] == 0.5
    assert line["load_fraction"] > 0.0


def test_the_table_and_the_schema_know_it_and_its_option(runs: dict[str, Said]) -> None:
    code, out, err = runs["shown"]
    assert code == 0, err
    assert "neighbour" in out
    sections = json.loads(runs["schema"][1])["$defs"]
    assert "neighbour" in json.dumps(sections["RecoverySection"]["properties"]["strategy"])
    assert "neighbour: progress between copies" in json.dumps(sections["Options"])


def test_a_wrong_option_is_one_clear_error(runs: dict[str, Said]) -> None:
    code, _, err = runs["wrong"]
    assert code == 2
    assert "unknown key; did you mean `every`?" in err
    assert "wrong.yaml" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("this is no Python\n", "mine.py: SyntaxError"),
        (
            "from cprsim.recovery.systems.parity import SYSTEMS\n",
            "a recovery system `ecrec` already",
        ),
    ],
)
def test_a_file_that_gives_no_system_is_one_clear_error(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "mine.py").write_text(text)
    code, _, err = python(tmp_path, tmp_path, "-m", "cprsim", "run", str(ROOT / "README.md"))
    assert code == 2
    assert message in err
    assert "Traceback" not in err


def test_it_stands_as_a_row_of_the_overheads_in_the_emulation(runs: dict[str, Said]) -> None:
    code, out, err = runs["reproduced"]
    assert code == 0, err
    assert "Kaggle: neighbour, overhead in %" in out  # in the answer, beside the paper's
