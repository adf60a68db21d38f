"""Put a results folder in place whole or not at all.

    .<name>.<id>.unfinished/lock    held while the writer lives; the kernel lets go when it dies
    .<name>.<id>.unfinished/new/    what is being written
    <name>/                         `new`, renamed: the folder is finished or is not there

Whoever gets the lock of a folder of this kind knows that its writer is gone and may delete it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from cprsim.errors import ResultError
from cprsim.files import UNFINISHED, writes
from cprsim.results.manifest import damage


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


@contextmanager
def _there(root: Path) -> Iterator[None]:
    """A folder is there while the block lasts; folders made for it go again if they are empty."""
    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    try:
        root.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()  # only while it is empty: nothing came of it


@contextmanager
def sole(final: Path) -> Iterator[None]:
    """While the block lasts, no other process works on what is to become `final`.

    The lock is a file beside it; the kernel lets go of it when its holder dies.
    """
    path = final.parent / f".{final.name}.lock"
    with ExitStack() as stack:
        with writes(f"to {final.parent}"):
            stack.enter_context(_there(final.parent))
            lock = _open_lock(path, final)
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(lock)


def _open_lock(path: Path, final: Path) -> int:
    """The descriptor that holds the lock of `final`. Raises ResultError where another does."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 20, 0).decode("ascii", "replace") or "unknown"
            os.close(lock)
            raise ResultError(
                f"{final} is being made by another process (number {holder}): wait for it, or stop "
                "it and run this again; what it has finished is kept"
            ) from None
        if _is_still(path, lock):
            return lock
        os.close(lock)


@contextmanager
def workshop(final: Path) -> Iterator[Path]:
    """A folder beside `final` for what is not finished: gone with the block, or with the process.

    Where the process is killed, `remove_leftovers` deletes it.
    """
    folder, lock = _open_workshop(final)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _open_workshop(final: Path) -> tuple[Path, int]:
    """A new locked workshop beside `final`: its path and the descriptor that holds the lock."""
    while True:
        folder = final.parent / f".{final.name}.{secrets.token_hex(4)}{UNFINISHED}"
        folder.mkdir()
        with suppress(FileNotFoundError):  # swept away before it was locked: once more
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_still(folder / "lock", lock):
                return folder, lock
            os.close(lock)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the path still leads to the open file, or another run deleted it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def remove_leftovers(root: Path) -> list[Path]:
    """Delete what killed runs left in `root`; what a living process writes stays."""
    removed = []
    for folder in root.glob(f".*{UNFINISHED}"):
        with suppress(OSError):  # gone meanwhile, or not ours to touch
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
                removed.append(folder)
            finally:
                os.close(lock)
    return removed


def _put_in_place(new: Path, final: Path) -> None:
    for _ in range(10):  # each further turn needs yet another run to interfere
        if final.exists():
            if damage(final) is None:
                return
            _require_ours(final, new)
            with suppress(FileNotFoundError):
                final.rename(new.parent / f"damaged-{secrets.token_hex(4)}")
        try:
            new.rename(final)
        except OSError:
            if not final.exists():
                raise
        else:
            return
    raise ResultError(f"can't put {final} in place: other runs keep changing it")


def _require_ours(final: Path, new: Path) -> None:
    """A damaged folder is deleted, so it must hold nothing that cprsim did not write."""
    theirs = sorted({path.name for path in final.iterdir()} - {path.name for path in new.iterdir()})
    if theirs:
        raise ResultError(
            f"{final} is damaged, but also holds {', '.join(theirs)}, which cprsim did not write; "
            "move it away and run again"
        )
