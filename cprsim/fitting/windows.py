"""How the number of failures and their shape depend on the coalescing window."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.errors import ParameterError
from cprsim.estimate import Estimate
from cprsim.failures.coalescing import coalesced, n_failures
from cprsim.failures.outages import Outages
from cprsim.fitting.families import WEIBULL, fit
from cprsim.fitting.lifetimes import gaps, uptimes
from cprsim.fitting.likelihood import NotConvergedError

WINDOWS_H = (
    0.0, 10 / 3600, 1 / 60, 2 / 60, 5 / 60, 10 / 60, 20 / 60, 0.5, 1.0, 2.0, 4.0, 8.0, 24.0,
)  # fmt: skip
MOST_FITTED = 20_000


@dataclass(frozen=True, slots=True)
class ByWindow:
    """What is left of a log with one coalescing window."""

    within_h: float
    n_failures: int
    uptime_shape: Estimate | None  # Weibull; None where it can't be fitted
    gap_shape: Estimate | None


def failures_by_window(
    outages: Outages, windows_h: tuple[float, ...] = WINDOWS_H
) -> tuple[ByWindow, ...]:
    """The log with each window [h]; of very many times every n-th is fitted."""
    return tuple(
        ByWindow(within_h, n_failures(outages, within_h), *_shapes(coalesced(outages, within_h)))
        for within_h in windows_h
    )


def _shapes(outages: Outages) -> tuple[Estimate | None, Estimate | None]:
    found: list[Estimate | None] = []
    for times in (uptimes(outages), gaps(outages)):
        try:
            found.append(fit(WEIBULL, times.at_most(MOST_FITTED)[0]).parameters[0])
        except (ParameterError, NotConvergedError):
            found.append(None)
    return found[0], found[1]
