"""The program as users run it: exit codes, kills, pipes, speed."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from cprsim.results.run import load_result
from tests.making import PATIENCE_S

pytestmark = pytest.mark.long


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def cpu_s() -> float:
    """What processes that ended took: not the clock's time, which others share."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_loads_nothing_heavy():
    code = (
        "import sys; sys.argv = ['cprsim', '--help']\n"
        "from cprsim.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'matplotlib', 'pydantic', 'rich', 'yaml', 'simpy'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SOON_S = 6  # of CPU, mostly imports, on a slow machine; compiling the engine would take far longer


@pytest.mark.parametrize("text", ["job: {useful: 50 h, usefull: 3 h}", "a" * 50_000_000])
def test_bad_input_ends_in_one_clear_message_soon_and_writes_nothing(
    program, scenario, listing, text
):
    scenario.write_text(text, "utf-8")
    before_s = cpu_s()
    done = program("run", scenario)
    assert cpu_s() - before_s < SOON_S
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(str(scenario))
    assert "Traceback" not in done.stderr
    assert listing() == []


@pytest.mark.parametrize("arguments", [["validate", "--schema"], ["run", "small.yaml", "--json"]])
def test_a_reader_that_goes_away_is_no_error(undrawing_program, scenario, arguments):
    running = subprocess.Popen(
        [*undrawing_program.command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait(timeout=PATIENCE_S) != 0


def test_a_terminal_without_the_signs_gets_a_table_all_the_same(undrawing_program, scenario):
    plain = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = undrawing_program("run", scenario, env=plain)
    assert done.returncode == 0
    assert "overhead" in done.stdout


def test_the_same_command_gives_the_same_bytes(program, scenario, tmp_path):
    folders = []
    for hash_seed in ("1", "2"):
        root = tmp_path / hash_seed
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        assert program("run", scenario, "--out", root, env=environment).returncode == 0
        folders.append(next(root.iterdir()))
    one, two = (contents(folder) for folder in folders)
    assert one.pop("manifest.json") != two.pop("manifest.json")
    assert one == two
    assert len(one) == 12


def test_the_same_command_twice_at_once_gives_one_sound_folder(
    undrawing_program, scenario, tmp_path
):
    command = [*undrawing_program.command, "run", scenario, "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    outputs = [running.communicate(timeout=PATIENCE_S)[0] for running in both]
    assert [running.returncode for running in both] == [0, 0]
    assert outputs[0] == outputs[1]
    (folder,) = (tmp_path / "results").iterdir()
    load_result(folder)
