"""What is marked as compiled, for who compiles it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

COMPILES = b"cprsim.compiling import"  # in a file of compiled functions

shared_files: defaultdict[Path, set[Path]] = defaultdict(set)  # by folder
parts: list[tuple[Callable[..., Any], dict[str, Any]]] = []  # of which numba does not know yet
