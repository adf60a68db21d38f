"""Whether a planner of the next runs makes the selected interval surer than a fixed design does.

    python benchmarks/planner.py [--folder results/planner] [--repetitions 20]

The world is a pool of runs of the built-in model on generated clicks: in each seed 20 scenes (a
failure at some time, with saves at some interval) under each of three strategies. In a repetition
every way of placing runs draws seeds in the same order, at equal CPU time, towards a curve
(`cprsim.measuring.fit`), which selects strategy and interval for a job with a limit of its own. The
doubt of the interval is half of what lies between the overheads of the intervals that the ends of
the loss's 95 % interval allow, as a share of the true overhead. Truth is the curve of the pool.

The planner: three seeds uniformly; then the strategy that would be selected, and plain partial
recovery. The posterior of the response (a Gaussian process: `cprsim.measuring.shape`) says by how
much a run, whatever its result, would reduce the variance of the loss at the selected interval; the
greatest reduction per CPU second is run next, and a seed is left after 12 runs, or when that falls
below the seed's mean, its twin's cost included (Charnov 1976, the marginal value).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy import stats

from cprsim.kernel.blas import one_thread
from cprsim.kernel.trials import Trial
from cprsim.measuring.curve import response_of
from cprsim.measuring.design import Design
from cprsim.measuring.fit import Fitted, fit
from cprsim.measuring.observed import StaleShards, observed
from cprsim.measuring.runs import SeedResult, SeedRuns, journal_of, read_seed, run_seed
from cprsim.measuring.shape import (
    AMPLITUDE_SD,
    MODEL_ERROR,
    Errors,
    Singles,
    _Model,
    estimate,
    features,
)
from cprsim.records import Floats, ShardLoss
from cprsim.results.journal import read_journal
from cprsim.scenario import load_scenario
from cprsim.staleness import WHOLE, Metric
from cprsim.whole_file import write_whole
from cprsim.workers import Workers, run_each

ROOT = Path(__file__).parent.parent
SCENARIO = ROOT / "scenarios" / "criteo-kaggle.yaml"
OVERRIDES = ("samples=40000", "most_rows=500", "batch=64", "rate=0.5")  # of the kernel
N_SERVERS = 8
STRATEGIES = ("partial", "mfu", "ssu")
N_SCENES = 20
POOL = Design(strategies=STRATEGIES, n_scenes=N_SCENES, n_more=0, histories=())
FIRST_SEED = 321  # by seeds 301 to 308 the planner was made
METRIC = Metric.AUC
BUDGET = 66.0  # whole runs: 8 seeds of 12 trials
PILOT, PILOT_TRIALS, LEAST = 3, 12, 2  # seeds; trials of each; of a strategy in every seed
SAVE, N_FAILURES = 0.002, 3  # a save's stall, as a share of the job; failures of one server
TRUE_INTERVALS = (0.06, 0.3)  # between which the limits put the interval of partial recovery
EVERY = np.geomspace(0.02, 0.8, 25)  # intervals that are looked at, as shares of the job
N_TIMES = 160

Trials = Sequence[Trial]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--folder", type=Path, default=ROOT / "results" / "planner")
    arguments.add_argument("--first", type=int, default=FIRST_SEED)
    arguments.add_argument("--seeds", type=int, default=25)
    arguments.add_argument("--repetitions", type=int, default=20)
    arguments.add_argument("--no-runs", action="store_true", help="judge what was run, run nothing")
    asked = arguments.parse_args()
    folder, console = asked.folder.absolute() / "runs", Console(stderr=True)
    seeds = range(asked.first, asked.first + asked.seeds)
    if not asked.no_runs:
        build(folder, seeds, console)
    world = World.read(folder, seeds)
    console.print(f"{len(world.seeds)} seeds are complete; an evaluation: {world.evaluation:.2f}")
    with one_thread():
        rows = study(world, asked.repetitions, asked.folder / "summary.json", console)
    print(by_repetition(rows))
    print(table(rows))


def build(folder: Path, seeds: range, console: Console) -> None:
    loaded = load_scenario(SCENARIO, [f"kernel.{one}" for one in OVERRIDES])
    tasks = [
        SeedRuns(loaded, seed, tuple(POOL.scenes(seed, N_SERVERS)), folder, count_bytes=False)
        for seed in seeds
    ]
    for number, n_run in run_each(run_seed, tasks, Workers(1), "seed {}".format):
        console.print(f"seed {tasks[number].seed}: {n_run} runs")


# --------------------------------------------------------------------------- the world


@dataclass(frozen=True, slots=True)
class World:
    """Runs that are drawn from, and what they cost."""

    results: dict[int, SeedResult]
    evaluation: float  # CPU time of an evaluation over that of a run

    @classmethod
    def read(cls, folder: Path, seeds: range) -> World:
        found = {seed: read_seed(folder, seed) for seed in seeds}
        rows = [
            (1 - one["failures"][0][0], one["cpu_s"])
            for seed in seeds
            for one in read_journal(journal_of(folder, seed))
            if "failures" in one
        ]
        line = stats.linregress(*np.array(rows).T)
        complete = {seed: one for seed, one in found.items() if one.twin is not None}
        return cls(complete, max(0.0, float(line.intercept / line.slope)))

    @property
    def seeds(self) -> list[int]:
        return list(self.results)

    def trials(self, seed: int) -> list[Trial]:
        """Those of the pool: scene after scene, in the order of time, each strategy."""
        return POOL.scenes(seed, N_SERVERS)

    def cost(self, trial: Trial) -> float:
        """CPU time over that of a whole run: a trial leaves its twin where it fails."""
        return 1.0 - trial.failures[0].at_fraction + self.evaluation

    def price(self, trials: Trials) -> float:
        """Of a seed, twin included."""
        return 1.0 + self.evaluation + sum(map(self.cost, trials))

    def drawn(self, chosen: dict[int, Trials]) -> list[SeedResult]:
        """What was run, plain partial recovery first."""
        return [
            replace(
                self.results[seed],
                quality={
                    one: self.results[seed].quality[one]
                    for one in sorted(trials, key=lambda t: STRATEGIES.index(t.saving.strategy))
                },
            )
            for seed, trials in chosen.items()
        ]


# --------------------------------------------------------------------------- the decision


@dataclass(frozen=True, slots=True)
class Decision:
    """What a curve selects; overheads as shares of the job."""

    strategy: str
    low: float  # overhead of the interval that the loss's lower end allows
    high: float  # of the selected one: by the upper end
    middle: float  # by the estimate

    @property
    def doubt(self) -> float:
        return (self.high - self.low) / 2


def decide(losses: dict[str, tuple[Floats, Floats]], degrees: int, limit: float) -> Decision:
    """The cheapest strategy by its upper bound; losses and errors (n,) at EVERY by strategy."""
    reach = float(stats.t.ppf(0.975, degrees))
    found = [
        Decision(key, *(overhead(loss + sign * reach * error, limit) for sign in (-1, 1, 0)))
        for key, (loss, error) in losses.items()
    ]
    return min(found, key=lambda one: one.high)


def overhead(loss: Floats, limit: float) -> float:
    """Of the longest interval whose losses (n,) at EVERY keep within the limit."""
    rising = np.maximum.accumulate(np.maximum(loss, 0)) + 1e-12 * np.arange(len(loss))
    return SAVE / float(np.exp(np.interp(limit, rising, np.log(EVERY))))


def losses_of(fitted: Fitted) -> dict[str, tuple[Floats, Floats]]:
    """Mean loss of a job and its error at EVERY, by strategy."""
    return {key: _losses(fitted, key) for key in fitted.slopes.strategies}


def _losses(fitted: Fitted, strategy: str) -> tuple[Floats, Floats]:
    response = response_of(fitted, strategy, 0.5)
    number, share = np.arange(N_TIMES), np.full(N_TIMES, 1 / N_SERVERS)
    found = []
    for every in EVERY:
        at, stale = failures_at(every)
        losses = ShardLoss(number, at, np.zeros(N_TIMES, np.int64), stale, stale, share)
        said = response.predict_losses(losses, number, 1.0, float(every))
        found.append((said.loss.mean(), said.error_of_mean()))
    loss, error = N_FAILURES * np.array(found).T
    return loss, error


def failures_at(every: float) -> tuple[Floats, Floats]:
    """Times of failures, evenly over the job, and how long ago the last save was."""
    at = (np.arange(N_TIMES) + 0.5) / N_TIMES
    return at, at % every


# --------------------------------------------------------------------------- fixed placements


def evenly(n: int, k: int, rng: np.random.Generator) -> list[int]:
    return ((np.arange(k) + rng.random()) * n / k).astype(int).tolist()


def paired(trials: Trials, n: int, rng: np.random.Generator) -> list[Trial]:
    """Today's: some scenes under every strategy, as many runs more of plain partial recovery."""
    width = len(STRATEGIES)
    shared = evenly(N_SCENES, n // (2 * width), rng)
    others = [i for i in range(N_SCENES) if i not in shared]
    more = [others[i] for i in evenly(len(others), n - len(shared) * width, rng)]
    return [trials[width * i + j] for i in shared for j in range(width)] + [
        trials[width * i + STRATEGIES.index(WHOLE)] for i in more
    ]


def uniform(trials: Trials, n: int, rng: np.random.Generator) -> list[Trial]:
    """Every strategy at as many times, evenly spaced."""
    width = len(STRATEGIES)
    return [trials[width * i + j] for j in range(width) for i in evenly(N_SCENES, n // width, rng)]


def at_random(trials: Trials, n: int, rng: np.random.Generator) -> list[Trial]:
    """Any, but for so many of each strategy as can be fitted."""
    while True:
        chosen = [trials[i] for i in rng.choice(len(trials), n, replace=False)]
        if all(sum(t.saving.strategy == key for t in chosen) >= LEAST for key in STRATEGIES):
            return chosen


Place = Callable[[Trials, int, np.random.Generator], list[Trial]]
FIXED: dict[str, tuple[Place, int]] = {
    "paired, 24 a seed": (paired, 24),
    "paired, 12 a seed": (paired, 12),
    "uniform, 24 a seed": (uniform, 24),
    "uniform, 12 a seed": (uniform, 12),
    "uniform, 6 a seed": (uniform, 6),
    "random, 12 a seed": (at_random, 12),
}
PLANNED: dict[str, int | None] = {"planner": None, "planner, 12 a seed": 12}
UNIFORM = "uniform, 12 a seed"


def fixed(
    world: World, seeds: Sequence[int], place: Place, n: int, rng: np.random.Generator
) -> list[SeedResult]:
    chosen: dict[int, Trials] = {}
    spent = 0.0
    for seed in seeds:
        trials = place(world.trials(seed), n, rng)
        spent += world.price(trials)
        if spent > BUDGET:
            break
        chosen[seed] = trials
    return world.drawn(chosen)


# --------------------------------------------------------------------------- the planner


def planned(
    world: World, seeds: Sequence[int], limit: float, n: int | None, rng: np.random.Generator
) -> list[SeedResult]:
    """With n trials of each seed after the pilot; None: as many as pay."""
    chosen: dict[int, Trials] = {}
    spent = 0.0
    plan = None
    for number, seed in enumerate(seeds):
        if number >= PILOT and (plan is None or number % 2):
            plan = Plan.after(world.drawn(_of(chosen, plan)), limit)
        trials = world.trials(seed)
        trials = uniform(trials, PILOT_TRIALS, rng) if plan is None else plan.next(world, trials, n)
        spent += world.price(trials)
        if spent > BUDGET:
            break
        chosen[seed] = trials
    return world.drawn(_of(chosen, plan))


def _of(chosen: dict[int, Trials], plan: Plan | None) -> dict[int, Trials]:
    """Without the strategies that the plan gave up."""
    if plan is None:
        return chosen
    return {
        seed: [one for one in trials if one.saving.strategy in plan.strategies]
        for seed, trials in chosen.items()
    }


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of the response, and which loss matters."""

    strategies: tuple[str, ...]
    model: _Model
    shared: Floats  # parameters that all seeds have in common
    covariance: Floats  # of those, amplitude and intercept of a seed to come
    matters: Floats  # derivative of the loss at the selected interval by them
    noise: Callable[[Floats, Floats], Floats]  # of a trial, by time and own loss

    @classmethod
    def after(cls, results: list[SeedResult], limit: float) -> Plan:
        singles = Singles.of(observed(results, N_SERVERS), METRIC)
        known = estimate(singles)
        model = _Model(singles, known.spread)
        n_own = 2 * singles.n_seeds
        _, jacobian = model._residual(known.parameters, known.errors)
        _, own = model.predicted(known.parameters)
        precision = jacobian.T @ jacobian
        rest = precision[:-n_own, -n_own:]
        precision = precision[:-n_own, :-n_own] - rest @ np.linalg.solve(
            precision[-n_own:, -n_own:], rest.T
        )
        intercepts = known.parameters[-singles.n_seeds :]
        covariance = np.zeros((len(precision) + 2,) * 2)
        covariance[:-2, :-2] = np.linalg.inv(precision)
        covariance[-2, -2], covariance[-1, -1] = AMPLITUDE_SD**2, intercepts.var(ddof=1)
        typical = float(np.mean(np.abs(singles.loss)))

        def noise(at: Floats, own: Floats) -> Floats:
            share = MODEL_ERROR * np.sqrt(np.abs(own) * typical)
            return np.hypot(known.errors.noise.at(at), share)

        off = float(np.mean(known.errors.scale / noise(singles.at, own)))
        shared = known.parameters[:-n_own]
        plan = cls(
            singles.strategies, model, shared, covariance, shared,
            lambda at, own: off * noise(at, own),
        )  # fmt: skip
        return plan._deciding(limit)

    def _deciding(self, limit: float) -> Plan:
        """The strategy and interval that the estimate selects, and what their loss rests on."""
        n = len(EVERY)
        own, rows = self._rows(np.tile(_job_features(), (1, len(self.strategies), 1)),
                               np.repeat(np.arange(len(self.strategies)), n))  # fmt: skip
        losses = N_FAILURES * own.reshape(-1, n)
        costs = [overhead(one, limit) for one in losses]
        best = int(np.argmin(costs))
        place = best * n + int(np.abs(np.log(EVERY * costs[best] / SAVE)).argmin())
        matters = rows[place].copy()
        matters[-2:] = 0.0  # of the mean over seeds
        kept = tuple(dict.fromkeys((WHOLE, self.strategies[best])))
        return (
            replace(self, matters=matters) if kept == self.strategies else self._of(kept, matters)
        )

    def _of(self, kept: tuple[str, ...], matters: Floats) -> Plan:
        """With fewer strategies: the parameters of the others, ratio and phi, are left out."""
        plain = self.strategies.index(WHOLE)
        others = [key for i, key in enumerate(self.strategies) if i != plain]
        n_first = len(self.shared) - 2 * len(others)
        there = np.array([key in kept for key in others], bool)
        mask = np.concatenate([np.ones(n_first, bool), there, there, [True, True]])
        return replace(
            self,
            strategies=kept,
            shared=self.shared[mask[:-2]],
            covariance=self.covariance[np.ix_(mask, mask)],
            matters=matters[mask],
        )

    def _rows(self, both: Floats, strategy: Floats, at: Floats | None = None):
        """Losses and their derivatives of trials in a seed to come, by features (2, n, knots)."""
        n = len(strategy)
        singles = Singles(
            self.strategies, np.arange(n) * 1e-3, np.zeros(n, np.int64), np.arange(n), strategy,
            np.full(n, 0.5) if at is None else at, *both,
        )  # fmt: skip
        model = _Model(singles, self.model.spread)
        model.size = self.model.size
        parameters = np.append(self.shared, [0.0, 0.0])
        _, own = model.predicted(parameters)
        plain = Errors(np.ones(n), 0.0, None)  # type: ignore[arg-type]
        return own, model._residual(parameters, plain)[1][:n]

    def next(self, world: World, trials: Trials, n: int | None) -> list[Trial]:
        """The runs of one more seed: n, or as many as pay."""
        some = [one for one in trials if one.saving.strategy in self.strategies]
        strategy = np.array([self.strategies.index(one.saving.strategy) for one in some])
        shards = StaleShards.of(some, N_SERVERS)
        at = np.array([one.failures[0].at_fraction for one in some])
        own, rows = self._rows(np.array(features(shards, len(some))), strategy, at)
        rows = rows / self.noise(at, own)[:, None]
        cost = np.array([world.cost(one) for one in some])
        covariance, chosen = self.covariance, []
        gained, price = 0.0, world.price([])
        while len(chosen) < (n or len(some)):
            known = rows @ covariance
            gain = (known @ self.matters) ** 2 / (1 + np.einsum("ij,ij->i", known, rows))
            value = gain / cost
            value[chosen] = -1.0
            n_of = np.bincount(strategy[chosen], minlength=len(self.strategies))
            few = n_of[strategy] < LEAST
            if few.any() and value[few].max() >= 0:
                value[~few] = -1.0
            best = int(value.argmax())
            if n is None and not few.any() and value[best] <= gained / price:
                break
            chosen.append(best)
            gained, price = gained + gain[best], price + cost[best]
            covariance = covariance - np.outer(known[best], known[best]) / (
                1 + known[best] @ rows[best]
            )
        return [some[i] for i in chosen]


def _job_features() -> Floats:
    """(2, n, n_weights) mean factors of W's knots of a failure of a job, at EVERY."""
    found = []
    for every in EVERY:
        at, stale = failures_at(every)
        whole = np.minimum(every, at)
        share = np.full(N_TIMES, 1 / N_SERVERS)
        shards = StaleShards(np.zeros(N_TIMES, np.int64), at, stale, whole, share)
        found.append(np.array(features(shards, 1))[:, 0] / N_TIMES)
    return np.stack(found, axis=1)


# --------------------------------------------------------------------------- the comparison


def study(world: World, n_repetitions: int, path: Path, console: Console) -> list[dict[str, Any]]:
    """An entry per repetition and placement; those that the file holds are not made again."""
    truth = losses_of(fit(observed(world.drawn(_all(world)), N_SERVERS), METRIC))
    rng = np.random.default_rng(20)
    rows: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    done = {(one["repetition"], one["placement"]) for one in rows}
    for repetition in range(n_repetitions):
        order = rng.permutation(world.seeds).tolist()
        every = np.exp(rng.uniform(*np.log(TRUE_INTERVALS)))
        limit = float(np.interp(np.log(every), np.log(EVERY), truth[WHOLE][0]))
        for name in (one for one in (*FIXED, *PLANNED) if (repetition, one) not in done):
            own = np.random.default_rng(repetition)
            results = (
                planned(world, order, limit, PLANNED[name], own)
                if name in PLANNED
                else fixed(world, order, *FIXED[name], own)
            )
            found = _entry(results, truth, limit)
            rows.append({"repetition": repetition, "placement": name, "limit": limit, **found})
        write_whole(path, json.dumps(rows) + "\n")
        console.print(f"{repetition + 1} of {n_repetitions}")
    return rows


def _all(world: World) -> dict[int, Trials]:
    return {seed: world.trials(seed) for seed in world.seeds}


def _entry(results: list[SeedResult], truth: dict, limit: float) -> dict[str, object]:
    fitted = fit(observed(results, N_SERVERS), METRIC)
    found = decide(losses_of(fitted), len(results) - 1, limit)
    true = overhead(truth[found.strategy][0], limit)
    return {
        "strategy": found.strategy,
        "seeds": len(results),
        "runs": sum(len(one.quality) + 1 for one in results),
        "doubt": found.doubt / true,
        "off": abs(found.middle - true) / true,
        "covered": bool(found.low <= true <= found.high),
        "selected": found.high / true,
    }


def by_repetition(rows: list[dict]) -> str:
    """All doubts, a line per placement."""
    return "\n".join(
        f"{name:20} {' '.join(f'{one:.2f}' for one in _doubts(rows, name))}"
        for name in (*FIXED, *PLANNED)
    )


def table(rows: list[dict]) -> str:
    """Means over the repetitions, and the ratio of doubts to that of uniform placement."""
    base = _doubts(rows, UNIFORM)
    lines = [
        "placement            seeds  runs  doubt   off  covered  selected  over uniform (95 %)"
    ]
    for name in (*FIXED, *PLANNED):
        some = [one for one in rows if one["placement"] == name]
        mean = {
            key: float(np.mean([one[key] for one in some]))
            for key in ("seeds", "runs", "doubt", "off", "covered", "selected")
        }
        ratio = np.log(_doubts(rows, name) / base)
        half = float(stats.t.ppf(0.975, len(ratio) - 1)) * ratio.std(ddof=1) / len(ratio) ** 0.5
        middle, low, high = np.exp([ratio.mean(), ratio.mean() - half, ratio.mean() + half])
        lines.append(
            f"{name:20} {mean['seeds']:5.1f} {mean['runs']:5.0f}  {mean['doubt']:5.3f} "
            f"{mean['off']:5.3f}  {mean['covered']:7.2f}  {mean['selected']:8.3f}  "
            f"{middle:.2f} ({low:.2f} to {high:.2f})"
        )
    return "\n".join(lines)


def _doubts(rows: list[dict], name: str) -> Floats:
    return np.array([one["doubt"] for one in rows if one["placement"] == name])


if __name__ == "__main__":
    main()
