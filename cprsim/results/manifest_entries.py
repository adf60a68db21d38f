"""What the entries of a manifest hold: those that are read again, by kind.

A manifest whose digest is right may still have been written by another program, or by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cprsim.foreign import one_line

Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _mapping_to(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _object_with(checks: Mapping[str, Check]) -> Check:
    return lambda value: (
        isinstance(value, dict) and all(check(value.get(key)) for key, check in checks.items())
    )


NEEDED = ("name", "digest", "files")
KINDS: Mapping[str, tuple[Check, str]] = {
    "name": (_text, "a text"),
    "digest": (_text, "a text"),
    "replay": (_maybe(_count), "a whole number"),
    "command": (_list_of(_text), "a list of texts"),
    "seed": (_maybe(_count), "a whole number"),
    "replications": (_mapping_to(_count), "a whole number for each strategy"),
    "failures_digest": (_text, "a text"),
    "points": (_count, "a whole number"),
    "effort": (_text, "a text"),
    "clicks": (_maybe(_text), "a text"),
    "inputs": (_mapping_to(_text), "a digest for each input"),
    "cprsim": (
        _object_with({"version": _text, "source": _text, "git": _maybe(_object_with({}))}),
        "version, source and git",
    ),
    "python": (_text, "a text"),
    "libraries": (_mapping_to(_maybe(_text)), "a version for each library"),
    "files": (
        _mapping_to(_object_with({"sha256": _text, "bytes": _count})),
        "sha256 and bytes for each file",
    ),
}


def what_is_wrong(manifest: Mapping[str, Any]) -> str | None:
    """The first entry that is missing or not of its kind, in words; None where all are right."""
    missing = [key for key in NEEDED if key not in manifest]
    if missing:
        return f"it has no {missing[0]}"
    for key, (check, right) in KINDS.items():
        if key in manifest and not check(manifest[key]):
            return f"{key} is {one_line(repr(manifest[key]))}; it holds {right}"
    return None
