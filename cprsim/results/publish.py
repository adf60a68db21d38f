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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cprsim.errors import ResultError

SUFFIX = ".unfinished"


def require_writable(root: Path) -> None:
    """Find out before the work whether its results can be kept. Raises ResultError."""
    there = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise ResultError(f"can't write to {root}: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ResultError(f"can't write to {root}: no permission to write to {there}")


@contextmanager
def publishing(final: Path, damage: Callable[[Path], str | None]) -> Iterator[Path]:
    """A folder to write into; it becomes `final` when the block ends without an error.

    Where a sound folder of that name has appeared meanwhile (the same command run twice at once),
    that one stays; a damaged one is replaced.

    Parameters
    ----------
    final : where the folder is to stand
    damage : says what is wrong with a folder, None where it is sound

    Raises
    ------
    ResultError : it can't be written, e.g. because the disk is full; nothing is left behind
    """
    root = final.parent
    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    try:
        root.mkdir(parents=True, exist_ok=True)
        remove_leftovers(root)
        workshop, lock = _open_workshop(final)
        try:
            new = workshop / "new"
            new.mkdir()
            yield new
            _put_in_place(new, final, damage)
        finally:
            shutil.rmtree(workshop, ignore_errors=True)
            os.close(lock)
    except OSError as error:
        raise ResultError(f"can't write {final}: {error.strerror or error}") from error
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()  # only while it is empty: nothing came of it


def _open_workshop(final: Path) -> tuple[Path, int]:
    """A new locked workshop beside `final`: its path and the descriptor that holds the lock."""
    while True:
        workshop = final.parent / f".{final.name}.{secrets.token_hex(4)}{SUFFIX}"
        workshop.mkdir()
        with suppress(FileNotFoundError):  # swept away before it was locked: once more
            lock = os.open(workshop / "lock", os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_still(workshop / "lock", lock):
                return workshop, lock
            os.close(lock)


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the path still leads to the open file, or another run deleted it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def remove_leftovers(root: Path) -> list[Path]:
    """Delete what killed runs left in `root`; what a living process writes stays.

    Returns
    -------
    The folders deleted.
    """
    removed = []
    for workshop in root.glob(f".*{SUFFIX}"):
        with suppress(OSError):  # gone meanwhile, or not ours to touch
            lock = os.open(workshop / "lock", os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(workshop)
                removed.append(workshop)
            finally:
                os.close(lock)
    return removed


def _put_in_place(new: Path, final: Path, damage: Callable[[Path], str | None]) -> None:
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
