"""Checks of a measurement: whether losses follow PLS and add up, and which strategies differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

import numpy as np
from scipy import stats

from cprsim.estimate import HIGH
from cprsim.measuring.fit import Fitted, factor_at
from cprsim.measuring.observed import Observed
from cprsim.measuring.runs import SeedResult
from cprsim.records import Bools, Floats
from cprsim.staleness import MORE_BYTES, WHOLE

CONTROL = "round-robin"
HOLDS_WITHIN = 0.2  # of the prediction: up to here losses count as adding up
POWER = 0.8  # of the test whose smallest detectable difference is named


class AdditivityVerdict(StrEnum):
    """Whether the curve predicts histories of several failures to within `HOLDS_WITHIN`."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True, slots=True)
class SeedMean:
    """A mean over seeds and its standard error."""

    mean: float
    standard_error: float
    n: int

    @classmethod
    def over(cls, values: Floats) -> SeedMean:
        n = len(values)
        return cls(float(values.mean()), float(values.std(ddof=1)) / sqrt(n), n)

    @property
    def half_width(self) -> float:
        """Of the 95 % interval (Student's t)."""
        return float(stats.t.ppf(HIGH, self.n - 1)) * self.standard_error

    @property
    def detectable(self) -> float:
        """The smallest difference from 0 that a two-sided test at 5 % sees with 80 % power."""
        quantiles = (float(stats.t.ppf(p, self.n - 1)) for p in (HIGH, POWER))
        return sum(quantiles) * self.standard_error


@dataclass(frozen=True, slots=True)
class SlopeDifference:
    """One strategy's slope less another's, seed by seed."""

    strategy: str
    other: str
    difference: SeedMean


@dataclass(frozen=True, slots=True)
class AddingUp:
    """Held-back histories of one kind: what they lost over what their failures predict."""

    strategy: str
    n_failures: int
    pls: float  # mean over the seeds
    weighted_pls: float
    measured_over_sum: SeedMean  # of what its failures would lose one by one
    measured_over_predicted: SeedMean  # by the bent line, bent by the other seeds

    @property
    def verdict(self) -> AdditivityVerdict:
        """Whether the 95 % interval of the ratio lies within the tolerance, or wholly outside."""
        ratio = self.measured_over_predicted
        off, half = ratio.mean - 1.0, ratio.half_width
        if abs(off) + half <= HOLDS_WITHIN:
            return AdditivityVerdict.HOLDS
        return (
            AdditivityVerdict.FAILS if abs(off) - half > HOLDS_WITHIN else AdditivityVerdict.UNKNOWN
        )


@dataclass(frozen=True, slots=True)
class Checks:
    """All that is said about one metric's fit."""

    correlation: SeedMean  # of loss and plain PLS, of single failures under partial recovery
    weighted_correlation: SeedMean
    differences: tuple[SlopeDifference, ...]
    adding_up: tuple[AddingUp, ...]  # by rising PLS
    most_weighted_pls: float  # up to which it was measured and not seen to fail
    fails_from_pls: float | None  # None: it was seen to fail at no PLS that was tried

    @property
    def verdict(self) -> AdditivityVerdict:
        """On all histories together: one that fails decides, then one that can't be told."""
        found = {one.verdict for one in self.adding_up}
        if AdditivityVerdict.FAILS in found:
            return AdditivityVerdict.FAILS
        return (
            AdditivityVerdict.UNKNOWN
            if AdditivityVerdict.UNKNOWN in found or not found
            else AdditivityVerdict.HOLDS
        )


def check(seen: Observed, fitted: Fitted) -> Checks:
    """Hold a fit to what it was not fitted to."""
    lost = weighted(seen, fitted)
    partial = seen.strategy(WHOLE) & ~seen.held_back
    histories = _histories(seen, fitted, lost)
    failing = [one for one in histories if one.verdict is AdditivityVerdict.FAILS]
    sound = [one for one in histories if one.verdict is not AdditivityVerdict.FAILS]
    loss = seen.loss[fitted.metric]
    single = float(np.max(lost[~seen.held_back]))
    fails_from = min((one.weighted_pls for one in failing), default=np.inf)
    reached = max((one.weighted_pls for one in sound), default=single)
    return Checks(
        correlation=_correlation(seen, partial, seen.pls, loss),
        weighted_correlation=_correlation(seen, partial, lost, loss),
        differences=tuple(_differences(fitted)),
        adding_up=tuple(histories),
        most_weighted_pls=float(min(max(single, reached), fails_from)),
        fails_from_pls=min((one.pls for one in failing), default=None),
    )


def weighted(seen: Observed, fitted: Fitted) -> Floats:
    """(n,) weighted PLS of every trial."""
    lost = np.zeros(len(seen.trials))
    for key in seen.strategies:
        ours = seen.strategy(key)
        lost[ours] = fitted.shape.weighted_pls(seen.shards, key, len(seen.trials))[ours]
    return lost


def _correlation(seen: Observed, some: Bools, lost: Floats, loss: Floats) -> SeedMean:
    """Pearson's, seed by seed: a seed's lucky twin moves all its losses alike."""
    by_seed = [
        np.corrcoef(lost[some & (seen.seed == seed)], loss[some & (seen.seed == seed)])[0, 1]
        for seed in range(len(seen.seeds))
    ]
    return SeedMean.over(np.array(by_seed))


def _differences(fitted: Fitted) -> list[SlopeDifference]:
    """Each strategy against plain partial recovery, and against round robin at as many bytes."""
    slopes = fitted.slopes

    def between(one: str, other: str) -> SlopeDifference:
        return SlopeDifference(one, other, SeedMean.over(slopes.difference(one, other)))

    found = [between(key, WHOLE) for key in slopes.strategies if key != WHOLE]
    for suffix in ("", MORE_BYTES):
        control = CONTROL + suffix
        same_bytes = [key for key in slopes.strategies if key.endswith(MORE_BYTES) == bool(suffix)]
        if control in slopes.strategies:
            found += [between(k, control) for k in same_bytes if k not in (control, WHOLE)]
    return found


def _histories(seen: Observed, fitted: Fitted, lost: Floats) -> list[AddingUp]:
    """Ratios of held-back losses to what the seed's own slopes predict: additivity alone."""
    kinds: dict[tuple[str, int], list[int]] = {}
    for i in np.flatnonzero(seen.held_back):
        trial = seen.trials[i]
        kinds.setdefault((trial.saving.strategy, len(trial.failures)), []).append(int(i))
    rows = []
    for (strategy, n_failures), members in kinds.items():
        ours = np.array(members)
        column = fitted.slopes.strategies.index(strategy)
        predicted = fitted.slopes.by_seed[seen.seed[ours], column] * lost[ours]
        measured = seen.loss[fitted.metric][ours]
        joint = np.array(
            [
                factor_at([one.without(int(seed)) for one in fitted.joint], lost[i : i + 1])[0]
                for i, seed in zip(ours, seen.seed[ours], strict=True)
            ]
        )
        rows.append(
            AddingUp(
                strategy,
                n_failures,
                float(seen.pls[ours].mean()),
                float(lost[ours].mean()),
                ratio_of_means(measured, predicted),
                ratio_of_means(measured, joint * predicted),
            )
        )
    return sorted(rows, key=lambda one: one.pls)


def ratio_of_means(above: Floats, below: Floats) -> SeedMean:
    """The ratio of two means over the same seeds; its error by the delta method."""
    ratio = above.mean() / below.mean()
    off = (above - ratio * below) / below.mean()
    return SeedMean(float(ratio), float(off.std(ddof=1)) / sqrt(len(off)), len(off))


# --------------------------------------------------------------------------- what it took


@dataclass(frozen=True, slots=True)
class MeasuringEffort:
    """What the measurement took, and what it would have taken without pairing."""

    n_runs: int
    cpu_min: float
    variance_ratio: float  # of an unpaired difference over a paired one
    n_unpaired: int  # runs from scratch, unpaired, for the same standard errors


def effort(results: list[SeedResult], seen: Observed, fitted: Fitted) -> MeasuringEffort:
    """Runs and CPU minutes, beside those of unpaired runs from scratch.

    Notes
    -----
    An unpaired comparison sets a run beside a run of other clicks and weights: the variance of its
    difference is twice that of the twins. A paired one leaves what the fit does not explain.
    """
    n_runs = sum(len(one.quality) + 1 for one in results)
    twins = np.array(
        [_value(one, fitted) for one in results if one.twin is not None], dtype=np.float64
    )
    single = ~seen.held_back
    lost = weighted(seen, fitted)[single]
    columns = [fitted.slopes.strategies.index(t.saving.strategy) for t in seen.trials]
    slope = fitted.slopes.by_seed[seen.seed, columns][single]
    off = seen.loss[fitted.metric][single] - slope * lost
    off -= fitted.slopes.intercept[seen.seed[single]]
    ratio = 2 * float(twins.var(ddof=1)) / float(off.var())
    return MeasuringEffort(
        n_runs, sum(one.cpu_s for one in results) / 60, ratio, round(n_runs * ratio)
    )


def _value(result: SeedResult, fitted: Fitted) -> float:
    assert result.twin is not None
    quality = result.twin.quality
    return quality.auc if fitted.metric.value == "auc" else quality.log_loss
