"""Predicted beside measured, part by part, by tolerances fixed here.

A wrong model may have the right total: the parts are what is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cprsim.rehearsal.prediction import Run
from cprsim.rehearsal.setting import SECONDS

OVERHEAD_FRACTION = 0.05  # of the predicted
PART_FRACTION = 0.10
LEAST_S = 0.2  # a smaller difference in seconds is none
PLS_ABSOLUTE = 0.01
SHARE_WITHIN = 0.95  # of the runs of a strategy, their overhead
OVERHEAD, PLS = "overhead", "PLS"
UNJUDGED = ("degraded",)  # pacing: the rule of `busy` is for that


@dataclass(frozen=True, slots=True)
class Line:
    """One quantity of a run or of several: seconds, or PLS."""

    name: str
    predicted: float
    measured: float
    off: bool

    @property
    def error_fraction(self) -> float | None:
        """Measured beside predicted; None where nothing was predicted."""
        return self.measured / self.predicted - 1.0 if self.predicted else None


@dataclass(frozen=True, slots=True)
class Judged:
    """One run beside its prediction."""

    lines: tuple[Line, ...]

    @property
    def wrong(self) -> tuple[str, ...]:
        """Names of what is off."""
        return tuple(line.name for line in self.lines if line.off)


def judge(predicted: Run, measured: Run) -> Judged:
    """One run beside its prediction."""
    lines = []
    for part in measured.costs.parts:
        ours, theirs = (_seconds(run, part) for run in (predicted, measured))
        if max(ours, abs(theirs)) > 0 and part not in UNJUDGED:
            lines.append(Line(part, ours, theirs, _is_off(ours, theirs, PART_FRACTION)))
    ours, theirs = overhead_s(predicted), overhead_s(measured)
    lines.append(Line(OVERHEAD, ours, theirs, _is_off(ours, theirs, OVERHEAD_FRACTION)))
    differs = abs(predicted.pls - measured.pls) > PLS_ABSOLUTE
    lines.append(Line(PLS, predicted.pls, measured.pls, differs))
    return Judged(tuple(lines))


def mean_of(judged: Sequence[Judged]) -> Judged:
    """Means over several runs of a strategy; a quantity is off by the same tolerances.

    The overhead is off besides where fewer than 95 % of the runs are within.
    """
    names = list(dict.fromkeys(line.name for one in judged for line in one.lines))
    lines = []
    for name in names:
        found = [next((ln for ln in one.lines if ln.name == name), None) for one in judged]
        ours = float(np.mean([0.0 if line is None else line.predicted for line in found]))
        theirs = float(np.mean([0.0 if line is None else line.measured for line in found]))
        lines.append(Line(name, ours, theirs, _mean_is_off(name, ours, theirs, found)))
    return Judged(tuple(lines))


def _mean_is_off(name: str, ours: float, theirs: float, found: Sequence[Line | None]) -> bool:
    if name == PLS:
        return any(line is not None and line.off for line in found)
    if name != OVERHEAD:
        return _is_off(ours, theirs, PART_FRACTION)
    n_within = sum(line is None or not line.off for line in found)
    return n_within < SHARE_WITHIN * len(found) or _is_off(ours, theirs, OVERHEAD_FRACTION)


def _is_off(predicted_s: float, measured_s: float, fraction: float) -> bool:
    return abs(measured_s - predicted_s) > max(LEAST_S, fraction * predicted_s)


def _seconds(run: Run, part: str) -> float:
    return float(run.costs.hours_of(part)[0]) * SECONDS


def overhead_s(run: Run) -> float:
    """Wall time beyond the useful work, without what the pace alone took."""
    costs = run.costs
    return float(costs.wall_h[0] - costs.useful_h[0]) * SECONDS - _seconds(run, "degraded")
