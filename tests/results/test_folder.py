"""The results folder: whole or not there, the same bytes again, found again, read back."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from dataclasses import replace
from math import inf
from pathlib import Path

import pandas as pd
import pytest

from cprsim.errors import ResultError
from cprsim.records import SubSaves
from cprsim.results.folder import publishing, remove_leftovers
from cprsim.results.identity import Identity, safe_name
from cprsim.results.manifest import damage
from cprsim.results.metrics import summarise
from cprsim.results.rows import loss_rows, replication_rows
from cprsim.results.run import load_result


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def unhidden(root: Path) -> list[Path]:
    return [path for path in root.iterdir() if not path.name.startswith(".")]


def test_what_is_written_reads_back(write, outcome):
    full, cpr = outcome.strategies
    sub_saves = SubSaves("mfu", 0.25, 0.01, n_large_tables=3)
    cpr = replace(cpr, policy=replace(cpr.policy, sub_saves=sub_saves, interval_h=inf))
    outcome = replace(outcome, strategies=(full, cpr))
    result = write(outcome=outcome)
    pd.testing.assert_frame_equal(result.summary, summarise(outcome))
    pd.testing.assert_frame_equal(result.replications, replication_rows(outcome), check_dtype=False)
    pd.testing.assert_frame_equal(result.losses, loss_rows(outcome), check_dtype=False)
    assert result.policies == tuple(one.policy for one in outcome.strategies)
    assert (result.useful_h, result.n_nodes, result.replay) == (10.0, 6, None)


def test_the_same_run_gives_the_same_bytes_but_for_the_manifest(write, tmp_path):
    first = contents(write(root=tmp_path / "one").path)
    second = contents(write(root=tmp_path / "two").path)
    del first["manifest.json"], second["manifest.json"]
    assert first == second


@pytest.mark.parametrize(
    "changed",
    [
        Identity("made up", "seed: 2\n", {}),
        Identity("made up", "seed: 1\n", {"trace.csv": "abc"}),
        Identity("made up", "seed: 1\n", {}, replay=17),
    ],
)
def test_whatever_decides_a_result_decides_its_folder(changed):
    assert changed.folder_name != Identity("made up", "seed: 1\n", {}).folder_name


@pytest.mark.parametrize("name", ["../../etc", "a b/c", ".hidden", "ü", "", "x" * 500])
def test_folder_names_are_safe(name):
    safe = safe_name(name)
    assert safe
    assert len(safe) <= 60
    assert "/" not in safe
    assert not safe.startswith(".")


def test_a_folder_without_a_manifest_is_no_result(write):
    result = write()
    (result.path / "manifest.json").unlink()
    with pytest.raises(ResultError, match=r"no finished result: it has no manifest\.json"):
        load_result(result.path)


@pytest.mark.parametrize("name", ["replications.parquet", "summary.csv", "job.json"])
def test_a_changed_file_is_found(write, name):
    result = write()
    path = result.path / name
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ResultError, match=rf"damaged: {name} differs"):
        load_result(result.path)


def test_a_missing_file_is_found(write):
    result = write()
    (result.path / "losses.parquet").unlink()
    with pytest.raises(ResultError, match=r"damaged: losses\.parquet is missing"):
        load_result(result.path)


def test_a_damaged_folder_is_made_anew(write):
    result = write()
    (result.path / "summary.csv").write_text("nonsense")
    again = write()
    assert again.path == result.path
    assert damage(again.path) is None
    assert unhidden(again.path.parent) == [again.path]
    assert list(again.path.parent.iterdir()) == [again.path]


def test_a_damaged_folder_with_files_of_the_user_is_not_deleted(write):
    result = write()
    (result.path / "summary.csv").write_text("nonsense")
    (result.path / "my notes.txt").write_text("precious")
    with pytest.raises(ResultError, match=r"my notes\.txt"):
        write()
    assert (result.path / "my notes.txt").read_text() == "precious"


def test_a_sound_folder_that_is_there_already_stays(write):
    result = write()
    before = (result.path / "manifest.json").stat()
    again = write()
    assert (again.path / "manifest.json").stat().st_ino == before.st_ino


def test_an_error_while_writing_leaves_nothing(write, tmp_path):
    def draw(result):
        raise RuntimeError("no ink")

    with pytest.raises(RuntimeError, match="no ink"):
        write(root=tmp_path / "deep" / "results", draw=draw)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_gives_one_clear_error_and_leaves_nothing(write, tmp_path):
    def draw(result):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ResultError, match=r"can't write .*made-up-\w{10}: No space left on device"):
        write(draw=draw)
    assert list(tmp_path.iterdir()) == []


def test_a_limit_on_file_sizes_acts_like_a_full_disk(write, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(ResultError, match="can't write"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from cprsim.results.folder import publishing
with publishing(Path(sys.argv[1])) as folder:
    (folder / "half.txt").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_leaves_nothing_that_looks_finished_and_is_cleaned_up(tmp_path):
    final = tmp_path / "results" / "made-up"
    killed = subprocess.run([sys.executable, "-c", KILLED, final], check=False)
    assert killed.returncode == -9
    assert unhidden(final.parent) == []
    (leftover,) = final.parent.iterdir()
    assert remove_leftovers(final.parent) == [leftover]
    assert list(final.parent.iterdir()) == []


def test_what_a_living_process_writes_is_no_leftover(tmp_path):
    with publishing(tmp_path / "final") as folder:
        (folder / "file.txt").write_text("text")
        assert remove_leftovers(tmp_path) == []
        assert (folder / "file.txt").exists()
    assert (tmp_path / "final" / "file.txt").read_text() == "text"
