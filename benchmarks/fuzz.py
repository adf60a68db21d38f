"""Damaged inputs by the thousand: each is taken or refused, quickly, within the memory budget.

A case is a command of cprsim on mutations of shipped scenarios, logs, curves, results, keys and
overrides. It runs in a process of its own, forked from one that has imported and compiled all.
Counted are

    accepted   exit code 0
    refused    exit code 2, or 1 where the system refuses
    traceback  a traceback, exit code 70 or any other, or the end by a signal
    hang       5 s of CPU time, or 5 s of waiting for something that does not come
    memory     more than the budget (CPRSIM_MEMORY, default 1 GB) beyond what the program takes
    broken     a refusal that wrote a file; no JSON after `--json`; a control character printed raw

Each finding is printed with a smaller input that does the same. The script ends with 1 unless the
last four are 0. A number names a case: `--seed S --case N` makes case N of seed S again.

    python benchmarks/fuzz.py --cases 5000
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100", "MPLBACKEND": "agg"}

from fuzz_cases import make_case
from fuzz_material import SCENARIOS, Material, make_data, make_logs, make_material, without_figures
from fuzz_scenarios import Case
from fuzz_watch import Outcome, look_after, printed_by, read_printed, run_program, start

LOOK_EVERY_S = 0.005
FAILED = ("traceback", "hang", "memory", "broken")
VERDICTS = ("accepted", "refused", *FAILED)
TRIES, TRIES_S = 60, 40.0  # to make an input smaller
SHOWN_LINES = 25
TOLD_EVERY = 250  # cases
WORKERS = (os.cpu_count() or 1) + 1  # one more than cores: some wait for what does not come


class Fuzzer:
    """Makes cases, keeps some running at once, and counts."""

    def __init__(
        self, folder: Path, material: Material, seed: int, workers: int, verbose: bool
    ) -> None:
        from cprsim.budget import memory_bytes

        self.folder, self.material, self.seed, self.workers = folder, material, seed, workers
        self.budget_bytes = memory_bytes()
        self.verbose = verbose
        self.counts: Counter[str] = Counter()
        self.by_kind: Counter[tuple[str, str]] = Counter()
        self.findings: dict[tuple[str, str], list[tuple[Case, Outcome]]] = {}
        self.slowest: list[tuple[float, int]] = []
        self.largest: list[tuple[float, int]] = []

    def case(self, number: int, name: str = "") -> Case:
        return make_case(number, self.seed, self.folder / (name or f"case-{number}"), self.material)

    def outcomes(self, numbers: Sequence[int]) -> Iterator[tuple[Case, Outcome]]:
        """Every case and its outcome, as they come; several run at once."""
        waiting, running = list(reversed(numbers)), []
        while waiting or running:
            while waiting and len(running) < self.workers:
                running.append(start(self.case(waiting.pop())))
            for one in list(running):
                outcome = look_after(one, self.budget_bytes)
                if outcome is not None:
                    running.remove(one)
                    yield one.case, outcome
            time.sleep(LOOK_EVERY_S)

    def run(self, numbers: Sequence[int]) -> None:
        for case, outcome in self.outcomes(numbers):
            self.counts[outcome.verdict] += 1
            self.by_kind[case.kind, outcome.verdict] += 1
            self.slowest = sorted([*self.slowest, (outcome.took_s, case.number)])[-5:]
            self.largest = sorted([*self.largest, (outcome.memory_bytes, case.number)])[-5:]
            if self.verbose:
                last = printable((outcome.said.strip().splitlines() or [""])[0])
                print(f"{case.number} {case.kind} {outcome.took_s:.1f} s {outcome.verdict}: "
                      f"{'; '.join(case.story)!r:.150} -> {last[:170]}", flush=True)  # fmt: skip
            if outcome.verdict in FAILED:
                same = self.findings.setdefault((outcome.verdict, outcome.where), [])
                same.append((case, outcome))
                if len(same) == 1:
                    print(f"case {case.number}: {outcome.verdict}: {outcome.where}", flush=True)
            remove(case)
            if (n_done := self.counts.total()) % TOLD_EVERY == 0:
                print(f"{n_done} cases: {self.counted()}", flush=True)

    def counted(self) -> str:
        return ", ".join(f"{self.counts[verdict]} {verdict}" for verdict in VERDICTS)

    def outcome_of(self, case: Case) -> Outcome:
        running = start(case)
        while (outcome := look_after(running, self.budget_bytes)) is None:
            time.sleep(LOOK_EVERY_S)
        return outcome

    # ------------------------------------------------------------------------- findings

    def smaller(self, number: int, wanted: Outcome) -> Case:
        """A case that fails in the same way, with fewer arguments and fewer lines in its files."""
        best, tries, end = self.case(number, f"smallest-{number}"), 0, time.monotonic() + TRIES_S

        def fails(arguments: list[str], files: dict[str, bytes]) -> bool:
            nonlocal tries
            tries += 1
            trial = Case(
                number,
                best.kind,
                self.folder / f"trial-{number}-{tries}",
                arguments,
                [],
                best.draws,
            )
            shutil.copytree(
                best.folder, trial.folder, symlinks=True, ignore=shutil.ignore_patterns("log")
            )
            for name, content in files.items():
                (trial.folder / name).write_bytes(content)
            outcome = self.outcome_of(trial)
            remove(trial)
            return (outcome.verdict, outcome.where) == (wanted.verdict, wanted.where)

        def may_go_on() -> bool:
            return tries < TRIES and time.monotonic() < end

        if any(path.is_fifo() for path in best.folder.rglob("*")):
            return best
        at = 2
        while at < len(best.arguments) and may_go_on():
            for width in (2, 1):
                fewer = best.arguments[:at] + best.arguments[at + width :]
                if may_go_on() and fails(fewer, {}):
                    best.arguments = fewer
                    break
            else:
                at += 1
        for path in sorted(best.folder.glob("*.*")):
            if not path.is_file() or path.is_symlink() or path.stat().st_size > 200_000:
                continue
            lines, width = path.read_bytes().splitlines(keepends=True), 0
            width = max(1, len(lines) // 2)
            while may_go_on():
                at = 0
                while at < len(lines) and may_go_on():
                    fewer_lines = lines[:at] + lines[at + width :]
                    if fails(best.arguments, {path.name: b"".join(fewer_lines)}):
                        lines = fewer_lines
                        path.write_bytes(b"".join(lines))
                    else:
                        at += width
                if width == 1:
                    break
                width //= 2
        return best

    def show(self, shrink: bool) -> None:
        """Print every finding once, with the smallest input found."""
        for (verdict, where), same in sorted(self.findings.items(), key=lambda item: -len(item[1])):
            case, outcome = same[0]
            others = ", ".join(str(other.number) for other, _ in same[1:8])
            print(f"\n=== {verdict}: {where}")
            print(f"seed {self.seed}, case {case.number} ({case.kind}), {outcome.took_s:.1f} s; "
                  f"{len(same)} in all{f', also {others}' if others else ''}")  # fmt: skip
            smallest = (
                self.smaller(case.number, outcome) if shrink else self.case(case.number, "shown")
            )
            show_case(smallest, case.story)
            print(printable(outcome.said[-700:]), flush=True)
            remove(smallest)

    def table(self) -> str:
        """Accepted and refused by kind of input."""
        lines = []
        for kind in sorted({kind for kind, _ in self.by_kind}):
            numbers = {verdict: self.by_kind[kind, verdict] for verdict in VERDICTS}
            counted = ", ".join(f"{n} {verdict}" for verdict, n in numbers.items() if n)
            lines.append(f"{kind:>16}: {counted}")
        return "\n".join(lines)

    def summary(self, n_cases: int, took_s: float) -> str:
        slowest, largest = self.slowest[-1], self.largest[-1]
        return (
            f"{n_cases} cases of seed {self.seed} in {took_s:.0f} s: {self.counted()}; "
            f"slowest {slowest[0]:.1f} s (case {slowest[1]}), "
            f"most memory {largest[0] / 1e6:.0f} MB (case {largest[1]})"
        )


def show_case(case: Case, story: Sequence[str]) -> None:
    print("  done:    " + printable("; ".join(story))[:600])
    print("  command: cprsim " + " ".join(map(repr, case.arguments)))
    for path in sorted(case.folder.glob("*.*")):
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 50_000:
            lines = path.read_bytes().splitlines()
            for number, line in enumerate(lines[:SHOWN_LINES], 1):
                print(f"  {path.name}:{number}: {repr(line)[2:-1][:300]}")
            if len(lines) > SHOWN_LINES:
                print(f"  ... {len(lines) - SHOWN_LINES} lines more")


def printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def remove(case: Case) -> None:
    shutil.rmtree(case.folder, ignore_errors=True)
    for path in printed_by(case):
        path.unlink(missing_ok=True)


# -------------------------------------------------------------------------------- the script


def prepared(folder: Path) -> Material:
    """The material, made by cprsim in this process, which thereby has loaded and compiled all."""
    data = folder / "data"
    make_data(data, make_logs())
    os.environ["CPRSIM_DATA"] = str(data)
    made = folder / "material"
    made.mkdir()
    printed = made / "printed"

    def call(*arguments: str) -> str:
        keep = os.dup(1)
        sys.stdout.flush()
        os.dup2(os.open(printed, os.O_RDWR | os.O_CREAT | os.O_TRUNC), 1)
        try:
            code = run_program(arguments)
        finally:
            sys.stdout.flush()
            os.dup2(keep, 1)
            os.close(keep)
        assert not code, f"cprsim {arguments} ended with {code}"
        return printed.read_text("utf-8")

    material = make_material(made, call)
    for name, log in material.logs.items():
        (made / name).write_bytes(log)
    run = str(material.results["run"])
    page = str(made / "page.html")
    for arguments in (
        ["schema"],
        ["presets"],
        *(
            ["run", str(path), "--replications", "2", "--out", str(made / "warm")]
            for path in sorted(SCENARIOS.glob("*.yaml"))  # whose loops are compiled here, once
        ),
        ["fit", str(made / "stamps.csv"), "--bootstrap", "9", "--circle"],
        ["fit", str(made / "lanl.csv"), "--system", "2", "--bootstrap", "9", "--json"],
        ["fit", str(made / "faults.json"), "--bootstrap", "0"],
        ["fit-costs", str(made / "costs.csv"), "--time-unit", "s", "--bootstrap", "9"],
        ["compare", run, str(material.results["other"])],
        [
            "report",
            *(str(material.results[name]) for name in ("sweep", "selection")),
            "--out",
            page,
        ],
        ["report", *(str(material.results[name]) for name in ("run", "varied")), "--out", page],
    ):
        with without_figures():
            call(*arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    build_commands_once()
    return material


def build_commands_once() -> None:
    """Typer builds all commands at each call, which is half the time of most refusals."""
    import typer.main

    from cprsim.cli.app import app

    built = typer.main.get_command(app)
    typer.main.get_command = lambda _: built


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--cases", type=int, default=5000, help="how many, from case 0 on")
    options.add_argument("--first", type=int, default=0, help="number of the first case")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=WORKERS, help="cases at once")
    options.add_argument("--case", type=int, help="make this case alone, and show what it does")
    options.add_argument("--as-found", action="store_true", help="do not look for smaller inputs")
    options.add_argument("--verbose", action="store_true", help="a line for every case")
    said = options.parse_args()
    os.chdir(Path(__file__).parents[1])
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = Path(temporary)
        began = time.monotonic()
        material = prepared(folder)
        print(f"made the material in {time.monotonic() - began:.0f} s", flush=True)
        gc.collect()
        gc.freeze()
        fuzzer = Fuzzer(folder, material, said.seed, said.workers, said.verbose)
        if said.case is not None:
            case = fuzzer.case(said.case)
            show_case(case, case.story)
            outcome = fuzzer.outcome_of(case)
            print(*map(printable, read_printed(case)), sep="\n")
            took = f"{outcome.took_s:.1f} s, {outcome.memory_bytes / 1e6:.0f} MB"
            print(f"{outcome.verdict} {outcome.where} ({took})")
            sys.exit(outcome.verdict in FAILED)
        began = time.monotonic()
        fuzzer.run(range(said.first, said.first + said.cases))
        took_s = time.monotonic() - began
        fuzzer.show(shrink=not said.as_found)
        print("\n" * bool(fuzzer.findings) + fuzzer.table())
        print(fuzzer.summary(said.cases, took_s))
        sys.exit(bool(fuzzer.findings))


if __name__ == "__main__":
    main()
