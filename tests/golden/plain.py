"""What values are kept as: plain data, short, and the same on another processor.

Simulated rows are the same on every processor, to the last bit: a hash of their bits is kept, and
of each column a mean, which says what moved and by how much. Its weights are near 1 and depend on
the place: where one of n numbers changes by n * 1e-8 of it, or two change places, the mean shows
it. Means are compared to 1e-9, numbers of fits to 1e-6, p-values to `COUNTS` samples of their
bootstrap. In longer data the mean is that of their numbers' logarithms, and the rest is hashed.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import asinh, fsum, isclose, isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.making import SCENARIOS

Golden = Iterator[tuple[str, Any]]
RELATIVE, NOTHING = 1e-9, 1e-12
COUNTS = 3  # of the samples behind a p-value, by which it may differ on another processor
P_VALUE = "p_value"  # its key in answers, and in goldens that of counts: [of how many, each p]
LOSSES = "loss"  # in names of columns that BLAS has a part in: equal to 1e-9, not to the last bit
NO_DATA = "CPRSIM_DATA" not in os.environ
"""Then nothing is there whose name begins with `data`."""


def shipped() -> dict[Path, str]:
    """The scenarios that can be read here, each with how its names begin."""
    named = {
        path: "data " * ("CPRSIM_DATA" in path.read_text("utf-8"))
        for path in sorted(SCENARIOS.glob("*.yaml"))
    }
    return {path: name for path, name in named.items() if not (name and NO_DATA)}


def plain(value: Any) -> Any:
    """Records as mappings of what differs from the default, numbers with 12 digits."""
    if is_dataclass(value) and not isinstance(value, type):
        kept = {
            one.name: found
            for one in fields(value)
            if repr(found := getattr(value, one.name)) != repr(one.default)
        }
        return {"is": type(value).__name__, **plain(kept)}
    if isinstance(value, Enum):
        return plain(value.value) if isinstance(value.value, str) else value.name.lower()
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | pd.Series):
        return plain(value.tolist())
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Path):
        return value.name
    return rounded(value) if isinstance(value, float) else value


def rounded(number: float, digits: int = 12) -> float | str:
    """The number with so many digits; what is none as text, which JSON has."""
    return float(f"{number:.{digits}g}") if isfinite(number) else str(number)


def digest(value: Any) -> list[Any]:
    """In short: a hash of all but the numbers, how many these are, and the mean of their sizes."""
    words, *found = numbers(value)
    return [words, len(found), mean([asinh(1e6 * one) for one in found])]


def numbers(value: Any) -> list[Any]:
    """A hash of all but the numbers, and these."""
    found: list[float] = []
    words = json.dumps(_without_numbers(plain(value), found), sort_keys=True)
    return [hashlib.sha256(words.encode()).hexdigest()[:10], *found]


def _without_numbers(value: Any, numbers: list[float]) -> Any:
    if isinstance(value, dict):
        return {key: _without_numbers(value[key], numbers) for key in sorted(value)}
    if isinstance(value, list):
        return [_without_numbers(one, numbers) for one in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        numbers.append(value)
        return 0
    return value


def mean(numbers: Collection[float]) -> float:
    """Their mean, with weights from 0.9 to 1.1."""
    weighted = (x * (0.9 + 0.2 * (i * 0.6180339887498949 % 1.0)) for i, x in enumerate(numbers))
    return float(rounded(fsum(weighted) / max(len(numbers), 1)))


def table(frame: pd.DataFrame, *, to_the_bit: bool = False) -> dict[str, Any]:
    """Mean of each column of numbers, and how many are none; those of zeros alone are left out.

    With `to_the_bit` also a hash of them all but those of losses.
    """
    found, bits = dict[str, Any](), hashlib.sha256()
    for name, column in frame.items():
        if column.dtype.kind in "biuf":
            values = column.to_numpy(float)
            bits.update(b"" if LOSSES in str(name) else np.ascontiguousarray(values).tobytes())
            known = values[np.isfinite(values)]
            if (abs(known) > NOTHING).any():
                n_none = len(values) - len(known)
                found[str(name)] = [mean(known), n_none] if n_none else mean(known)
    return found | ({"bits": bits.hexdigest()[:10]} if to_the_bit else {})


def numbers_in(value: Any) -> list[float]:
    """All numbers of plain data but truths, zeros and p-values, sorted, with 9 digits."""
    found: list[float] = []
    _without_numbers(_without_p_values(plain(value), []), found)
    return sorted(float(rounded(float(one), 9)) for one in found if abs(one) > NOTHING)


def fit_numbers(value: Any, n_bootstrap: int) -> dict[str, Any]:
    """All numbers of a fit, and its p-values as counts of samples."""
    p_values: list[float] = []
    _without_p_values(plain(value), p_values)
    counts = [round(one * (1 + n_bootstrap)) for one in p_values]
    return {"numbers": numbers_in(value), P_VALUE: counts}


def _without_p_values(value: Any, found: list[float]) -> Any:
    if isinstance(value, dict):
        if "family" in value and isinstance(value.get(P_VALUE), float):
            found.append(value[P_VALUE])
            value = {key: one for key, one in value.items() if key != P_VALUE}
        return {key: _without_p_values(one, found) for key, one in value.items()}
    return [_without_p_values(one, found) for one in value] if isinstance(value, list) else value


def differences(stored: Any, found: Any, at: str = "", relative: float = RELATIVE) -> list[str]:
    """What differs, with where it stands; of a list that is another one, what is gone and new."""
    if isinstance(stored, dict) and isinstance(found, dict):
        return [
            one
            for key in sorted({*stored, *found})
            for one in differences(stored.get(key), found.get(key), f"{at}/{key}", relative)
        ]
    if isinstance(stored, list) and isinstance(found, list):
        if len(stored) == len(found):
            pairs = enumerate(zip(stored, found, strict=True))
            wrong = [one for n, pair in pairs for one in differences(*pair, f"{at}/{n}", relative)]
            if len(wrong) < 3:
                return wrong
        count = Counter(map(str, stored)), Counter(map(str, found))
        gone, new = sorted(count[0] - count[1]), sorted(count[1] - count[0])
        return [f"{at}: {len(gone)} gone {gone[:5]}, {len(new)} new {new[:5]}"]
    both = all(type(value) in (int, float) for value in (stored, found))
    nothing = COUNTS if f"/{P_VALUE}/" in at else NOTHING
    if both and isclose(stored, found, rel_tol=relative, abs_tol=nothing):
        return []
    return [] if stored == found else [f"{at}: {stored!r} -> {found!r}"]
