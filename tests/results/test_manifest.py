"""The manifest protects itself, and lists files of its own folder only."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from cprsim.errors import ResultError
from cprsim.results.manifest import damage
from cprsim.results.run import load_result

KEPT = Path(__file__).parents[2] / "results" / "reproduction"


def manifest_of(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text("utf-8"))


def say(folder: Path, manifest: dict) -> None:
    """Write another manifest: one that knows its own digest, as one who changes it would."""
    rest = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    rest["manifest_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(rest), "utf-8")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", 100_000 * "["])
def test_a_damaged_manifest_is_found(write, text):
    result = write()
    (result.path / "manifest.json").write_text(text)
    with pytest.raises(ResultError, match="is no manifest"):
        load_result(result.path)


def test_every_changed_entry_of_a_manifest_is_found(write):
    result = write()
    whole = manifest_of(result.path)
    for key in whole:
        rest = {name: value for name, value in whole.items() if name != key}
        (result.path / "manifest.json").write_text(json.dumps(rest), "utf-8")
        assert damage(result.path), key
        (result.path / "manifest.json").write_text(json.dumps({**whole, key: "?"}), "utf-8")
        assert damage(result.path), key


@pytest.mark.parametrize("found", [0, 2, 99, "3", None, True, [3], 3.5])
def test_a_manifest_of_an_unknown_format_is_refused(write, found):
    result = write()
    say(result.path, {**manifest_of(result.path), "format": found})
    with pytest.raises(ResultError, match="this cprsim reads 3"):
        load_result(result.path)


def with_entry(result, name: str, path: Path) -> None:
    """List one more file, with its true digest."""
    whole = manifest_of(result.path)
    entry = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": 6}
    say(result.path, {**whole, "files": {**whole["files"], name: entry}})


@pytest.mark.parametrize("how", ["..", "absolute", "deep", "around"])
def test_a_manifest_lists_files_of_its_folder_only(write, tmp_path, how):
    result = write()
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    name = {
        "..": os.path.relpath(secret, result.path),
        "absolute": str(secret),
        "deep": "below/secret.txt",
        "around": f"../{result.path.name}/job.json",
    }[how]
    (result.path / "below").mkdir()
    shutil.copy(secret, result.path / "below" / "secret.txt")
    with_entry(result, name, result.path / name)
    with pytest.raises(ResultError, match="is no file of this folder"):
        load_result(result.path)


@pytest.mark.parametrize("folder", sorted(KEPT.iterdir()), ids=lambda path: path.name)
def test_kept_results_still_read(folder):
    assert damage(folder) is None
