"""A measurement is kept run by run: whatever stops it, nothing finished is lost."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest

from cprsim.accuracy.curve import FEWEST_SEEDS_TO_USE
from cprsim.errors import ResultError
from cprsim.job.losses import ALWAYS, RESPONSE_KEYS
from cprsim.results.folder import exclusive_lock
from cprsim.scenario.reading import load_scenario
from cprsim.training.measuring.measure import measure
from cprsim.training.measuring.runs import (
    SeedRuns,
    journal_of,
    n_finished,
    read_seed,
    run_seed,
    setting_of,
)
from cprsim.workers import Workers, run_each
from tests.cli.test_train import write_clicks
from tests.making import PATIENCE_S, small_cluster
from tests.measuring.conftest import DESIGN, RUNS_PER_SEED, SCENARIO

CHILD = """
import sys
from pathlib import Path
from tests.measuring.conftest import request_in
from cprsim.training.measuring.measure import measure
measure(request_in(*map(Path, sys.argv[1:])))
"""
ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_a_measurement_killed_midway_ends_as_one_that_was_not(
    request_of, scenario: Path, tmp_path: Path, whole
) -> None:
    folder = tmp_path / "killed"
    child = subprocess.Popen([sys.executable, "-c", CHILD, folder, scenario], cwd=ROOT)
    deadline = monotonic() + PATIENCE_S
    while not folder.exists() or n_finished(folder) < RUNS_PER_SEED + 2:
        assert child.poll() is None, "it ended before it could be killed"
        assert monotonic() < deadline
        sleep(0.005)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert n_finished(folder) < 3 * RUNS_PER_SEED
    with journal_of(folder, 2).open("ab") as journal:
        journal.write(b'{"strategy": "mfu", "inter')  # what a kill may leave

    resumed = measure(request_of("killed"))
    assert n_finished(folder) == 3 * RUNS_PER_SEED  # nothing was run twice
    for one, other in zip(resumed.results, whole[1].results, strict=True):
        assert (one.seed, one.twin, one.quality) == (other.seed, other.twin, other.quality)
    for metric in ALWAYS:
        np.testing.assert_equal(resumed.fitted[metric].slopes, whole[1].fitted[metric].slopes)


@pytest.mark.long
@pytest.mark.parametrize("workers", [nullcontext(Workers(2)), small_cluster()])
def test_workers_change_nothing(whole, own_scenario, tmp_path: Path, workers) -> None:
    """Neither of the built-in model nor of a trainer of one's own."""
    loaded = {1: whole[0].loaded, 2: load_scenario(own_scenario())}
    trials = {seed: tuple(DESIGN.trials(seed, 4)[:2]) for seed in loaded}
    alone, beside = (
        [SeedRuns(loaded[seed], seed, trials[seed], folder, count_bytes=False) for seed in loaded]
        for folder in (tmp_path / "alone", tmp_path / "beside")
    )
    with workers as several:
        list(run_each(run_seed, beside, several))
    for task, other in zip(alone, beside, strict=True):
        run_seed(task)
        ours, theirs = (read_seed(one.folder, one.seed) for one in (task, other))
        assert (ours.twin, ours.quality) == (theirs.twin, theirs.quality)
        assert set(ours.quality) == set(task.trials)


@pytest.mark.long
def test_it_stops_at_the_precision_once_the_seeds_suffice_for_use(
    request_of, whole, tmp_path: Path
) -> None:
    shutil.copytree(whole[0].folder, tmp_path / "runs")
    request = request_of(n_seeds=None, precision=1e9, budget_s=600.0)
    assert len(measure(request).results) == FEWEST_SEEDS_TO_USE


def test_without_momentum_the_bytes_of_all_else_are_counted(scenario: Path, tmp_path: Path) -> None:
    scenario.write_text(SCENARIO.replace("adagrad", "sgd").replace("0.03", "0.2"))
    run_seed(SeedRuns(load_scenario(scenario), 1, (), tmp_path))
    counted = {saving.strategy for saving in read_seed(tmp_path, 1).twin.bytes_written}
    assert counted == {name for name in RESPONSE_KEYS if "momentum" not in name}


def test_a_folder_of_another_measurement_is_refused(
    request_of, scenario: Path, whole, tmp_path: Path
) -> None:
    shutil.copytree(whole[0].folder, tmp_path / "runs")
    scenario.write_text(scenario.read_text().replace("rate: 0.03", "rate: 0.2"))
    with pytest.raises(ResultError, match="holds runs of another measurement: its kernel"):
        measure(request_of())


def test_two_processes_do_not_measure_in_one_folder(whole) -> None:
    request, _ = whole
    with (
        exclusive_lock(request.folder),
        pytest.raises(ResultError, match="is being made by another"),
    ):
        measure(request)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    journal_of(tmp_path, 1).write_text('{"auc": 1}\n{"au\n{"auc": 2}\n')
    with pytest.raises(ResultError, match=r"seed-1\.jsonl:2: is damaged"):
        read_seed(tmp_path, 1)


def test_a_click_log_keeps_its_clicks_and_changes_their_order(tmp_path: Path) -> None:
    write_clicks(tmp_path / "log.tsv", 1000)
    path = tmp_path / "logged.yaml"
    path.write_text(SCENARIO.replace("{samples: 6000,", "{clicks: {file: log.tsv},"))
    one, other = (setting_of(load_scenario(path), seed) for seed in (1, 2))
    assert np.array_equal(one.test.rows, other.test.rows)
    assert not np.array_equal(one.train.rows, other.train.rows)
    for part in ("label", "rows"):
        first, second = (np.asarray(getattr(s.train, part)) for s in (one, other))
        assert first.sum() == second.sum()
    stretch = -(-len(one.train) // 100)  # what changes in the course of the log still does
    np.testing.assert_array_equal(*(np.sort(s.train.rows[:stretch], axis=0) for s in (one, other)))
