"""A measurement is kept run by run: whatever stops it, nothing finished is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest

from cprsim.errors import ParameterError, ResultError
from cprsim.measuring.journal import Journal, read_journal
from cprsim.measuring.measure import measure
from cprsim.measuring.runs import SeedRuns, journal_of, n_finished, read_seed, run_seed
from cprsim.staleness import Metric
from tests.measuring.conftest import RUNS_PER_SEED

CHILD = """
import sys
from pathlib import Path
from tests.measuring.conftest import DESIGN
from cprsim.measuring.measure import Request, measure
from cprsim.scenario import load_scenario
from cprsim.workers import HERE
folder, scenario = map(Path, sys.argv[1:])
measure(Request(load_scenario(scenario), folder, n_seeds=3, workers=HERE, design=DESIGN))
"""


def test_a_measurement_killed_midway_ends_as_one_that_was_not(
    request_of, scenario: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    child = subprocess.Popen([sys.executable, "-c", CHILD, folder, scenario])
    deadline = monotonic() + 60
    while not folder.exists() or n_finished(folder) < RUNS_PER_SEED + 2:
        assert child.poll() is None, "it ended before it could be killed"
        assert monotonic() < deadline
        sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = n_finished(folder)
    assert kept < 3 * RUNS_PER_SEED
    with journal_of(folder, 2).open("ab") as journal:
        journal.write(b'{"strategy": "mfu", "inter')  # what a kill may leave

    resumed, whole = measure(request_of("killed")), measure(request_of("whole"))
    assert n_finished(folder) == 3 * RUNS_PER_SEED  # nothing was run twice
    for one, other in zip(resumed.results, whole.results, strict=True):
        assert (one.seed, one.twin, one.quality) == (other.seed, other.twin, other.quality)
    for metric in Metric:
        np.testing.assert_array_equal(
            resumed.fitted[metric].slopes.by_seed, whole.fitted[metric].slopes.by_seed
        )


def test_a_finished_measurement_runs_nothing_again(request_of) -> None:
    measure(request_of())
    before = {p.name: p.read_bytes() for p in request_of().folder.glob("*.jsonl")}
    seen = []
    measure(request_of(), lambda n, known: seen.append(n))
    assert {p.name: p.read_bytes() for p in request_of().folder.glob("*.jsonl")} == before
    assert seen[-1] == 3


def test_workers_change_nothing(request_of) -> None:
    from cprsim.workers import Workers

    alone = measure(request_of("alone"))
    together = measure(request_of("together", workers=Workers(2)))
    assert [one.quality for one in alone.results] == [one.quality for one in together.results]


def test_it_stops_at_the_precision(request_of) -> None:
    seen = []
    request = request_of(n_seeds=None, precision=1e9, budget_s=600.0)
    measured = measure(request, lambda n, known: seen.append(n))
    assert measured.widest < 1e9
    assert seen == [1, 2, 3]


def test_time_that_is_up_at_once_says_what_is_missing(request_of) -> None:
    with pytest.raises(ParameterError, match="0 complete seeds are too few"):
        measure(request_of(n_seeds=None, budget_s=1e-9))


def test_no_trial_begins_when_the_time_is_up(request_of) -> None:
    request = request_of()
    trials = tuple(request.design.scenes(1, 4))
    assert run_seed(SeedRuns(request.loaded, 1, trials, request.folder, until=0.0)) == 0
    assert read_seed(request.folder, 1).quality == {}


def test_a_folder_of_another_measurement_is_refused(request_of, scenario: Path) -> None:
    measure(request_of())
    scenario.write_text(scenario.read_text().replace("rate: 1.0", "rate: 0.9"))
    with pytest.raises(ResultError, match="holds runs of another measurement: its kernel"):
        measure(request_of())


def test_two_processes_do_not_measure_in_one_folder(request_of) -> None:
    with pytest.raises(ResultError, match="another process is measuring"):
        measure(request_of(), lambda n, known: measure(request_of()))


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "seed-1.jsonl"
    path.write_text('{"auc": 1}\n{"au\n{"auc": 2}\n')
    with pytest.raises(ResultError, match=r"seed-1\.jsonl:2: is damaged"):
        read_journal(path)


def test_an_unfinished_last_line_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "seed-1.jsonl"
    path.write_text('{"auc": 1}\n{"au')
    assert read_journal(path) == [{"auc": 1}]
    with Journal(path) as journal:
        journal.append({"auc": 2})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"auc": 1}, {"auc": 2}]


def test_a_seed_pairs_every_strategy_in_every_scene(request_of) -> None:
    request = request_of()
    trials = request.design.scenes(5, 4)
    met = {
        key: [(t.saving.interval_fraction, t.failures) for t in trials if t.saving.strategy == key]
        for key in ("partial", "mfu")
    }
    assert met["partial"][:3] == met["mfu"]
    assert trials == request.design.scenes(5, 4)
    assert trials != request.design.scenes(6, 4)
