"""How often 95 % intervals hold the truth where it is known, and how often warnings come.

    python -m benchmarks.interval_coverage [CASE ...] [--n N] [--journal FILE]

Each case draws data with a seed, and says of each interval whether it holds the truth (beside the
band of 99.9 % for right ones), of each warning whether it came; it goes on where a journal ends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer
from scipy.stats import binom

import cprsim
from cprsim.failures.outages import coalesced, with_lives
from cprsim.files import write_whole
from cprsim.job.records import Activity, EventLog
from cprsim.logs.fit.correlated_fit import fit_correlated
from cprsim.logs.fit.families import WEIBULL, fit
from cprsim.logs.fit.goodness import rank
from cprsim.logs.fit.lifetimes import Lifetimes, gaps, uptimes
from cprsim.logs.fit.report import fit_failures
from cprsim.logs.fit.trend import silences, trend
from cprsim.results.pipeline import replay, simulate
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from tests.fitting.logs import gaps_on_random_nodes, lemons, log_of
from tests.fitting.posterior_check import check_by_simulation
from tests.fitting.test_causes import competing
from tests.fitting.test_circle import simulated
from tests.fitting.test_coalescing import bursts
from tests.fitting.test_lives import fleet
from tests.fitting.test_trend import TRENDS
from tests.fitting.test_trend import WINDOW_H as TREND_WINDOW_H
from tests.history.making import damaged, exported, write_events

BAND, EXACT = 0.999, 3e-7  # as many hours are a millisecond


class Held(NamedTuple):
    """An interval and the truth that it should hold."""

    what: str
    truth: float
    mean: float
    low: float
    high: float


Seen = Held | tuple[str, bool]  # or a warning, and whether it came


def _shape(what: str, times: Lifetimes, truth: float) -> Held:
    return Held(f"{what}: shape", truth, *fit(WEIBULL, times).parameters[0].triple)


def fits(seed: int, _: Path) -> Iterator[Seen]:
    """Weibull up-times: nodes that join and leave, causes that compete, failures that repeat."""
    log, *dates = fleet(seed, n_nodes=100)
    known = uptimes(with_lives(log, *dates))
    yield _shape("nodes join and leave", known, 2.9)
    yield Held("nodes join and leave: mean", 1500.0, *fit(WEIBULL, known).mean.triple)
    yield _shape("nodes join and leave, dates not known", uptimes(log), 2.9)
    log = competing(seed, n_nodes=3)
    yield _shape("causes compete, disk", uptimes(log.choosing("disk")), 3.0)
    yield _shape("causes compete, network", uptimes(log.choosing("network")), 1.0)
    yield _shape("causes compete, disk, all causes as one", uptimes(log), 3.0)
    log = bursts(seed, n=100)
    yield _shape("repeats, coalesced in 9 min", uptimes(coalesced(log, 0.15)), 1.5)
    yield _shape("repeats, as they are", uptimes(log), 1.5)


def warnings(seed: int, _: Path) -> Iterator[Seen]:
    """Logs that ask for a warning, each beside one that does not."""
    rng = np.random.default_rng(seed)
    nightly = np.where(rng.random(200) < 1 / 3, rng.normal(24, 0.1, 200), rng.exponential(24, 200))
    weibull = 10 * rng.weibull(0.7, 200)
    for what, gaps_h in (("Weibull gaps", weibull), ("a third of the gaps are of 24 h", nightly)):
        ranking = rank(gaps(gaps_on_random_nodes(gaps_h, 60, seed)), seed=seed)
        yield f"no family fits: {what}", ranking.none_fits
    poisson, bunched = rng.exponential(1.0, 400), rng.weibull(0.5, 400) / 2
    for what, gaps_h in (("Poisson", poisson), ("gaps of shape 0.5", bunched)):
        at_h = np.cumsum(gaps_h)
        for watched, window_h in ((1.0, 120.0), (0.8, 150.0)):
            log = log_of(at_h[at_h < window_h * watched], window_h, given=True)
            yield f"a silent end: {what}, watched {watched:.0%}", bool(silences(log))
    for factor in (1.0, 3.0, 10.0):
        log = lemons(seed, mean_h=400 / factor, others_h=400.0, shape=0.8)
        differ = fit_failures(log, n_bootstrap=0).asks_for_correlation
        yield f"nodes differ: three of 60 worse by {factor:g}", differ


def trends(seed: int, _: Path) -> Iterator[Seen]:
    """Logs of 60, 120 and 300 failures, with a trend and without one."""
    for n in (60, 120, 300):
        for what, draw in TRENDS.items():
            log = log_of(draw(np.random.default_rng([1, seed]), n), TREND_WINDOW_H)
            yield f"a trend: {what}, {n} failures", trend(log).differs


def circle(seed: int, _: Path) -> Iterator[Seen]:
    """60 nodes with lemons and shocks, simulated, fitted, and simulated again from the fit."""
    fitted = fit_correlated(log := simulated(seed))
    for name, inside in check_by_simulation(log, fitted, n=100, seed=seed).items():
        yield f"{name} lies outside", inside is False


PARTS = ("useful", "lost", "save", "detect", "reschedule", "load")
OTHERS = (
    "{strategy: full, name: often, interval: 20 min}",
    "{strategy: full, name: slower, interval: 3 h}",
    "{strategy: partial, interval: 2 h}",
)
HISTORIES = {
    "as the model assumes": "{kind: job, role: emb_ps, family: exponential, mtbf: 5 h}",
    # the rate falls, nodes fail together, and a lemon fails again and again
    "violating it": "{kind: correlated, mtbf: 120 h, shape: 0.7, start: fresh, "
    "lemons: {share: 15 %, factor: 8}, shocks: {every: 40 h, nodes: 8, sizes: {2: 1, 3: 1}}}",
}


def _experiment(text: str, save: float, load: float, detect: float, again: float) -> Experiment:
    """A scenario with mean costs in minutes."""
    costs = {"save": (save, 30), "load": (load, 4), "detect": (detect, 2), "reschedule": (again, 3)}
    lines = [
        f"  {name}: {{family: gamma, mean: {mean} min, shape: {shape}}}"
        for name, (mean, shape) in costs.items()
    ]
    text = "\n".join(["name: truth", text, "costs:", *lines]) + "\n"
    return assemble(load_scenario(Path("truth.yaml"), text=text))


def _written(
    ran: EventLog, path: Path, rng: np.random.Generator, *, missing: float = 0.1,
    unseen: float = 0.3, **says: Any,
) -> Path:  # fmt: skip
    """The log of a job, thinned and damaged at random."""
    events = list(exported(ran, path.stem, progress_every_h=0.1, **says))
    write_events(path, damaged(events, rng, missing=missing, unseen_deaths=unseen))
    return path


@cache
def _booked() -> Experiment:
    return _experiment(
        "job: {useful: 200 h}\ncluster: {trainers: 4, emb_ps: 4}\n"
        "failures: {kind: job, family: exponential, mtbf: 6 h}\n"
        "recovery: [full]\n"
        "simulation: {seed: 1, replications: 400}",
        4, 6, 3, 8,
    )  # fmt: skip


def ledger(seed: int, folder: Path) -> Iterator[Seen]:
    """Hours of a job, 10 % of whose events are missing, 30 % of the failures without one."""
    rng = np.random.default_rng([5, seed])
    for name, ran in replay(_booked(), seed).items():
        log = _written(ran, folder / "j.jsonl", rng, step_s=2.0, says_step_seconds=False)
        found = cprsim.ledger(log, seed=seed)
        took_h = np.diff(np.minimum(ran.at_h, float(found.frames["jobs"]["wall_h"].iloc[0])))
        hours = found.frames["hours"].set_index("part")
        for part in PARTS:
            truth = float(took_h[ran.activity[:-1] == Activity[part.upper()]].sum())
            if truth > 1 / 60:  # hours; fewer can't be told
                interval = hours.loc[part, ["hours", "hours_low", "hours_high"]]
                yield Held(f"{name}: {part}", truth, *interval)


def backtest(seed: int, folder: Path) -> Iterator[Seen]:
    """What other systems cost on the same failures, from a damaged log of full recovery."""
    for number, (kind, failures) in enumerate(HISTORIES.items()):
        experiment = _experiment(
            "job: {useful: 150 h, step: 6 s}\ncluster: {emb_ps: 8, trainers: 0}\n"
            f"failures: {failures}\nsimulation: {{seed: {seed}, replications: 1}}\nrecovery:\n  - "
            + "\n  - ".join(["{strategy: full, name: ran, interval: 1 h}", *OTHERS]),
            3, 6, 3, 5,
        )  # fmt: skip
        costs = {one.policy.name: one.costs for one in simulate(experiment).strategies}
        rng, ran = np.random.default_rng([7, seed, number]), replay(experiment, 0)["ran"]
        log = _written(ran, folder / "j.jsonl", rng, step_s=6.0, says_step_seconds=False)
        found = cprsim.backtest(log, recovery=OTHERS, nodes=8, seed=seed).frames["systems"]
        for one in found.to_dict("records"):
            of = costs.get(one["system"], costs["ran"])
            truth = float((of.wall_h - of.useful_h)[0])
            interval = (one[f"overhead_h{end}"] for end in ("", "_low", "_high"))
            yield Held(f"{kind}: {one['system']}", truth, *interval)


def calibration(seed: int, folder: Path) -> Iterator[Seen]:
    """The later half of the logs of five jobs predicted from the earlier one, of 150 failures."""
    rng = np.random.default_rng([21, seed])
    mtbf_h, shape = float(rng.uniform(3.0, 10.0)), float(rng.choice([0.7, 1.0, 1.4]))
    every_h, *costs = (
        float(rng.uniform(*ends)) for ends in ((0.5, 3), (0.5, 4), (1, 10), (0.5, 5), (1, 10))
    )

    def jobs(hours: float, n: int, number: int) -> Experiment:
        return _experiment(
            f"job: {{useful: {2 * hours} h, horizon: {hours} h, step: 6 s}}\n"
            "cluster: {emb_ps: 8}\nfailures: {kind: job, role: emb_ps, family: weibull, "
            f"mtbf: {mtbf_h} h, shape: {shape}}}\n"
            f"simulation: {{seed: {number}, replications: {n}}}\n"
            f"recovery: [{{strategy: full, name: ran, interval: {every_h} h}}]",
            *costs,
        )

    truth = jobs(60 * mtbf_h, 5, 2 * seed)
    logs = [
        _written(replay(truth, job)["ran"], folder / f"j{job}.jsonl", rng, missing=0.05,
                 unseen=0.2, step_s=6.0)
        for job in range(5)
    ]  # fmt: skip
    prediction = cprsim.calibrate(*logs, nodes=8, seed=seed).frames["prediction"]
    if len(prediction) == 0:
        return  # too few failures
    predicted, observed = prediction.to_dict("records")
    futures = simulate(jobs(150 * mtbf_h, 2_000, 2 * seed + 1)).strategies[0].costs
    true = float((futures.useful_h / futures.wall_h).mean())
    kind = f"share of useful hours {'above' if true > 0.9 else 'below'} 90 %"
    interval = (predicted[f"ettr{end}"] for end in ("", "_low", "_high"))
    yield Held(f"{kind}: 90 % intervals of what is observed", observed["ettr"], *interval)
    yield f"{kind}: mean within 1 point of the true one", abs(predicted["ettr"] - true) <= 0.01


CASES: dict[str, tuple[Callable[..., Iterator[Seen]], int, float]] = {
    "fits": (fits, 400, 0.95),  # draws, and how often intervals should hold
    "trends": (trends, 400, 0.95),
    "circle": (circle, 100, 0.95),
    "ledger": (ledger, 400, 0.95),
    "backtest": (backtest, 50, 0.95),
    "calibration": (calibration, 100, 0.9),
    "warnings": (warnings, 400, 0.95),
}


def rows_of(draw: Callable[..., Iterator[Seen]], seed: int) -> list[dict[str, Any]]:
    """What one draw says, with widths and errors as shares of the truth."""
    with TemporaryDirectory() as folder:
        return [
            {"what": one.what, "holds": bool(one.low - EXACT <= one.truth <= one.high + EXACT),
             "width": (one.high - one.low) / one.truth, "error": one.mean / one.truth - 1.0}
            if isinstance(one, Held) else {"what": one[0], "came": bool(one[1])}
            for one in draw(seed, Path(folder))
        ]  # fmt: skip


def in_words(what: str, rows: pd.DataFrame, level: float) -> str:
    """How often an interval held the truth, or a warning came."""
    share, n = rows.dropna(axis=1), len(rows)
    if "came" in share:
        return f"  {what}: in {share['came'].mean():.1%} of {n}"
    low, high = (end / n for end in binom.interval(BAND, n, level))
    return (
        f"  {what}: holds in {share['holds'].mean():.1%} of {n} ({low:.1%} to {high:.1%} for "
        f"{level:.0%}), median width {share['width'].median():.2%}, mean error "
        f"{share['error'].mean():+.2%}"
    )


def main(
    cases: Annotated[list[str] | None, typer.Argument()] = None,
    n: int | None = None,
    journal: Path | None = None,
) -> None:
    """Draw what the journal does not have yet, and print what all draws say."""
    if unknown := set(cases or ()) - set(CASES):
        raise typer.BadParameter(f"{', '.join(unknown)}: there are {', '.join(CASES)}")
    kept = json.loads(journal.read_text("utf-8")) if journal and journal.exists() else {}
    for name in cases or CASES:
        (draw, n_usual, level), begin, done = CASES[name], process_time(), kept.setdefault(name, [])
        for seed in range(len(done), n or n_usual):
            done.append(rows_of(draw, seed))
            if journal:
                write_whole(journal, json.dumps(kept))
        print(f"{name}: {draw.__doc__} {process_time() - begin:.0f} s of CPU time")
        rows = pd.DataFrame([row for rows in done[: n or n_usual] for row in rows])
        for what, mine in rows.groupby("what", sort=False):
            print(in_words(str(what), mine, level), flush=True)


if __name__ == "__main__":
    typer.run(main)
