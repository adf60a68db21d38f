"""Finished results are found again instead of being made a second time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cprsim.cli.saying import complain
from cprsim.results import damage

Found = TypeVar("Found")


def found_again(
    folder: Path, read: Callable[[Path], Found], instead: str = "it is made anew"
) -> Found | None:
    """What a finished folder holds; None where there is none, or it is damaged, which is said.

    Parameters
    ----------
    read : the folder
    instead : what is done about a damaged one
    """
    if not folder.exists():
        return None
    wrong = damage(folder)
    if wrong is None:
        return read(folder)
    complain(f"cprsim: {wrong}; {instead}")
    return None
