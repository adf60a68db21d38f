"""From pydantic's errors to lines to act on: place, key, value found, what would be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError

from cprsim.errors import Place, Problem
from cprsim.scenario.quantities import TAG
from cprsim.scenario.yaml_text import KeyPath, Plain, dotted

MAX_PROBLEMS = 50  # lines; more than that nobody reads


def problems_of(
    error: ValidationError, data: Plain, place: Callable[[KeyPath], Place]
) -> list[Problem]:
    """All that pydantic found; sections have explained it."""
    found = [(written_path(one["loc"], data), one["msg"]) for one in error.errors()]
    return [Problem(place(path), dotted(path), message) for path, message in found]


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, in the order of the file; what the command line says comes first."""
    found = sorted(
        dict.fromkeys(problems), key=lambda p: (p.place.line or 0, str(p.place.file), p.key)
    )
    if (n_more := len(found) - MAX_PROBLEMS) > 0:
        found[MAX_PROBLEMS:] = [Problem(found[-1].place, "", f"the last of {n_more} more problems")]
    return found


def written_path(loc: KeyPath, data: Plain) -> KeyPath:
    """Pydantic's location as a path in the file.

    Without the tags of unions, and without the keys that a short form left out.
    """
    path: list[str | int] = []
    here: Any = data
    for i, part in enumerate(loc):
        is_last = i == len(loc) - 1
        if part == "[key]" or (isinstance(part, str) and part.startswith(TAG)):
            continue
        if isinstance(here, dict) and part in here:
            path.append(part)
            here = here[str(part)]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            path.append(part)
            here = here[part]
        elif isinstance(here, dict) and is_last:
            path.append(part)
    return tuple(path)
