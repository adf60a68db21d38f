"""The shape of a response, W and phi, and its estimate from the single failures of all seeds.

    weighted PLS = sum over stale shards of share x [(1 - phi) s W(t, s) + phi T/2 W(t, T)]

t is the share of the run done at the failure, s the shard's net staleness and T the save interval,
as shares of the run. W, bilinear between knots and the same for all strategies, says how much a
sample counts by when it is lost and how old the save is; phi, a strategy's own, which part of its
loss goes by the interval instead of by the time since the last save (rows that a sub-save did not
choose).

    loss = amplitude(seed) x ratio(strategy) x weighted PLS + intercept(seed) + what is left

W is positive by construction (softplus of a Gaussian process whose mean is 1), so that no loss of
samples ever counts for nothing; where the trials do not tell, it stays at 1. How far it may leave
1 is chosen by the evidence (MacKay 1992). Strategies that meet one scene share what the model does
not explain of it (which rows the failed servers hold): residuals of a scene are correlated, and
nine strategies in one scene are not nine failures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import optimize, stats

from cprsim.errors import ParameterError
from cprsim.measuring.observed import Observed, StaleShards
from cprsim.records import Floats, Ints
from cprsim.staleness import WHOLE, Metric

AT = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])  # knots of W over progress
STALENESS = np.array([0.0, 0.1, 0.25, 0.5, 1.0])  # and over staleness
REFERENCE = 1  # of STALENESS: the mean of W over progress is 1 there
N_WEIGHTS = len(AT) * len(STALENESS)
REACH = 4.0  # over which W changes, where the whole run and the oldest save both measure 1
LATE = 0.1  # share of the run that remains, below which W changes no faster
SPREADS = (0.25, 0.5, 1.0, 2.0)  # standard deviations of W around 1 that are tried
SHARPNESS = 5.0  # of the softplus that keeps W positive: it bends below 1 / SHARPNESS
AMPLITUDE_SD = 0.3  # of the logarithm: how far the seeds' worlds differ beforehand
RATIO_SD = 1.5  # of the logarithm of a strategy's loss over partial recovery's
PHI_CENTRE, PHI_SD = -1.4, 1.5  # of the logit of phi: 0.2, and anything from 0.01 to 0.8
N_PASSES = 4  # of reweighting: residuals grow with what is lost
TINY = 1e-7  # of a loss: nothing finer shows in an AUC of tens of thousands of clicks
MEAN_LOG = 0.635  # mean of -log |z|, z standard normal: (Euler's constant + log 2) / 2
MODEL_ERROR = 0.3  # by which a typical loss misses the model: which rows a server holds matters
MOST_CORRELATED = 0.95
TOLERANCE = 1e-3  # of the gradient of half the sum of squares
_ONE = float(np.log(np.expm1(SHARPNESS)) / SHARPNESS)  # softplus of it is 1


@dataclass(frozen=True, slots=True)
class Shape:
    """W and phi of one metric."""

    weight: Floats  # (m, n) at AT x STALENESS
    interval_share: dict[str, float]  # phi by strategy

    def weighted_pls(self, shards: StaleShards, strategy: str, n_trials: int) -> Floats:
        """(n_trials,) of trials that all have this strategy."""
        since, whole = features(shards, n_trials)
        phi = self.interval_share[strategy]
        weighted: Floats = ((1 - phi) * since + phi * whole) @ self.weight.ravel()
        return weighted


def hats(x: Floats, knots: Floats) -> Floats:
    """(n, n_knots) weights of linear interpolation between knots, level beyond the ends."""
    return np.stack([np.interp(x, knots, unit) for unit in np.eye(len(knots))], axis=1)


def features(shards: StaleShards, n_trials: int) -> tuple[Floats, Floats]:
    """(n_trials, n_weights) factors of W's knots: by time since the save, and by the interval."""
    return (
        _feature(shards, shards.staleness, shards.staleness, n_trials),
        _feature(shards, shards.interval, shards.interval / 2, n_trials),
    )


def _feature(shards: StaleShards, old: Floats, lost: Floats, n_trials: int) -> Floats:
    basis = hats(shards.at, AT)[:, :, None] * hats(old, STALENESS)[:, None, :]
    rows = basis.reshape(len(old), -1) * (shards.share * lost)[:, None]
    summed = np.zeros((n_trials, rows.shape[1]))
    np.add.at(summed, shards.trial, rows)
    return summed


def normalised(weight: Floats) -> Floats:
    """W (n_weights,) as a grid with mean 1 over progress at the reference staleness."""
    grid = weight.reshape(len(AT), len(STALENESS))
    scaled: Floats = grid / float(np.trapezoid(grid[:, REFERENCE], AT))
    return scaled


@dataclass(frozen=True, slots=True)
class Noise:
    """Random deviation of a run from what it should lose: smaller, the later it left its twin.

    Two runs that differ a little drift apart as training goes on; the standard deviation is taken
    to fall exponentially with the share of the run done at the failure.
    """

    log_at_start: float
    per_progress: float

    @classmethod
    def of(cls, residual: Floats, at: Floats) -> Noise:
        """From residuals (n,) of failures at some shares of the run (Harvey 1976)."""
        log_size = np.log(np.abs(residual) + TINY) + MEAN_LOG
        line = stats.linregress(at, log_size)
        return cls(float(line.intercept), float(line.slope))

    def at(self, at: Floats) -> Floats:
        """(n,) standard deviations."""
        deviation: Floats = np.exp(self.log_at_start + self.per_progress * at)
        return deviation


@dataclass(frozen=True, slots=True)
class Errors:
    """By how much each trial may miss the model, and how alike those of one scene do."""

    scale: Floats  # (n,) standard deviations
    correlation: float  # of two trials of one scene
    noise: Noise

    def of(self, some: Floats) -> Errors:
        """Those of some of the trials, a mask (n,)."""
        return replace(self, scale=self.scale[some.astype(bool)])


@dataclass(frozen=True, eq=False)
class Singles:
    """The single failures of all seeds; arrays of a row per trial, those of a scene together."""

    strategies: tuple[str, ...]
    loss: Floats  # (n,)
    seed: Ints  # (n,)
    scene: Ints  # (n,) trials of one seed that differ in nothing but their strategy
    strategy: Ints  # (n,) position in `strategies`
    at: Floats  # (n,) share of the run done at the failure
    since: Floats  # (n, n_weights) factors of W's knots, by the time since the save
    whole: Floats  # (n, n_weights) by the interval

    @classmethod
    def of(cls, seen: Observed, metric: Metric) -> Singles:
        """Raises ParameterError where plain partial recovery is not among the strategies."""
        if WHOLE not in seen.strategies:
            raise ParameterError("plain partial recovery has to be among the strategies")
        scenes: dict[object, int] = {}
        numbers = np.array(
            [
                scenes.setdefault((seed, one.failures, one.saving.interval_fraction), len(scenes))
                for seed, one in zip(seen.seed.tolist(), seen.trials, strict=True)
            ]
        )
        single = np.flatnonzero(~seen.held_back)
        single = single[np.argsort(numbers[single], kind="stable")]
        _, scene = np.unique(numbers[single], return_inverse=True)
        since, whole = features(seen.shards, len(seen.trials))
        trials = [seen.trials[i] for i in single]
        return cls(
            strategies=seen.strategies,
            loss=seen.loss[metric][single],
            seed=seen.seed[single],
            scene=scene,
            strategy=np.array([seen.strategies.index(one.saving.strategy) for one in trials]),
            at=np.array([one.failures[0].at_fraction for one in trials]),
            since=since[single],
            whole=whole[single],
        )

    @property
    def n_seeds(self) -> int:
        return int(self.seed.max()) + 1

    def mixed(self, phi: Floats) -> Floats:
        """(n, n_weights) factors of W's knots, phi (n_strategies,) given."""
        share = phi[self.strategy, None]
        return np.asarray((1 - share) * self.since + share * self.whole)

    def whitened(self, rows: Floats, correlation: float) -> Floats:
        """Rows (n, ...) so combined within each scene that equally correlated ones become free."""
        size = np.bincount(self.scene)
        flat = rows.reshape(len(rows), -1)
        first = np.concatenate([[0], np.cumsum(size)[:-1]])
        mean = (np.add.reduceat(flat, first) / size[:, None])[self.scene]
        shrunk = 1.0 / np.sqrt(1.0 + (size[self.scene] - 1) * correlation)
        apart = (flat - mean) / np.sqrt(1.0 - correlation)
        return np.asarray((apart + mean * shrunk[:, None]).reshape(rows.shape))

    def correlation(self, standardised: Floats) -> float:
        """Mean correlation of two trials of one scene, from residuals (n,) of unit size."""
        size = np.bincount(self.scene)
        total, squares = np.zeros(len(size)), np.zeros(len(size))
        np.add.at(total, self.scene, standardised)
        np.add.at(squares, self.scene, standardised**2)
        n_pairs = int((size * (size - 1)).sum())
        if n_pairs == 0:
            return 0.0
        found = float((total**2 - squares).sum()) / n_pairs / float(np.mean(standardised**2))
        return min(max(found, 0.0), MOST_CORRELATED)


@dataclass(frozen=True, slots=True)
class Estimated:
    """A shape with the errors of the trials that it was estimated by."""

    shape: Shape
    errors: Errors
    spread: float  # of W around 1
    parameters: Floats


def estimate(singles: Singles) -> Estimated:
    """W and phi, the size of the errors and the spread of W, all from the trials."""
    model = _Model(singles, SPREADS[1])
    typical = float(np.mean(np.abs(singles.loss)))
    flat = Noise(float(np.log(np.std(singles.loss) + TINY)), 0.0)
    errors = Errors(flat.at(singles.at), 0.0, flat)
    parameters = model.start()
    for _ in range(N_PASSES):
        parameters, _ = model.solve(parameters, errors)
        errors = _errors(singles, *model.predicted(parameters), typical)
    tried = []
    for spread in SPREADS:
        found, evidence = _Model(singles, spread).solve(parameters, errors)
        tried.append((evidence, spread, found))
    _, spread, parameters = max(tried, key=lambda one: one[0])
    return Estimated(model.shape(parameters), errors, spread, parameters)


def estimate_again(singles: Singles, others: Singles, known: Estimated, seed: int) -> Shape:
    """The shape without one of the seeds, the errors and the spread as known from all of them.

    Parameters
    ----------
    singles, others : of all seeds, and of all but `seed`
    """
    model = _Model(others, known.spread)
    per_seed = known.parameters[-2 * singles.n_seeds :].reshape(2, -1)
    shared = known.parameters[: -2 * singles.n_seeds]
    start = np.concatenate([shared, np.delete(per_seed, seed, axis=1).ravel()])
    found, _ = model.solve(start, known.errors.of(singles.seed != seed))
    return model.shape(found)


def _errors(singles: Singles, predicted: Floats, own: Floats, typical: float) -> Errors:
    """From what the model misses: noise by time, and a share of the loss (a sum over rows)."""
    residual = singles.loss - predicted
    noise = Noise.of(residual, singles.at)
    scale = np.hypot(noise.at(singles.at), MODEL_ERROR * np.sqrt(np.abs(own) * typical))
    # the noise was estimated with the share in it: late trials, with little noise, would weigh less
    course = Noise.of(residual / scale, singles.at)
    scale *= course.at(singles.at)
    standardised = residual / scale
    right = float(np.sqrt(np.mean(standardised**2)))
    return Errors(scale * max(right, TINY), singles.correlation(standardised), noise)


class _Model:
    """Penalised least squares over log, logit and softplus scales: nothing needs a bound."""

    def __init__(self, singles: Singles, spread: float) -> None:
        self.of, self.spread = singles, spread
        plain = singles.strategies.index(WHOLE)
        self.others = np.array([i for i in range(len(singles.strategies)) if i != plain], int)
        lost = singles.since.sum(axis=1)
        slope = float(lost @ singles.loss) / float(lost @ lost)
        self.size = max(slope, 0.1 * float(np.std(singles.loss) / np.std(lost)))
        n, n_seeds = len(self.others), singles.n_seeds
        lengths = (
            N_WEIGHTS,
            1,
            n,
            n,
            n_seeds,
            n_seeds,
        )  # W, level, ratio, phi, amplitude, intercept
        self.ends = np.cumsum(lengths)
        sd = np.repeat([1.0, RATIO_SD, PHI_SD, AMPLITUDE_SD], [1, n, n, n_seeds])
        self.centre = np.repeat([0.0, 0.0, PHI_CENTRE, 0.0], [1, n, n, n_seeds])
        self.prior = np.zeros((self.ends[4], self.ends[5]))
        self.prior[:N_WEIGHTS, :N_WEIGHTS] = _roughness() / spread
        rest = np.arange(N_WEIGHTS, self.ends[4])
        self.prior[rest, rest] = 1.0 / sd
        self.prior[N_WEIGHTS, N_WEIGHTS] = 0.0  # the level is free

    def start(self) -> Floats:
        """All samples count alike."""
        parameters = np.zeros(self.ends[5])
        parameters[N_WEIGHTS : self.ends[4]] = self.centre
        return parameters

    def _parts(self, parameters: Floats) -> tuple[Floats, ...]:
        """Weights, ratios and phi of all strategies, amplitudes and intercepts of all seeds."""
        v, level, ratio, phi, amplitude, intercept = np.split(parameters, self.ends[:-1])
        n = len(self.of.strategies)
        ratios, phis = np.ones(n), np.zeros(n)  # whole saves leave no older row
        ratios[self.others] = np.exp(ratio)
        phis[self.others] = 1.0 / (1.0 + np.exp(-phi))
        return _positive(v) * np.exp(level), ratios, phis, np.exp(amplitude), intercept

    def predicted(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Losses (n,) with the seeds' intercepts, and without."""
        weight, ratio, phi, amplitude, intercept = self._parts(parameters)
        factor = self.size * amplitude[self.of.seed] * ratio[self.of.strategy]
        own = factor * (self.of.mixed(phi) @ weight)
        return own + self.size * intercept[self.of.seed], own

    def shape(self, parameters: Floats) -> Shape:
        weight, _, phi, _, _ = self._parts(parameters)
        return Shape(normalised(weight), dict(zip(self.of.strategies, phi.tolist(), strict=True)))

    def solve(self, start: Floats, errors: Errors) -> tuple[Floats, float]:
        """The most probable parameters, and the logarithm of the evidence up to a constant."""
        known: dict[bytes, tuple[Floats, Floats]] = {}

        def at(parameters: Floats) -> tuple[Floats, Floats]:
            key = parameters.tobytes()
            if key not in known:
                known.clear()
                known[key] = self._residual(parameters, errors)
            return known[key]

        def cost(parameters: Floats) -> tuple[float, Floats]:
            residual, jacobian = at(parameters)
            return 0.5 * float(residual @ residual), jacobian.T @ residual

        def curvature(parameters: Floats) -> Floats:
            _, jacobian = at(parameters)
            return np.asarray(jacobian.T @ jacobian)  # Gauss and Newton's

        found = optimize.minimize(
            cost, start, jac=True, hess=curvature, method="trust-exact",
            options={"gtol": TOLERANCE, "maxiter": 100},
        )  # fmt: skip
        _, log_curvature = np.linalg.slogdet(curvature(found.x))
        evidence = (
            -found.fun
            - 0.5 * log_curvature
            + np.linalg.slogdet(self.prior[:N_WEIGHTS, :N_WEIGHTS])[1]
        )
        return found.x, float(evidence)

    def _residual(self, parameters: Floats, errors: Errors) -> tuple[Floats, Floats]:
        """Standardised residuals and the prior's, and their derivatives."""
        weight, ratio, phi, amplitude, _ = self._parts(parameters)
        of, n = self.of, len(self.of.strategies)
        predicted, _ = self.predicted(parameters)
        mixed = of.mixed(phi)
        factor = (amplitude[of.seed] * ratio[of.strategy])[:, None]
        own = factor * (mixed @ weight)[:, None]
        moved = factor * ((of.whole - of.since) @ weight)[:, None]
        of_strategy = np.eye(n)[of.strategy]
        of_seed = np.eye(of.n_seeds)[of.seed]
        level = np.exp(parameters[N_WEIGHTS])
        columns = [
            factor * mixed * (level * _steepness(parameters[:N_WEIGHTS])),
            own,
            (of_strategy * own)[:, self.others],
            (of_strategy * moved * (phi * (1 - phi)))[:, self.others],
            of_seed * own,
            of_seed,
        ]
        stacked = np.concatenate([*columns, (predicted - of.loss)[:, None] / self.size], axis=1)
        rows = of.whitened(stacked * (self.size / errors.scale)[:, None], errors.correlation)
        shift = np.zeros(self.ends[5])
        shift[N_WEIGHTS : self.ends[4]] = self.centre
        prior = self.prior @ (parameters - shift)
        return np.concatenate([rows[:, -1], prior]), np.vstack([rows[:, :-1], self.prior])


def _positive(v: Floats) -> Floats:
    """W from what has mean 0: 1 at 0, nearly 1 + v where that is clearly positive, above 0."""
    softened: Floats = np.logaddexp(0.0, SHARPNESS * (v + _ONE)) / SHARPNESS
    return softened


def _steepness(v: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-SHARPNESS * (v + _ONE))))


@cache
def _roughness() -> Floats:
    """(n_weights, n_weights) whose product with W's deviations has unit variance, beforehand.

    The inverse Cholesky factor of a Matern covariance of order 5/2 (Rasmussen and Williams 2006,
    eq. 4.17) over the logarithm of what remains of the run and the square root of staleness: what
    a loss costs depends on how much training is left to make up for it.
    """
    remains = np.log((1.0 + LATE) / (1.0 - AT + LATE)) / np.log((1.0 + LATE) / LATE)
    at, old = (x.ravel() for x in np.meshgrid(remains, np.sqrt(STALENESS), indexing="ij"))
    apart = np.hypot(at[:, None] - at, old[:, None] - old) * np.sqrt(5.0) / REACH
    covariance = (1.0 + apart + apart**2 / 3.0) * np.exp(-apart)
    return np.linalg.inv(np.linalg.cholesky(covariance + 1e-4 * np.eye(N_WEIGHTS)))
