"""Lists of nodes as Slurm writes them: ``gpu[001-016,020],login1``."""

from __future__ import annotations

import re
from itertools import product

from cprsim.errors import ParameterError
from cprsim.foreign import one_line

MOST_NODES = 100_000
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],\s]+)")
_ITEM = re.compile(r"(?:\[[^\[\]]*\]|[^\[\],\s])+")


def expanded(text: str) -> list[str]:
    """The names in a list of nodes, in its order.

    Raises
    ------
    ParameterError
        for a list that is none, or of more than `MOST_NODES` names.
    """
    items = _ITEM.findall(text)
    between = _ITEM.sub("", text)
    if not items or between.replace(",", "").strip():
        raise ParameterError(f"'{one_line(text)}' is no list of nodes such as gpu[001-016,020]")
    return [name for item in items for name in _names(item)]


def _names(item: str) -> list[str]:
    parts: list[list[str]] = []
    n_names = 1
    for ranges, plain in _PART.findall(item):
        parts.append([plain] if plain else _numbers(ranges))
        n_names *= len(parts[-1])
        if n_names > MOST_NODES:
            raise ParameterError(f"'{one_line(item)}' names more than {MOST_NODES:,} nodes")
    return ["".join(name) for name in product(*parts)]


def _numbers(ranges: str) -> list[str]:
    """The numbers in ``001-016,020``, as wide as they are written."""
    numbers: list[str] = []
    for one in ranges.split(","):
        found = _RANGE.fullmatch(one.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if last < first:
            raise ParameterError(f"'[{one_line(ranges)}]' is no range of numbers such as 001-016")
        if last - first >= MOST_NODES:
            raise ParameterError(f"'[{one_line(ranges)}]' names more than {MOST_NODES:,} nodes")
        assert found is not None
        numbers += [f"{number:0{len(found[1])}d}" for number in range(first, last + 1)]
    return numbers
