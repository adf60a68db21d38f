"""The curves that come with the program, each with the command and the manifest that made it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cprsim.curves.curve_file import CurveFile, read_curve

FOLDER = Path(__file__).parent / "shipped"


def shipped_names() -> tuple[str, ...]:
    """Names of the shipped curves, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def shipped_path(name: str) -> Path:
    """The file of a shipped curve, whether it is there or not."""
    return FOLDER / f"{name}.json"


@cache
def shipped(name: str) -> CurveFile:
    """A shipped curve. Raises CurveError where there is none of that name."""
    return read_curve(shipped_path(name))
