"""What saves and loads cost, from a log of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.goodness import Ranking, rank
from cprsim.failures.lifetimes import Lifetimes, lifetimes_of
from cprsim.failures.likelihood import Z95
from cprsim.records import Floats

SIMULATED = ("exponential", "weibull", "gamma", "lognormal")
ALMOST_CONSTANT = 1e-3  # standard deviation over mean, below which a time is one number


@dataclass(frozen=True, slots=True)
class Transfers:
    """Saves and loads as logged."""

    kind: tuple[str, ...]  # (n,) save or load
    duration_h: Floats  # (n,)
    n_bytes: Floats  # (n,) NaN where the log names none
    start_h: Floats  # (n,) on the log's clock


@dataclass(frozen=True, slots=True)
class CostFit:
    """The duration of one kind of transfer."""

    kind: str
    durations: Lifetimes
    ranking: Ranking | None  # None where all durations are the same
    bandwidth_bytes_per_h: float  # all bytes over all hours; NaN where no bytes are named
    bandwidth_error: float  # standard error of it


def fit_costs(
    transfers: Transfers, *, n_bootstrap: int = 199, seed: int = 0
) -> tuple[CostFit, ...]:
    """Fit the durations of each kind that the log has.

    Parameters
    ----------
    transfers : the log
    n_bootstrap, seed : of the p-values, see `goodness.rank`

    Raises
    ------
    ParameterError
        where a kind has only durations of zero.
    """
    kinds = np.array(transfers.kind)
    return tuple(
        _fit(kind, transfers, kinds == kind, n_bootstrap, seed)
        for kind in ("save", "load")
        if (kinds == kind).any()
    )


def _fit(kind: str, transfers: Transfers, mine: np.ndarray, n_bootstrap: int, seed: int) -> CostFit:
    durations = lifetimes_of(transfers.duration_h[mine])
    if durations.n == 0:
        raise ParameterError(f"every {kind} of the log takes no time at all")
    spread = float(durations.duration_h.std() / durations.duration_h.mean())
    ranking = None
    if spread > ALMOST_CONSTANT:
        ranking = rank(durations, n_bootstrap=n_bootstrap, seed=seed, families=SIMULATED)
    bandwidth = _bandwidth(transfers.n_bytes[mine], transfers.duration_h[mine])
    return CostFit(kind, durations, ranking, *bandwidth)


def _bandwidth(n_bytes: Floats, duration_h: Floats) -> tuple[float, float]:
    """Bytes over hours of all transfers that name their bytes, and its error (ratio estimator)."""
    known = ~np.isnan(n_bytes) & (duration_h > 0)
    n_bytes, duration_h = n_bytes[known], duration_h[known]
    if len(n_bytes) == 0:
        return float("nan"), float("nan")
    rate = float(n_bytes.sum() / duration_h.sum())
    if len(n_bytes) == 1:
        return rate, float("nan")
    residual = n_bytes - rate * duration_h
    variance = float((residual**2).sum()) / (len(n_bytes) - 1) / len(n_bytes)
    return rate, sqrt(variance) / float(duration_h.mean())


def costs_fragment(fits: tuple[CostFit, ...], origin: str) -> str:
    """YAML to paste into a scenario.

    Parameters
    ----------
    fits : of one log
    origin : what the log is, for the comment
    """
    lines = [f"# fitted to {origin}", "costs:"]
    for one in fits:
        mean_s = float(one.durations.duration_h.mean()) * 3600
        lines.append(
            f"  # {one.durations.n} {one.kind}s, mean {mean_s:.4g} s{_bandwidth_text(one)}"
        )
        key = "  save: {stall: %s}" if one.kind == "save" else "  load: %s"
        lines.append(key % _duration(one, mean_s))
    missing = ["detect", "reschedule", *({"save", "load"} - {one.kind for one in fits})]
    lines.append(f"  # not in this log: {', '.join(sorted(missing))}")
    return "\n".join(lines) + "\n"


def _duration(one: CostFit, mean_s: float) -> str:
    if one.ranking is None:
        return f"{mean_s:.6g} s"
    fit = one.ranking.best.fit
    text = f"family: {fit.family}, mean: {fit.mean.estimate * 3600:.6g} s"
    for key in ("shape", "sigma"):
        text += "".join(f", {key}: {p.estimate:.6g}" for p in fit.parameters if p.name == key)
    return f"{{{text}}}"


def _bandwidth_text(one: CostFit) -> str:
    if np.isnan(one.bandwidth_bytes_per_h):
        return ""
    rate, error = (x / 3600 / 1e6 for x in (one.bandwidth_bytes_per_h, one.bandwidth_error))
    return f", {rate:.4g} MB/s (95 %: {rate - Z95 * error:.4g} to {rate + Z95 * error:.4g})"
