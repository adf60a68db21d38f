"""How many mutants of simulation, recovery, results and selector the tests notice.

A mutant is the package with one small thing changed in one function (`tests/mutating.py`): a
comparison, a sum, a condition, a constant by one, a branch, a statement left out, an early return.
Each is a copy of the package outside the checkout, run through the tests of its room: first those
that import its file, then the quickest others that call its function, until one fails:

    died         a test failed
    too long     a test took more than LIMIT_S of the processor's time (an endless loop)
    survived     all tests passed
    equivalent   it survived, and `benchmarks/mutants_alike.json` says why no test can tell
    gone         the code is no longer there

As many mutants are drawn of each room. The journal has a line for each, so that a run that was
stopped goes on where it stood. `--survivors` tries again what survived, with the tests of now;
`--noticed` what did not, which says whether the tests have lost force.

    python -m benchmarks.mutants                 # 200 mutants of seed 1, one process: about an hour
    python -m benchmarks.mutants --survivors     # the same ones, as many minutes as survivors
    python -m benchmarks.mutants --show          # the table of what is in the journal
"""

from __future__ import annotations

import argparse
import ast
import builtins
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

from tests.mutating import further_instead_of, instead_of, mutants_of

HOME = Path(__file__).parents[1]
BUILD = HOME / "build" / "mutants"
TREE, COMPILED, WARM = BUILD / "tree", BUILD / "compiled", BUILD / "compiled-before"
SAID, RUNNING = BUILD / "said.txt", BUILD / "running.txt"
KNOWN, KEPT = BUILD / "known.json", BUILD / "known-of.json"
ALIKE = Path(__file__).with_name("mutants_alike.json")
TAKEN = ("tests", "benchmarks", "scenarios", "docs", "examples", "results/reproduction")
FILES = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")

ROOMS = {  # by room, the tests that know it best
    "simulate": ("tests/simulate", "tests/recovery", "tests/experiments/test_pipeline.py"),
    "recovery": ("tests/recovery", "tests/simulate", "tests/experiments/test_pipeline.py"),
    "results": ("tests/results", "tests/cli/test_run.py", "tests/cli/test_other_commands.py"),
    "selector": ("tests/selector", "tests/cli/test_select.py"),
}
OF_COMPILED = ("tests/recovery/test_engines.py", "tests/simulate/test_batch.py")
OTHERS_S = 20  # of tests that do not import a file
LIMIT_S, PATIENCE_S = 10, 1200
COMPILING_S = 60  # more, where all is compiled anew
MEMORY_BYTES = 4_000_000_000
SURVIVED, DIED, TOO_LONG = "survived", "died", "too long"
EQUIVALENT, GONE = "equivalent", "gone"


@dataclass(frozen=True, slots=True)
class Change:
    """One small thing that is changed in a function of a file."""

    file: str  # below the package
    function: str
    was: str
    turned: str

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]

    def __str__(self) -> str:
        was, turned = (" ".join(one.split())[:60] for one in (self.was, self.turned))
        return f"{self.file} {self.function}: `{was}` -> `{turned}`"


# ------------------------------------------------------------------------------- the mutants


def anything_instead_of(node: ast.AST) -> Iterator[ast.AST]:
    return chain(instead_of(node), further_instead_of(node))


def functions_of(tree: ast.Module) -> list[ast.FunctionDef]:
    """Those at the top of a module, and the methods of its classes."""
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    return [node for body in bodies for node in body if isinstance(node, ast.FunctionDef)]


def changes_of(room: str) -> list[Change]:
    """All that can be changed in a room."""
    found = [
        Change(str(path.relative_to(HOME / "cprsim")), mutant.function, mutant.was, mutant.turned)
        for path in sorted((HOME / "cprsim" / room).rglob("*.py"))
        for function in functions_of(ast.parse(path.read_text("utf-8")))
        for mutant in mutants_of(function, anything_instead_of)
    ]
    return list(dict.fromkeys(found))


def drawn(n: int, seed: int) -> list[Change]:
    """So many changes, as many of each room, in an order that is mixed."""
    rng = random.Random(seed)
    found = [one for room in ROOMS for one in rng.sample(changes_of(room), n // len(ROOMS))]
    rng.shuffle(found)
    return sorted(found, key=lambda change: is_compiled(change.file))  # each compiles anew: last


def mutated(change: Change) -> str | None:
    """The source of a file with one change in it; None where there is nothing to change."""
    source = (HOME / "cprsim" / change.file).read_text("utf-8")
    tree = ast.parse(source)
    originals = functions_of(ast.parse(source))
    for function, original in zip(functions_of(tree), originals, strict=True):
        if function.name != change.function:
            continue
        for mutant in mutants_of(original, anything_instead_of):
            if (mutant.was, mutant.turned) == (change.was, change.turned):
                put_into(function, mutant.source)
                return ast.unparse(tree)
    return None


def put_into(function: ast.FunctionDef, source: str) -> None:
    """Give a function the body of a mutant, and its defaults; words and types stay."""
    [changed] = ast.parse(source).body
    assert isinstance(changed, ast.FunctionDef)
    words = function.body[:1] if ast.get_docstring(function) is not None else []
    function.body = [*words, *changed.body]
    function.args.defaults = changed.args.defaults
    function.args.kw_defaults = changed.args.kw_defaults


# ------------------------------------------------------------------------------- the tests


Known = dict[str, tuple[float, list[str]]]  # by file of tests: its time [s], what it calls
CALLED = "called_by_tests"  # in builtins, a set of names


class Watch:
    """Part of pytest, in the process of one mutant: limits a test, and notes which one runs."""

    def __init__(self, limit_s: int) -> None:
        self.limit_s = limit_s
        self.took_s: Counter[str] = Counter()
        self.called: defaultdict[str, set[str]] = defaultdict(set)
        self.now: set[str] = set()
        setattr(builtins, CALLED, self.now)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        RUNNING.write_text(nodeid)
        self.before_s = time.process_time()
        soft = int(self.before_s) + self.limit_s
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.took_s[nodeid.partition("::")[0]] += time.process_time() - self.before_s
        self.note(nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        self.note(report.nodeid)
        if report.failed:
            RUNNING.write_text(report.nodeid)

    def note(self, nodeid: str) -> None:
        """Book what was called since the last time."""
        self.called[nodeid.partition("::")[0]] |= self.now
        self.now.clear()

    def known(self) -> Known:
        return {name: (s, sorted(self.called[name])) for name, s in self.took_s.items()}


def passed(tests: Sequence[str], limit_s: int) -> tuple[str, Known]:
    """What becomes of the tree under these tests, and what was known of each file of tests."""
    RUNNING.write_text("")
    child = os.fork()
    if child == 0:
        run_in_child(tests, limit_s)
    return ended(child), json.loads(KNOWN.read_text())


def run_in_child(tests: Sequence[str], limit_s: int) -> None:
    """Run tests of the tree in a process group of its own; never returns."""
    import pytest

    os.setpgid(0, 0)
    os.chdir(TREE)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    KNOWN.write_text("{}")
    out = os.open(SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.path[:] = [str(TREE), *(one for one in sys.path if Path(one or ".").resolve() != HOME)]
    for name in [one for one in sys.modules if one.partition(".")[0] in ("tests", "benchmarks")]:
        del sys.modules[name]
    first_failure_will_do()
    watch, code = Watch(limit_s), 1
    try:
        code = int(pytest.main(["-x", "-q", *QUIETLY, *tests], plugins=[watch]))
        KNOWN.write_text(json.dumps(watch.known()))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def first_failure_will_do() -> None:
    """Let hypothesis look for no smaller example: that takes longer than the test."""
    from hypothesis import Phase, settings

    settings.register_profile("mutants", phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")


QUIETLY = (
    "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long", "--hypothesis-seed=0",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
NONE_CHOSEN = 5  # pytest: no test is left


def ended(child: int) -> str:
    """Wait for a child, not for ever, and end what it has left behind."""
    end = time.monotonic() + PATIENCE_S
    while (found := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.05)
    in_time = found[0] == child
    with suppress(ProcessLookupError):  # nothing is left
        os.killpg(child, signal.SIGKILL)
    if not in_time:
        os.waitpid(child, 0)
        return TOO_LONG
    code = os.waitstatus_to_exitcode(found[1])
    if code == -signal.SIGXCPU:
        return TOO_LONG
    return SURVIVED if code in (0, NONE_CHOSEN) else DIED


def stages(change: Change, known: Known) -> Iterator[list[str]]:
    """Files of tests for a mutant: those that import its file, then others that call its function.

    Of the others, the quickest, that take OTHERS_S together. Nobody notes who calls a function
    that is compiled, or runs in a process of its own: then the others are all of its room.
    """
    of_room = [test for test in known if test.startswith(ROOMS[change.room])]
    in_order = sorted(of_room, key=lambda test: known[test][0])
    near = [test for test in [*in_order, *elsewhere(known)] if imports(test, change.file)]
    if is_compiled(change.file):
        near += [test for test in OF_COMPILED if test not in near]
    yield near
    others = [test for test in in_order if test not in near]
    calling = [test for test in others if f"{change.file} {change.function}" in known[test][1]]
    so_far_s = accumulate(known[test][0] for test in calling)
    quickest = [test for test, s in zip(calling, so_far_s, strict=True) if s <= OTHERS_S]
    yield quickest if calling else others


def elsewhere(known: Known) -> list[str]:
    """Files of tests that are of none of the rooms."""
    found = sorted(str(path.relative_to(HOME)) for path in (HOME / "tests").rglob("test_*.py"))
    return [test for test in found if test not in known]


@cache
def is_compiled(file: str) -> bool:
    source = (HOME / "cprsim" / file).read_text("utf-8")
    return "cprsim.compiling import" in source or file == "simulate/transitions.py"


@cache
def imports(test: str, file: str) -> bool:
    """Whether a file of tests names a module in its imports."""
    *above, name = ("cprsim", *Path(file).with_suffix("").parts)
    whole, room = ".".join([*above, name]), ".".join(above)
    source = (HOME / test).read_text("utf-8")
    named = (
        rf"^\s*(from|import) {re.escape(whole)}\b|^\s*from {re.escape(room)} import .*\b{name}\b"
    )
    return re.search(named, source, re.MULTILINE) is not None


# ------------------------------------------------------------------------------- one after another


def set_up() -> None:
    """Copy what the tests need, and load the libraries that all of them need, once."""
    BUILD.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(TREE, ignore_errors=True)
    copy_package()
    for name in TAKEN:
        shutil.copytree(HOME / name, TREE / name)
    for name in FILES:
        shutil.copy2(HOME / name, TREE / name)
    os.environ |= {
        "PYTHONPATH": str(TREE), "NUMBA_CACHE_DIR": str(COMPILED), "MPLBACKEND": "agg",
        "OPENBLAS_NUM_THREADS": "1",
    }  # fmt: skip
    import hypothesis, matplotlib.pyplot, numba, pandas, pyarrow, pydantic, pytest  # noqa: E401, F401, I001
    import rich, scipy.optimize, scipy.stats, simpy, typer, yaml  # noqa: E401, F401


def copy_package() -> None:
    shutil.rmtree(TREE / "cprsim", ignore_errors=True)
    shutil.copytree(HOME / "cprsim", TREE / "cprsim")


def known_of_tests() -> Known:
    """What each file of tests takes and calls where nothing is changed; compiles all on the way."""
    of_what = digest()
    if KEPT.exists() and (kept := json.loads(KEPT.read_text()))["of"] == of_what:
        return kept["known"]
    note_calls()
    tests = list(dict.fromkeys(chain(*ROOMS.values())))
    found, known = passed(tests, LIMIT_S + COMPILING_S)
    if found != SURVIVED:
        sys.exit(f"without any change: {found} in {RUNNING.read_text()}; see {SAID}")
    kept_as(WARM, COMPILED)
    KEPT.write_text(json.dumps({"of": of_what, "known": known}))
    copy_package()
    return known


def note_calls() -> None:
    """Let every function that stays Python say that it was called."""
    for room in ROOMS:
        for path in sorted((TREE / "cprsim" / room).rglob("*.py")):
            file = str(path.relative_to(TREE / "cprsim"))
            if not is_compiled(file):
                write_anew(path, noting(path.read_text("utf-8"), file))


def noting(source: str, file: str) -> str:
    """The source of a module whose functions put their names into a set."""
    tree = ast.parse(source)
    for function in functions_of(tree):
        says = ast.parse(f"{CALLED}.add({f'{file} {function.name}'!r})").body
        function.body[int(ast.get_docstring(function) is not None) : 0] = says
    first = sum(isinstance(one, ast.Expr | ast.ImportFrom) for one in tree.body[:2])
    tree.body[first:first] = ast.parse(
        f"import builtins\n{CALLED} = getattr(builtins, {CALLED!r}, set())"
    ).body
    return ast.unparse(tree)


def digest() -> str:
    """What tells one tree from another."""
    sources = [path for name in ("cprsim", *TAKEN) for path in sorted((HOME / name).rglob("*.py"))]
    return sha256(b"".join(sha256(path.read_bytes()).digest() for path in sources)).hexdigest()


def what_becomes_of(change: Change, known: Known) -> tuple[str, str]:
    """Whether the tests notice a mutant, and which test does."""
    source = mutated(change)
    if source is None:
        return GONE, ""
    place = TREE / "cprsim" / change.file
    limit_s = LIMIT_S + COMPILING_S * is_compiled(change.file)
    kept_as(COMPILED, WARM)
    write_anew(place, source)
    try:
        for tests in stages(change, known):
            became = passed(tests, limit_s)[0] if tests else SURVIVED
            if became != SURVIVED:
                return became, RUNNING.read_text()
        return SURVIVED, ""
    finally:
        shutil.copy2(HOME / "cprsim" / change.file, place)
        shutil.rmtree(TREE / ".hypothesis", ignore_errors=True)


def write_anew(place: Path, source: str) -> None:
    """Write a source that Python does not take for what it has compiled before."""
    for old in (place.parent / "__pycache__").glob(f"{place.stem}.*.pyc"):
        old.unlink()
    place.write_text(source, "utf-8")


def kept_as(folder: Path, like: Path) -> None:
    """Make a folder what another one is, by links: numba replaces files, and never changes one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(like, folder, copy_function=os.link)


class Journal:
    """What was drawn, and what became of it; the last word about a mutant counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[dict[str, Any]] = []
        if path.exists():
            self.lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def write(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def said(self) -> dict[Change, list[dict[str, Any]]]:
        found: dict[Change, list[dict[str, Any]]] = {}
        for line in self.lines:
            found.setdefault(Change(**line["change"]), []).append(line)
        return found


def alike() -> set[Change]:
    """Mutants that no test can tell from the original."""
    listed = json.loads(ALIKE.read_text("utf-8"))
    return {Change(**{key: one[key] for key in Change.__slots__}) for one in listed}


def table(journal: Journal) -> None:
    """Say what became of the mutants, at first and now, and which survive."""
    equivalent = alike()
    first, last = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    surviving = []
    for change, lines in journal.said().items():
        names = [line["became"] for line in lines]
        if change in equivalent:
            names = [EQUIVALENT if name == SURVIVED else name for name in names]
        first[change.room, names[0]] += 1
        last[change.room, names[-1]] += 1
        if names[-1] == SURVIVED:
            surviving.append(change)
    kinds = (DIED, TOO_LONG, SURVIVED, EQUIVALENT, GONE)
    for title, counts in (("at first", first), ("now", last)):
        print(f"{title:10}" + "".join(f"{kind:>12}" for kind in kinds))
        for room in ROOMS:
            print(f"{room:10}" + "".join(f"{counts[room, kind]:12}" for kind in kinds))
        sums = [sum(counts[room, kind] for room in ROOMS) for kind in kinds]
        print(f"{'all':10}" + "".join(f"{total:12}" for total in sums))
    print(*(f"survives: {change}" for change in surviving), sep="\n")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=200, help="how many, of four rooms")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--survivors", action="store_true", help="try again what survived")
    parser.add_argument("--noticed", action="store_true", help="try again what was noticed")
    parser.add_argument("--show", action="store_true", help="run nothing")
    return parser.parse_args()


def main() -> int:
    asked = options()
    journal = Journal(BUILD / f"journal-{asked.seed}.jsonl")
    if not asked.show:
        try_all(journal, asked)
    table(journal)
    return 0


def try_all(journal: Journal, asked: argparse.Namespace) -> None:
    """Run what is not in the journal, or what has become something there."""
    set_up()
    said = journal.said()
    todo = [one for one in drawn(asked.n, asked.seed) if one not in said]
    if asked.survivors or asked.noticed:
        again = {SURVIVED} if asked.survivors else {DIED, TOO_LONG}
        found = [one for one, lines in said.items() if lines[-1]["became"] in again]
        todo = [one for one in found if one not in alike()]
    print(f"{len(todo)} mutants; first the tests without any", flush=True)
    known = known_of_tests()
    for change in todo:
        began = time.monotonic()
        became, by = what_becomes_of(change, known)
        took = round(time.monotonic() - began, 1)
        journal.write({"change": asdict(change), "became": became, "by": by, "took_s": took})
        print(f"{became:10} {took:6.0f} s {change}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
