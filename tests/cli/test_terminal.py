"""Nothing that stands in a file is obeyed by a terminal, whatever prints it."""

import hashlib
import json

import pytest

from cprsim.errors import printable
from tests.making import small_scenario
from tests.results.test_folder import say

EVIL = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202edlrow[/b][bold]"
SPELLED = EVIL.encode("unicode_escape").decode("ascii")  # as double-quoted YAML does


def assert_spelled_out(called) -> None:
    for text in (called.stdout, called.stderr):
        assert printable(text) == text
    assert "Traceback" not in called.stderr


def test_names_of_nodes_causes_and_files_of_a_log(cprsim, tmp_path) -> None:
    rows = [f'"{EVIL}{i % 3}",{10 * i},{10 * i + 1 + i % 4},"cause {EVIL}"' for i in range(1, 40)]
    log = tmp_path / f"{EVIL.replace('/', '')}\n# .csv"
    log.write_text("\n".join(["node,start,end,cause", *rows]), "utf-8")
    few = ("--time-unit", "h", "--bootstrap", "0")
    called = cprsim("fit", log, *few, "-v")
    assert called.exit_code == 0, called.stderr
    assert r"\n# .csv" in called.stdout  # within the comment of the fragment, not below it
    assert_spelled_out(called)
    for options in (("--json",), ("--node", "nobody"), ("--cause", "no"), ("--node", EVIL + "0")):
        assert_spelled_out(cprsim("fit", log, *few, *options))


@pytest.mark.parametrize("words", [("validate", f"no {EVIL}"), ("report", EVIL, EVIL)])
def test_words_of_the_command_line(cprsim, words) -> None:
    assert_spelled_out(cprsim(*words))


def test_what_a_foreign_result_says_of_itself(cprsim, tmp_path) -> None:
    cprsim("run", "small.yaml", "--out", "results")
    (folder,) = (tmp_path / "results").iterdir()
    job = json.loads((folder / "job.json").read_text("utf-8"))
    (folder / "job.json").write_text(json.dumps(job | {"name": EVIL}), "utf-8")
    digest = hashlib.sha256((folder / "job.json").read_bytes()).hexdigest()
    say(folder, files={"job.json": {"sha256": digest, "bytes": 1}})
    for options in ((), ("--json",)):
        called = cprsim("run", "small.yaml", "--out", "results", *options)  # finds it again
        assert called.exit_code == 0, called.stderr
        assert "red" in called.stdout
        assert_spelled_out(called)
        assert_spelled_out(cprsim("report", folder, folder, *options))


@pytest.mark.parametrize(
    "text",
    [
        small_scenario().replace("name: small", f'name: "{SPELLED}"'),
        small_scenario() + f'"{SPELLED}": 1\n',
        small_scenario() + f"# {EVIL}\n",
        SPELLED,
    ],
)
def test_what_a_scenario_says(cprsim, tmp_path, text) -> None:
    (tmp_path / "evil.yaml").write_text(text, "utf-8")
    called = cprsim("validate", "evil.yaml")
    assert called.exit_code == 2
    assert_spelled_out(called)
