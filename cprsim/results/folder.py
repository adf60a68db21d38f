"""Results folders: their files, written atomically, and found again.

    <root>/<name>-<digest>/                 scenario.yaml, files of the kind of result, figures,
                                            manifest.json
    <root>/.<name>.<id>.unfinished/new/     being written; renamed when the folder is finished
    <root>/.<name>.<id>.unfinished/lock     held while the writer lives; the kernel releases it at
                                            its death, and the next holder may delete the folder

The manifest, written last, is the only file that knows times and hosts. It holds a digest of every
other file, and one of itself, to detect damage. Digests are no signatures: whoever changes a folder
on purpose can renew them.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import re
import secrets
import shutil
import stat
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cprsim.errors import UNUSABLE, InputError, ResultError, one_line, printable, watch
from cprsim.files import UNFINISHED, decode, digest_of, encode, json_text, write_whole, writes
from cprsim.files.units import TIME
from cprsim.results.identity import Identity, file_digest, identity_of, source_digest
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.yaml_text import read_yaml
from cprsim.version import PACKAGE, __version__

SCENARIO, MANIFEST = "scenario.yaml", "manifest.json"
RESULT_FORMAT = 3
DIGEST = "manifest_sha256"  # of all its other entries
_WORKSHOP = re.compile(rf"\..+\.[0-9a-f]{{8}}{re.escape(UNFINISHED)}")
LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "simpy", "matplotlib", "pydantic")

Made = TypeVar("Made")


@dataclass(frozen=True)
class ResultTarget:
    """The results folder of a result that does not exist yet."""

    root: Path  # folder of the results folders; made where it is missing
    identity: Identity  # what decides the result, and with it the folder's name
    started: datetime  # when the work began
    # what the manifest says besides: command, seed, replications, failures_digest, ...
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.root / self.identity.folder_name


@dataclass(frozen=True)
class StoredResult(Generic[Made]):
    """Contents of a results folder, and whether they were found or made."""

    made: Made
    path: Path
    folder: Path | None = None  # where it is kept
    found_again: bool = False
    target: Any = None  # a temporary folder goes with it

    def about(self) -> dict[str, Any]:
        """Arguments of an `Answer` that describe its folder."""
        return {"folder": self.folder, "found_again": self.found_again, "stored": self}


def load_or_compute(
    folder: str | Path | None,
    loaded: LoadedScenario,
    read: Callable[[Path], Made],
    make: Callable[[ResultTarget], Made],
    *,
    kind: str = "",
    replay: int | None = None,
    identity: Identity | None = None,
    one_writer: bool = False,
) -> StoredResult[Made]:
    """Read the results folder of a scenario, or make it if there is no sound one.

    `folder` holds results folders; None: a temporary one, and figures are drawn on demand. With
    `one_writer`, other processes that make the same folder are excluded.
    """
    root = Path(tempfile.mkdtemp(prefix="cprsim-") if folder is None else str(folder))
    about = {"seed": loaded.scenario.simulation.seed, "command": watch.command}
    identity = identity or identity_of(loaded, kind, replay)
    target = ResultTarget(root, identity, datetime.now(UTC), about)
    if folder is None:
        weakref.finalize(target, shutil.rmtree, root, ignore_errors=True)
    made, found_again = get_or_create(
        target.folder, read, lambda: make(target), one_writer=one_writer
    )
    return StoredResult(
        made, target.folder, None if folder is None else target.folder, found_again, target
    )


def get_or_create(
    folder: Path,
    read: Callable[[Path], Made],
    make: Callable[[], Made],
    *,
    one_writer: bool = False,
) -> tuple[Made, bool]:
    """Read a finished folder, or make it if missing or damaged; returns whether it was found."""
    if folder.exists():
        wrong = damage(folder)
        if wrong is None:
            return read(folder), True
        watch.warn(f"{wrong}; it is made anew")
    require_writable(folder.parent)
    with exclusive_lock(folder) if one_writer else nullcontext():
        return make(), False


@contextmanager
def new_folder(target: ResultTarget, **more: Any) -> Iterator[Path]:
    """A folder to write into; after the block it is in place, with scenario and manifest.

    `more`: what the manifest says besides `target.about`.
    """
    with publishing(target.folder) as folder:
        (folder / SCENARIO).write_text(target.identity.scenario_yaml, "utf-8")
        yield folder
        write_manifest(folder, target.identity, {**target.about, **more}, target.started)


# --------------------------------------------------------------------------- manifest


def write_manifest(
    folder: Path, identity: Identity, about: Mapping[str, Any], started: datetime
) -> None:
    """Describe a folder whose other files are complete, and list them."""
    now = datetime.now(UTC)
    manifest = {
        "format": RESULT_FORMAT,
        "name": identity.name,
        "replay": identity.replay,
        "digest": identity.digest,
        **about,
        "inputs": dict(identity.inputs),
        "cprsim": {"version": __version__, "source": source_digest(), "git": git_state()},
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "files": {
            path.name: {"sha256": file_digest(path), "bytes": path.stat().st_size}
            for path in sorted(folder.iterdir())
        },
        "started_at": started.isoformat(timespec="seconds"),
        "finished_at": now.isoformat(timespec="seconds"),
        "took_s": round((now - started).total_seconds(), 3),
        "host": {
            "name": platform.node(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
        },
    }
    write_whole(folder / MANIFEST, json_text({**manifest, DIGEST: _digest(manifest)}))


def results_in(folder: Path) -> list[Path]:
    """The finished results folders within a folder, sorted."""
    return [path.parent for path in sorted(folder.glob(f"*/{MANIFEST}"))]


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished folder, checked against the files."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise ResultError(f"{folder} is no folder")
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        wrong = _wrong_manifest(path, manifest) or _wrong_file(folder, manifest["files"])
    except FileNotFoundError:
        inside = ", ".join(str(path) for path in results_in(folder)[:3])
        instead = f"; name one in it, such as {inside}" if inside else ""
        message = f"{folder} is no finished result: it has no {MANIFEST}{instead}"
        raise ResultError(message) from None
    except OSError as error:
        raise ResultError(f"{path} can't be read: {error.strerror or error}") from None
    except UNUSABLE as error:
        raise ResultError(f"{path} is damaged: it is no manifest") from error
    if wrong:
        raise ResultError(wrong)
    return manifest


def _wrong_manifest(path: Path, manifest: Mapping[str, Any]) -> str:
    """Message for an unknown format or a wrong digest of the manifest; empty for a sound one."""
    number = manifest.get("format")
    if number != RESULT_FORMAT:
        label = "no format" if number is None else f"format {one_line(str(number))}"
        return (
            f"{path} has {label}; this cprsim reads {RESULT_FORMAT}: it is damaged, or comes from "
            "another version"
        )
    if manifest.get(DIGEST) != _digest(manifest):
        return f"{path} is damaged or was changed by hand: it differs from its digest"
    return "" if manifest["files"] else f"{path} is damaged: it lists no file"


def _wrong_file(folder: Path, files: Mapping[str, Any]) -> str:
    """Message for the first file that differs from its entry; empty if all agree."""
    for name, entry in files.items():
        path, label = folder / name, one_line(name)
        if Path(name).name != name:
            return f"{folder / MANIFEST} is damaged: {label} is no file of this folder"
        if not path.is_file():
            return f"{folder} is damaged: {label} is missing"
        if file_digest(path) != entry["sha256"]:
            return f"{folder} is damaged: {label} differs from its digest"
    return ""


def _digest(manifest: Mapping[str, Any]) -> str:
    """Digest of a manifest's entries but the digest itself."""
    return digest_of({key: value for key, value in manifest.items() if key != DIGEST})


def damage(folder: Path) -> str | None:
    """Message for a damaged results folder, None for a sound one."""
    try:
        read_manifest(folder)
    except ResultError as error:
        return str(error)
    return None


@cache  # the code that runs is that of its first import
def git_state() -> dict[str, Any] | None:
    """Commit of the checkout that cprsim runs from and whether it has uncommitted changes."""
    try:
        _git(PACKAGE, "ls-files", "--error-unmatch", "__init__.py")
        commit = _git(PACKAGE, "rev-parse", "HEAD")
        changes = _git(PACKAGE, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": bool(changes)}


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return process.stdout.strip()


# --------------------------------------------------------------------------- files


def write_record(path: Path, record: Any, indent: int = 2) -> None:
    """Write a record as JSON."""
    path.write_text(json_text(encode(record), indent), "utf-8")


def read_record(
    kind: type[Made], path: Path, called: str, tables: Iterable[tuple[str, str]] = (), /,
    **fields: Any,
) -> Made:  # fmt: skip
    """The record of a results folder that `write_record` wrote; `tables`: fields with files."""
    with readable(path.parent, called):
        for name, file in tables:
            fields[name] = pq.read_table(path.with_name(file)).to_pandas()
        return decode(kind, json.loads(path.read_bytes()), fields)


@contextmanager
def readable(folder: Path, called: str) -> Iterator[None]:
    """Turn every error of the block into a ResultError: the folder can't be read."""
    try:
        yield
    except (OSError, pa.ArrowException, *UNUSABLE) as error:
        reason = one_line(str(error), 200)
        raise ResultError(f"{folder} can't be read as {called}: {reason}") from error


def stored_scenario(folder: Path) -> Any:
    """The scenario of a results folder as plain data; empty where it has none."""
    path = folder / SCENARIO
    if not path.is_file():
        return {}
    try:
        return read_yaml(path.read_text("utf-8"), path)[0]
    except (OSError, UnicodeDecodeError, InputError) as error:
        raise ResultError(f"{path} can't be read: {error}") from error


def free_spares(folder: Path) -> str:
    """That a spare is always available, where neither spares nor repair are given; else empty."""
    known = stored_scenario(folder).get("cluster", {"spares": 0}).keys()
    always = "Without `cluster.spares`, a spare is always available."
    return "" if known & {"spares", "repair"} else always


def stops_save(folder: Path, useful_h: float) -> str:
    """That planned stops save, whatever the interval; empty where none is sure to, in the job."""
    stops = stored_scenario(folder).get("planned") or {}
    if not stops.get("saves") or TIME.parse(str(stops["every"])) >= useful_h:
        return ""
    return f"What saves at all does so at each planned stop too, every {stops['every']}."


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Without pandas' own metadata: the bytes depend on the columns and the library alone."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table, path, compression="zstd")


_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf)")
_FORMULA = tuple("=+-@\t\n＝＋－＠")  # begin what a spreadsheet may run, the wide signs too


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """As text that no spreadsheet takes for formulas."""
    words = frame.select_dtypes(exclude=["number", "bool"])
    safe = frame.assign(**{str(name): words[name].map(spreadsheet_cell) for name in words})
    safe.columns = [spreadsheet_cell(name) for name in safe.columns]
    safe.to_csv(path, index=False, lineterminator="\n")


def spreadsheet_cell(cell: Any) -> Any:
    """A cell for a CSV: text that a spreadsheet would take for a formula gets a ' before it."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


# --------------------------------------------------------------------------- whole or not at all


def require_writable(root: Path) -> None:
    """Check before the work that its results can be written. Raises ResultError."""
    above = (root, *root.absolute().parents)
    existing = next(folder for folder in above if os.path.lexists(folder))
    if not existing.is_dir():
        raise ResultError(f"can't write to {root}: {existing} is no folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ResultError(f"can't write to {root}: no permission to write to {existing}")


@contextmanager
def publishing(final: Path) -> Iterator[Path]:
    """A folder to write into; it becomes `final` when the block ends without an error.

    If a sound folder of that name has appeared meanwhile (the same command run twice in parallel),
    that one stays; a damaged one is replaced.
    """
    with writes(final), _existing(final.parent):
        remove_leftovers(final.parent)
        with scratch_dir(final) as folder:
            new = folder / "new"
            new.mkdir()
            yield new
            _put_in_place(new, final)


def _put_in_place(new: Path, final: Path) -> None:
    if final.exists() and damage(final) is not None:
        foreign = {path.name for path in final.iterdir()} - {path.name for path in new.iterdir()}
        if foreign:
            raise ResultError(
                f"{final} is damaged, but also holds {', '.join(sorted(foreign))}, which cprsim "
                "did not write; move it away and run again"
            )
        with suppress(FileNotFoundError):  # another run has moved it
            final.rename(new.parent / "damaged")
    try:
        new.rename(final)
    except OSError:
        if damage(final) is not None:
            raise


@contextmanager
def _existing(root: Path) -> Iterator[None]:
    """Create a folder for the block; at its end delete the created folders that are empty."""
    created = [folder for folder in (root, *root.parents) if not folder.exists()]
    try:
        with writes(f"to {root}"):
            root.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in created:
            with suppress(OSError):
                folder.rmdir()  # only while it is empty: nothing came of it


@contextmanager
def exclusive_lock(final: Path) -> Iterator[None]:
    """Exclude other processes that make `final` during the block."""
    path = final.parent / f".{final.name}.lock"
    with _existing(final.parent):
        with writes(f"to {final.parent}"):
            try:
                lock = _lock(path, fcntl.LOCK_NB)
            except BlockingIOError:
                holder = path.read_text("ascii") or "unknown"
                raise ResultError(
                    f"{final} is being made by another process (number {holder}): wait for it, or "
                    "stop it and run this again; its finished part is kept"
                ) from None
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(lock)


@contextmanager
def scratch_dir(final: Path) -> Iterator[Path]:
    """A temporary folder next to `final`, deleted at the end of the block.

    If the process is killed, `remove_leftovers` deletes it.
    """
    while True:
        folder = final.parent / f".{final.name}.{secrets.token_hex(4)}{UNFINISHED}"
        folder.mkdir()
        with suppress(FileNotFoundError):  # swept away before it was locked: once more
            lock = _lock(folder / "lock")
            break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(path: Path, how: int = 0) -> int:
    """The descriptor that holds the lock of a file; the kernel releases it when the process dies.

    Raises BlockingIOError where another process holds it and `how` says not to wait, and OSError
    where somebody has put a link to another file there.
    """
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | how)
            info = os.fstat(lock)
            if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
                raise OSError(errno.ELOOP, "it is no lock of ours but a link", str(path))
            if os.path.samestat(path.lstat(), info):
                return lock
        except FileNotFoundError:
            pass  # whoever held it has deleted it
        except OSError:
            os.close(lock)
            raise
        os.close(lock)


def remove_leftovers(root: Path) -> list[Path]:
    """Delete the unfinished folders of killed processes in `root`, not those of living ones."""
    removed = []
    for folder in root.glob(f".*{UNFINISHED}"):
        with suppress(OSError):  # gone meanwhile, or not ours to touch
            inside = os.listdir(folder)
            if not _WORKSHOP.fullmatch(folder.name) or (inside and "lock" not in inside):
                continue
            lock = _lock(folder / "lock", fcntl.LOCK_NB)
            try:
                shutil.rmtree(folder)
                removed.append(folder)
            finally:
                os.close(lock)
    return removed
