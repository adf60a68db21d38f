"""What all results folders have in common: how they are made, found again, written and read.

    <root>/<name>-<digest>/                 scenario.yaml, what the kind of result says, figures,
                                            manifest.json
    <root>/.<name>.<id>.unfinished/new/     what is being written; renamed, the folder is finished
    <root>/.<name>.<id>.unfinished/lock     held while the writer lives; the kernel lets go when it
                                            dies, and whoever gets the lock may delete the folder

The kind of result writes its own files; a folder without its manifest is not finished.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cprsim import watch
from cprsim.errors import UNUSABLE, InputError, ResultError, one_line, printable
from cprsim.files import UNFINISHED, decode, encode, json_text, writes
from cprsim.results.identity import Identity
from cprsim.results.manifest import damage, write_manifest
from cprsim.scenario.yaml_text import read_yaml

SCENARIO = "scenario.yaml"

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """The results folder that is to be made."""

    root: Path  # folder of the results folders; made where it is missing
    identity: Identity  # what decides the result, and with it the folder's name
    started: datetime  # when the work began
    # what the manifest says besides: command, seed, replications, failures_digest, ...
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where it stands once it is finished."""
        return self.root / self.identity.folder_name

    def with_about(self, **about: Any) -> ResultTarget:
        """The same, of which the manifest says more."""
        return replace(self, about={**self.about, **about})


def finished_or_make(
    folder: Path, read: Callable[[Path], Made], make: Callable[[], Made], *, alone: bool = False
) -> tuple[Made, bool]:
    """What a finished folder holds; where there is none, or it is damaged, it is made."""
    if folder.exists():
        wrong = damage(folder)
        if wrong is None:
            return read(folder), True
        watch.warn(f"{wrong}; it is made anew")
    require_writable(folder.parent)
    with sole(folder) if alone else nullcontext():
        return make(), False


@contextmanager
def new_folder(target: ResultTarget) -> Iterator[Path]:
    """A folder to write into, in place with scenario and manifest when the block has ended."""
    with publishing(target.folder) as folder:
        (folder / SCENARIO).write_text(target.identity.scenario_yaml, "utf-8")
        yield folder
        write_manifest(folder, target.identity, target.about, target.started)


# --------------------------------------------------------------------------- files


def write_record(path: Path, record: Any, indent: int = 2) -> None:
    """Write a record as JSON."""
    path.write_text(json_text(encode(record), indent), "utf-8")


def read_record(kind: type[Made], path: Path, called: str, /, **given: Any) -> Made:
    """The record of a results folder that `write_record` wrote."""
    with readable(path.parent, called):
        return decode(kind, json.loads(path.read_bytes()), given)


@contextmanager
def readable(folder: Path, called: str) -> Iterator[None]:
    """Whatever goes wrong within the block is a ResultError: the folder can't be read."""
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


def read_table(path: Path) -> pd.DataFrame:
    """A table that `write_parquet` wrote."""
    frame: pd.DataFrame = pq.read_table(path).to_pandas()
    return frame


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
    """Find out before the work whether its results can be kept. Raises ResultError."""
    there = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise ResultError(f"can't write to {root}: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ResultError(f"can't write to {root}: no permission to write to {there}")


@contextmanager
def publishing(final: Path) -> Iterator[Path]:
    """A folder to write into; it becomes `final` when the block ends without an error.

    Where a sound folder of that name has appeared meanwhile (the same command run twice at once),
    that one stays; a damaged one is replaced.
    """
    with writes(final), _there(final.parent):
        remove_leftovers(final.parent)
        with workshop(final) as folder:
            new = folder / "new"
            new.mkdir()
            yield new
            _put_in_place(new, final)


def _put_in_place(new: Path, final: Path) -> None:
    if final.exists() and damage(final) is not None:
        _require_ours(final, new)
        with suppress(FileNotFoundError):  # another run has moved it
            final.rename(new.parent / "damaged")
    try:
        new.rename(final)
    except OSError:
        if damage(final) is not None:
            raise


@contextmanager
def _there(root: Path) -> Iterator[None]:
    """A folder is there while the block lasts; folders made for it go again if they are empty."""
    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    try:
        with writes(f"to {root}"):
            root.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()  # only while it is empty: nothing came of it


@contextmanager
def sole(final: Path) -> Iterator[None]:
    """While the block lasts, no other process works on what is to become `final`."""
    path = final.parent / f".{final.name}.lock"
    with _there(final.parent):
        try:
            with writes(f"to {final.parent}"):
                lock = _lock(path, fcntl.LOCK_NB)
        except _HeldError as held:
            raise ResultError(
                f"{final} is being made by another process (number {held}): wait for it, or stop "
                "it and run this again; what it has finished is kept"
            ) from None
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(lock)


@contextmanager
def workshop(final: Path) -> Iterator[Path]:
    """A folder beside `final` for what is not finished: gone with the block, or with the process.

    Where the process is killed, `remove_leftovers` deletes it.
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


class _HeldError(Exception):
    """Another process, whose number this is, holds the lock."""


def _lock(path: Path, how: int = 0) -> int:
    """The descriptor that holds the lock of a file; the kernel lets go of it when we die."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | how)
            if os.path.samestat(path.stat(), os.fstat(lock)):
                return lock
        except BlockingIOError:
            holder = os.pread(lock, 20, 0).decode("ascii", "replace")
            os.close(lock)
            raise _HeldError(holder or "unknown") from None
        except FileNotFoundError:
            pass  # whoever held it has deleted it
        os.close(lock)


def remove_leftovers(root: Path) -> list[Path]:
    """Delete what killed runs left in `root`; what a living process writes stays."""
    removed = []
    for folder in root.glob(f".*{UNFINISHED}"):
        with suppress(OSError, _HeldError):  # gone meanwhile, or not ours to touch
            lock = _lock(folder / "lock", fcntl.LOCK_NB)
            try:
                shutil.rmtree(folder)
                removed.append(folder)
            finally:
                os.close(lock)
    return removed


def _require_ours(final: Path, new: Path) -> None:
    """A damaged folder is deleted, so it must hold nothing that cprsim did not write."""
    theirs = sorted({path.name for path in final.iterdir()} - {path.name for path in new.iterdir()})
    if theirs:
        raise ResultError(
            f"{final} is damaged, but also holds {', '.join(theirs)}, which cprsim did not write; "
            "move it away and run again"
        )
