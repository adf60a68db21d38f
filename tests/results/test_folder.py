"""The results folder: whole or not there, the same bytes again, found again, read back."""

import errno
import hashlib
import json
import os
import re
from dataclasses import replace
from math import inf
from pathlib import Path

import pandas as pd
import pytest

from cprsim.errors import ResultError, WriteError
from cprsim.job.records import SubSaves
from cprsim.results.folder import damage, exclusive_lock, publishing, remove_leftovers
from cprsim.results.identity import Identity, safe_name
from cprsim.results.metrics import frame_of, loss_rows, replication_rows, summarise
from cprsim.results.run import load_result


def test_what_is_written_reads_back(write, outcome):
    full, cpr = outcome.strategies
    sub_saves = SubSaves("mfu", 0.25, 0.01, n_large_tables=3)
    cpr = replace(cpr, policy=replace(cpr.policy, sub_saves=sub_saves, interval_h=inf))
    outcome = replace(outcome, strategies=(full, cpr))
    result = write(outcome=outcome)
    pd.testing.assert_frame_equal(frame_of(result.summary), frame_of(summarise(outcome)))
    pd.testing.assert_frame_equal(result.replications, replication_rows(outcome), check_dtype=False)
    pd.testing.assert_frame_equal(result.losses, loss_rows(outcome), check_dtype=False)
    assert result.policies == tuple(one.policy for one in outcome.strategies)
    assert (result.useful_h, result.n_nodes, result.replay) == (10.0, 6, None)


def test_whatever_decides_a_result_decides_its_folder():
    what = (("seed: 1", {}), ("seed: 2", {}), ("seed: 1", {"a.csv": "abc"}), ("seed: 1", {}, 17))
    assert len({Identity("made up", *parts).folder_name for parts in what}) == len(what)


@pytest.mark.parametrize("name", ["../../etc", ".hidden", "ü", "x" * 500])
def test_folder_names_are_safe(name):
    assert re.fullmatch(r"[\w-][\w.-]{0,59}", safe_name(name), re.ASCII)


# ------------------------------------------------------------------------------ what is damaged


def say(folder: Path, **changed) -> None:
    """Write another manifest: one that knows its own digest, as one who changes it would."""
    rest = json.loads((folder / "manifest.json").read_text("utf-8")) | changed
    del rest["manifest_sha256"]
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    rest["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(rest), "utf-8")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "no finished result: it has no man"),
        (lambda folder: (folder / "losses.parquet").unlink(), "damaged: losses.parquet is missing"),
        (lambda folder: (folder / "job.json").write_text("?"), "damaged: job.json differs"),
        *((lambda folder, text=text: (folder / "manifest.json").write_text(text), "is no manifest")
          for text in ("{", "[]", 100_000 * "[")),
        *((lambda folder, found=found: say(folder, format=found), "this cprsim reads 3")
          for found in (2, "3")),
        (lambda folder: say(folder, files={}), "it lists no file"),
        (lambda folder: say(folder, files={"../secret.txt": {}}), "is no file of this folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_folder_is_said(write, harm, said):
    result = write()
    harm(result.path)
    with pytest.raises(ResultError, match=re.escape(said)):
        load_result(result.path)


def test_every_changed_entry_of_a_manifest_is_found(write):
    path = write().path / "manifest.json"
    whole = json.loads(path.read_text("utf-8"))
    for key in whole:
        for changed in ({k: v for k, v in whole.items() if k != key}, {**whole, key: "?"}):
            path.write_text(json.dumps(changed), "utf-8")
            assert damage(path.parent), key


def test_a_sound_folder_stays_and_a_damaged_one_is_made_anew_unless_it_holds_a_users_file(write):
    path = write().path
    before = (path / "manifest.json").stat()
    assert write().path == path
    assert (path / "manifest.json").stat().st_ino == before.st_ino
    (path / "summary.csv").write_text("nonsense")
    assert write().path == path
    assert damage(path) is None
    assert list(path.parent.iterdir()) == [path]
    (path / "summary.csv").write_text("nonsense")
    (path / "my notes.txt").write_text("precious")
    with pytest.raises(ResultError, match=r"my notes\.txt"):
        write()
    assert (path / "my notes.txt").read_text() == "precious"


@pytest.mark.parametrize(
    ("wrong", "raised", "said"),
    [
        (RuntimeError("no ink"), RuntimeError, "no ink"),
        (OSError(errno.ENOSPC, "No space left on device"), ResultError,
         r"can't write .*made-up-\w{10}: No space left on device"),
    ],
)  # fmt: skip
def test_an_error_while_writing_is_said_and_leaves_nothing(write, tmp_path, wrong, raised, said):
    def draw(result):
        raise wrong

    with pytest.raises(raised, match=said):
        write(root=tmp_path / "deep" / "results", draw=draw)
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_writes_is_no_leftover(tmp_path):
    with publishing(tmp_path / "final") as folder:
        (folder / "file.txt").write_text("text")
        assert remove_leftovers(tmp_path) == []
        assert (folder / "file.txt").exists()
    assert (tmp_path / "final" / "file.txt").read_text() == "text"


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_is_a_link_is_refused_and_its_target_stays(tmp_path, link):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link(victim, tmp_path / ".result.lock")
    with pytest.raises(WriteError, match="link"), exclusive_lock(tmp_path / "result"):
        pass
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", [".mine.unfinished", ".mine.0123abcd.unfinished", "x.unfinished"])
def test_folders_of_others_are_no_leftovers(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis").touch()
    assert remove_leftovers(tmp_path) == []
    assert (tmp_path / name / "thesis").exists()
    assert not (tmp_path / name / "lock").exists()
