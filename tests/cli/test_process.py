"""The program as users run it: exit codes, pipes, speed, little memory, errors nobody foresaw."""

import os
import resource
import subprocess
import sys

import pytest

import cprsim
from cprsim.failures.sources import MEMORY_KEY
from cprsim.results.folder import damage
from tests.making import PATIENCE_S, PROGRAM, WITHOUT_FIGURES

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("scenario")]

UNDRAWING = [sys.executable, "-c", f"{WITHOUT_FIGURES}; from cprsim.cli import main; main()"]
RUN = ("run", "small.yaml")
SOON_S = (
    6  # of CPU, mostly imports, on a slow machine; compiling the simulation would take far longer
)
HELP = """\
import sys; sys.argv = ['cprsim', '--help']
from cprsim.cli import main
try: main()
except SystemExit: pass
heavy = {'numpy', 'pandas', 'scipy', 'matplotlib', 'pydantic', 'rich', 'yaml', 'simpy'}
sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)
"""
BREAKING = """\
import cprsim.scenario.reading
def broken(*_, **how): {what}
cprsim.scenario.reading.load_scenario = broken
from cprsim.cli import main
main()
"""
UNLOADABLE = """\
import cprsim.cli.app
def no_import(*_, **__): raise ImportError("numpy is broken")
cprsim.cli.app.app = no_import
from cprsim.cli import main
main()
"""
LIMITED = f"""\
import os, resource, sys
from cprsim.results import pipeline
from cprsim.scenario.assemble import assemble
from cprsim.cli import main
from cprsim.scenario.reading import load_scenario
import cprsim.commands.run.answer, cprsim.results.folder
{WITHOUT_FIGURES}
# machine code is what the program is made of: where it finds no room, LLVM ends the process
pipeline.compile_first(assemble(load_scenario(sys.argv[2])))
pages = int(open("/proc/self/statm").read().split()[0])
room = pages * os.sysconf("SC_PAGE_SIZE") + 100_000_000
resource.setrlimit(resource.RLIMIT_AS, (room, room))
main()
"""


def ended(program, *arguments, **options) -> subprocess.CompletedProcess[str]:
    """The program, or Python with a text as its program, after it ended."""
    command = program if isinstance(program, list) else [sys.executable, "-c", program]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, **options
    )


def cpu_s() -> float:
    """What processes that ended took: not the clock's time, which others share."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_loads_nothing_heavy():
    done = ended(HELP)
    assert done.returncode == 0, done.stderr


def test_the_program_may_be_called_as_a_module() -> None:
    done = ended([sys.executable, "-m", "cprsim"], "--version")
    assert done.stdout == f"cprsim {cprsim.__version__}\n"


@pytest.mark.parametrize("text", ["job: {useful: 50 h, usefull: 3 h}", "a" * 50_000_000])
def test_bad_input_ends_in_one_clear_message_soon_and_writes_nothing(scenario, text):
    scenario.write_text(text, "utf-8")
    before_s = cpu_s()
    done = ended(PROGRAM, *RUN)
    assert cpu_s() - before_s < SOON_S
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("small.yaml:")
    assert "Traceback" not in done.stderr
    assert list(scenario.parent.iterdir()) == [scenario]


@pytest.mark.parametrize("arguments", [["validate", "--schema"], [*RUN, "--json"]])
def test_a_reader_that_goes_away_is_no_error(arguments):
    running = subprocess.Popen(
        [*UNDRAWING, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait(timeout=PATIENCE_S) != 0


def test_a_terminal_without_the_signs_gets_a_table_all_the_same():
    done = ended(UNDRAWING, *RUN, env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert "overhead" in done.stdout


def test_the_same_command_gives_the_same_bytes(tmp_path):
    contents = []
    for hash_seed in ("1", "2"):
        root = tmp_path / hash_seed
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        assert ended(PROGRAM, *RUN, "--out", root, env=environment).returncode == 0
        (folder,) = root.iterdir()
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    one, two = contents
    assert one.pop("manifest.json") != two.pop("manifest.json")
    assert one == two
    assert len(one) == 12


def test_the_same_command_twice_at_once_gives_one_sound_folder(tmp_path):
    command = [*UNDRAWING, *RUN, "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    outputs = [running.communicate(timeout=PATIENCE_S)[0] for running in both]
    assert [running.returncode for running in both] == [0, 0]
    assert outputs[0] == outputs[1]
    (folder,) = (tmp_path / "results").iterdir()
    assert damage(folder) is None


# ------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (BREAKING.format(what="1 / 0"), "ZeroDivisionError: division by zero"),
        (BREAKING.format(what=r"raise KeyError('a\x1b[31m')"), r"KeyError: 'a\x1b[31m'"),
        (UNLOADABLE, "ImportError: numpy is broken"),
    ],
)
def test_what_nobody_foresaw_says_where_it_happened(code, error) -> None:
    done = ended(code, *RUN)
    assert (done.returncode, done.stdout) == (70, "")
    first, *_, raised, last = done.stderr.splitlines()
    assert (first, raised) == ("Traceback (most recent call last):", error)
    assert "please report it" in last


@pytest.mark.parametrize(
    ("code", "overrides"),
    [
        (BREAKING.format(what="raise MemoryError"), []),
        (LIMITED, ["simulation.replications=3000000"]),  # the rows of all replications
        (LIMITED, ["cluster.emb_ps=20000", "failures.together=9000",  # one replication alone
                   "failures.mtbf=0.5 min", "failures.role=emb_ps"]),
    ],
)  # fmt: skip
def test_where_the_memory_runs_out_one_line_says_what_to_ask_for(
    tmp_path, monkeypatch, code, overrides
) -> None:
    """In a process that may take 100 MB beside what it is made of, and does not know it."""
    monkeypatch.setenv(MEMORY_KEY, "40 GB")
    sets = (word for key in ["recovery=[full]", *overrides] for word in ("--set", key))
    done = ended(code, *RUN, *sets)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("cprsim: ")
    assert "ask for less" in line or "would fit" in line
    assert not list(tmp_path.glob("results/*"))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("validate small.yaml >&-", 0, ""),
        ("run nothing.yaml >&-", 2, "nothing.yaml: cannot be read: No such file or directory\n"),
        ("run nothing.yaml >&- 2>&- <&-", 2, ""),
        ("run small.yaml --replications 2 >&- <&-", 0, ""),
        ("--version >/dev/full", 1, "cprsim: No space left on device\n"),
        ("validate --schema >/dev/full", 1, "cprsim: No space left on device\n"),
    ],
)
def test_a_closed_stream_is_like_none_and_a_full_disk_is_said(
    tmp_path, arguments, code, message
) -> None:
    command = f"{' '.join(PROGRAM)} -q {arguments}"  # without its progress on a busy machine
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (code, message)
    if arguments.startswith("run small"):
        (folder,) = (tmp_path / "results").iterdir()
        assert damage(folder) is None
