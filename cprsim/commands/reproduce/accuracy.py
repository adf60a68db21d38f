"""Accuracy lost by failures: runs of a small model, the stand-in, and twins without failures.

Full recovery trains the same batches on the same weights again: it loses exactly nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import atanh, sqrt, tanh
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from cprsim.accuracy.curve import Response, weighted_pls
from cprsim.accuracy.curve_file import read_curve
from cprsim.commands.reproduce.estimates import StudyEstimate, series
from cprsim.commands.reproduce.study import Summary, Work
from cprsim.commands.reproduce.verdicts import Ours, Tested
from cprsim.failures.sources import stream
from cprsim.job.losses import MORE_BYTES, Metric
from cprsim.job.records import HIGH, ROUNDED_Z_95, Floats, ShardLoss
from cprsim.pages.chart import Panel, Series
from cprsim.scenario.assemble import assemble
from cprsim.scenario.curves import shipped_path
from cprsim.training.accuracy import measure as measure_replication
from cprsim.training.accuracy import runs_of
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.trials import Saving, ShardFailure, Trial, stale_shards
from cprsim.training.measuring import runs
from cprsim.training.measuring.design import Design
from cprsim.training.measuring.measure import Measured, MeasureRequest, measure
from cprsim.training.proxy_model import ProxyModel, proxy_model

KAGGLE, PRODUCTION = "criteo-kaggle.yaml", "production.yaml"
N_SERVERS = 8
SAVING_LABELS = {
    "partial": "whole saves",
    "round-robin": "round robin",
    "ssu": "CPR-SSU",
    "mfu": "CPR-MFU",
    "scar": "CPR-SCAR",
}
ACCURACY_LOST = {"auc": "AUC lost", "log_loss": "log-loss added"}
Losses = dict[str, Any]  # what a trial loses against its twin


def clicks_of(work: Work) -> str:
    """The training data of the stand-in, in words."""
    return "generated clicks" if work.clicks is None else work.clicks.name


def label_of(strategy: str) -> str:
    """A strategy as people call it."""
    name = SAVING_LABELS[strategy.removesuffix(MORE_BYTES)]
    return f"{name}, small tables often" if strategy.endswith(MORE_BYTES) else name


def setting_of(work: Work, seed: int, samples: int | None) -> ProxyModel:
    """Clicks, model and order of one seed, as `cprsim measure` has them; None: all clicks."""
    overrides = work.clicks_overrides()
    if samples is not None and work.clicks is None:
        overrides.append(f"kernel.samples={samples}")
    return runs.setting_of(work.scenario(KAGGLE, overrides), seed)


def lost_by(stand_in: ProxyModel, trials: Sequence[Trial]) -> dict[str, Any]:
    """Losses of each trial of a seed compared with its twin, and the twin's quality."""
    twin, quality = runs.forked(stand_in.trainer(), stand_in.shards, trials)
    lost = [losses(trial, twin, quality[trial]) for trial in trials]
    return {"twin": {"auc": twin.auc, "log_loss": twin.log_loss}, "trials": lost}


def losses(trial: Trial, twin: Quality, quality: Quality) -> Losses:
    """Losses of a trial compared with its twin, and the staleness of its shards."""
    stale = stale_shards([trial], N_SERVERS)
    columns = stale.progress_h, stale.since_save_h, stale.since_reload_h
    return {
        "strategy": trial.saving.strategy,
        "pls": sum(stale.since_save_h.tolist()) / N_SERVERS,
        "pls_net": sum(stale.since_reload_h.tolist()) / N_SERVERS,
        "auc": twin.auc - quality.auc,
        "log_loss": quality.log_loss - twin.log_loss,
        "interval": trial.saving.interval_fraction,
        "stale": np.column_stack(columns).tolist(),
    }


# --------------------------------------------------------------------------- by strategy

SAVE_INTERVAL = 0.8  # T_save over the job: 44.8 of 56 h, CPR's at target PLS 0.1
PRIORITY = ("scar", "mfu", "ssu", "round-robin")
SAVINGS = ("partial", *PRIORITY, *(name + MORE_BYTES for name in PRIORITY))
ASKED = tuple(name + suffix for suffix in ("", MORE_BYTES) for name in ("mfu", "ssu"))


def accuracy(work: Work) -> Summary:
    """Train with two failures of a server, at the same instants for all strategies."""
    n_seeds, samples = work.pick((3, 50_000), (16, None), (40, None))
    seeds = work.per_seed(partial(_two_failures, work, samples), n_seeds)
    lost = pd.DataFrame([trial for seed in seeds for trial in seed["trials"]]).groupby("strategy")
    mean = {
        (name, metric): StudyEstimate.of_mean(lost.get_group(name)[metric])
        for name in SAVINGS
        for metric in ("pls", *ACCURACY_LOST)
    }
    of_partial = lost.get_group("partial")["auc"].to_numpy()
    saved = {  # paired differences: the same failures, so most of the noise cancels
        name: StudyEstimate.of_mean(of_partial - lost.get_group(name)["auc"].to_numpy())
        for name in SAVINGS[1:]
    }
    twin = {metric: np.mean([seed["twin"][metric] for seed in seeds]) for metric in ACCURACY_LOST}
    gain = "AUC saved against whole saves"
    no_loss = {label: f"of {twin[metric]:.5f}: 0" for metric, label in ACCURACY_LOST.items()}
    rows = [{"strategy": "no failures, full recovery"} | no_loss | {gain: ""}]
    rows += [
        {"strategy": label_of(name)}
        | {label: mean[name, metric].text() for metric, label in ACCURACY_LOST.items()}
        | {gain: saved[name].text() if name in saved else ""}
        for name in SAVINGS
    ]

    def panel(metric: str, unit: str) -> Panel:
        lines = (
            series(label, [SAVING_LABELS[name] for name in names],
                   [mean[name + suffix, metric] for name in names], kind="points")
            for suffix, label, names in (
                ("", "equal bytes", list(SAVING_LABELS)),
                (MORE_BYTES, "small tables often", [n for n in SAVING_LABELS if n in PRIORITY]),
            )
        )  # fmt: skip
        return Panel(ACCURACY_LOST[metric], "", f"{ACCURACY_LOST[metric]}{unit}", tuple(lines))

    return work.study.summary(
        {
            **{f"AUC that {label_of(name)} saves against whole saves":
               Tested(saved[name].above(0), saved[name].text()) for name in ASKED},
            "PLS of these failures": mean["partial", "pls"],
            **{f"{label}: {label_of(name)}": mean[name, metric]
               for metric, label in ACCURACY_LOST.items() for name in SAVINGS},
        },
        {"By strategy:": rows},
        panel("auc", ""),
        panel("log_loss", ", nats"),
        clicks=clicks_of(work),
        n_seeds=n_seeds,
    )  # fmt: skip


def _two_failures(work: Work, samples: int | None, seed: int) -> dict[str, Any]:
    rng = stream(seed, 0, "reproduce/accuracy")
    at = np.sort(rng.random(2)).tolist()
    failures = tuple(ShardFailure(instant, (int(rng.integers(N_SERVERS)),)) for instant in at)
    trials = [Trial(Saving(name, SAVE_INTERVAL), failures) for name in SAVINGS]
    return lost_by(setting_of(work, seed, samples), trials)


# --------------------------------------------------------------------------- over PLS

CURVE = "criteo-kaggle-linear"
FIRST_SEED, FIRST_ANEW = 900_001, 910_001  # none of those that the shipped curve was measured on
STRATEGIES_OF_STUDY = ("partial", "ssu", "mfu", "scar", "round-robin")
# (failures, servers that fail together, T_save over the job): PLS from about 0.01 to 0.3
HISTORIES = ((1, 1, 0.2), (2, 1, 0.8), (4, 2, 0.2), (8, 4, 0.15))
ORDERED = ("ssu", "mfu", "scar")
TELLS_BEND = 50.0  # %, half-width of the square term's share: a wider interval tells nothing


def pls_accuracy(work: Work) -> Summary:
    """Train fresh seeds with more and less PLS, and measure the shipped curve anew."""
    n_seeds, histories = work.pick((4, HISTORIES[1:3]), (8, HISTORIES), (20, HISTORIES))
    seeds = work.per_seed(partial(_histories, work, histories), n_seeds, FIRST_SEED)
    has_curve = work.clicks is None and work.study.data_files()
    curve = read_curve(shipped_path(CURVE)) if has_curve else None
    measured = () if curve is None else curve.responses
    responses = {
        response.strategy: response for response in measured if response.metric == Metric.AUC
    }
    anew = _measured_anew(work, work.pick(0, 6, 20))
    trials = pd.DataFrame(
        [{"seed": n, **trial} for n, seed in enumerate(seeds) for trial in seed["trials"]]
    )
    by_strategy = trials.groupby("strategy")
    points = {name: rows[["pls_net", "auc"]].to_numpy().T for name, rows in by_strategy}
    # Lines through 0: each twin lost nothing.
    products = trials.assign(xy=trials.pls_net * trials.auc, xx=trials.pls_net**2)
    sums = products.groupby(["strategy", "seed"])[["xy", "xx"]].sum()
    slopes = (sums.xy / sums.xx).unstack("seed")
    slope, ratios = (
        {name: StudyEstimate.of_mean(table.loc[name]) for name in STRATEGIES_OF_STUDY}
        for table in (slopes, slopes / slopes.loc["partial"])
    )
    flatter = [ratios[name].below(1) for name in ORDERED]
    in_order = Tested(None if None in flatter else all(flatter), "see the slopes")
    comparisons: dict[str, Ours] = {}
    for name in ("partial", "mfu") if responses else ():
        mine = trials[trials.strategy == name].groupby("seed")
        over = [over_prediction(rows.to_dict("records"), responses[name]) for _, rows in mine]
        quantity = "fresh runs over the shipped curve's prediction"
        comparisons[f"{quantity}, {label_of(name)}"] = StudyEstimate.of_mean(over)
        if anew is not None:
            quantity = "single failures measured anew over the shipped curve's"
            ratio = over_shipped(anew.results, name, responses[name])
            comparisons[f"{quantity}, {label_of(name)}"] = ratio

    def cells(name: str) -> dict[str, str]:
        """Slopes of the curve measured anew and of the shipped one, with their standard errors."""
        of_anew = of_shipped = ""
        if anew is not None:
            fitted = anew.fitted[Metric.AUC].slope(name)
            of_anew = f"{fitted.mean:.4f} ({fitted.standard_error:.4f})"
        if responses:
            response = responses[name]
            ends = (x[-1] / response.most_pls for x in (response.loss, response.standard_error))
            of_shipped = "{:.4f} ({:.4f})".format(*ends)
        return {
            "measured anew, per weighted PLS (standard error)": of_anew,
            "shipped curve, likewise": of_shipped,
        }

    def panel(title: str, *names: str) -> Panel:
        ends = np.array([0.0, float(points["partial"][0].max())])
        drawn: list[Series] = []
        for name in names:
            label, per_pls = label_of(name), slope[name].mean
            drawn.append(series(f"{label}, runs", *points[name], kind="points"))
            drawn.append(series(f"{label}: {per_pls:.4f} per PLS", ends, per_pls * ends))
        return Panel(title, "PLS (net)", "AUC lost", tuple(drawn))

    return work.study.summary(
        {
            "correlation of AUC lost and PLS, whole saves": correlation(*points["partial"]),
            "a line describes it": linear(*points["partial"]),
            "order of the slopes": in_order,
            "AUC lost per PLS, whole saves": slope["partial"],
            **{f"slope of {label_of(name)} over that of whole saves": ratios[name]
               for name in STRATEGIES_OF_STUDY[1:]},
            **comparisons,
        },
        {
            "AUC lost per PLS (a slope of 0.01 means: 1 % of the samples lost, 0.0001 of AUC):": (
                {"strategy": label_of(name), "fresh runs, per PLS": slope[name].text()}
                | cells(name)
                for name in STRATEGIES_OF_STUDY
            )
        },
        panel("Whole saves", "partial"),
        panel("Priority, equal bytes", *ORDERED),
        clicks=clicks_of(work),
        of_curve="No shipped curve belongs to these clicks and this training." if curve is None else
            f"The shipped curve {CURVE} was measured on other seeds, by `{curve.command}`; the "
            "fresh runs check it. Its slope is that of single failures.",
        of_anew="" if anew is None else
            f"Measured anew: single failures of {len(anew.results)} further seeds, as `cprsim "
            "measure` runs and fits them. Each fit has its own weights of PLS: slopes of two "
            "fits differ even where the losses agree. The ratios of single failures take the "
            "shipped curve's weights for both.",
    )  # fmt: skip


def _histories(work: Work, histories: Iterable[tuple[int, int, float]], seed: int) -> Losses:
    trials = []
    for n_failures, n_together, interval in histories:
        rng = stream(seed, n_failures, "reproduce/pls-accuracy")
        failures = tuple(
            ShardFailure(at, tuple(sorted(rng.choice(N_SERVERS, n_together, False).tolist())))
            for at in np.sort(rng.random(n_failures)).tolist()
        )
        trials += [Trial(Saving(name, interval), failures) for name in STRATEGIES_OF_STUDY]
    return lost_by(setting_of(work, seed, None), trials)


def _measured_anew(work: Work, n_seeds: int) -> Measured | None:
    """The curve on seeds of our own, as `cprsim measure` measures it; None for no seeds."""
    if not n_seeds:
        return None
    loaded = work.scenario(KAGGLE, [f"kernel.seed={FIRST_ANEW}", *work.clicks_overrides()])
    design, journals = Design(STRATEGIES_OF_STUDY), work.out / "journals" / work.digest("curve")
    return measure(
        MeasureRequest(loaded, journals, n_seeds=n_seeds, workers=work.workers, design=design)
    )


def correlation(x: Floats, y: Floats) -> StudyEstimate:
    """Pearson's correlation; its 95 % interval by Fisher's transformation, exact if normal."""
    r = float(np.corrcoef(x, y)[0, 1])
    half = ROUNDED_Z_95 / sqrt(len(x) - 3)
    return StudyEstimate(r, tanh(atanh(r) - half), tanh(atanh(r) + half))


def linear(pls: Floats, lost: Floats) -> Tested:
    """Test for a significant square term of the loss; open where its error is too large."""
    design = np.stack([pls, pls**2], axis=1)
    (slope, bend), (residual,), *_ = np.linalg.lstsq(design, lost)
    covariance = residual / (len(lost) - 2) * np.linalg.inv(design.T @ design)
    at = float(pls.max())
    half = 100 * ROUNDED_Z_95 * float(np.sqrt(covariance[1, 1])) * at / abs(slope)
    adds = StudyEstimate.around(100 * bend * at / slope, half)
    is_linear = False if abs(adds.mean) > half else True if half <= TELLS_BEND else None
    return Tested(is_linear, f"a square term adds {adds.text('%')} at PLS {at:.2f}")


def over_shipped(
    results: Iterable[runs.SeedResult], strategy: str, response: Response
) -> StudyEstimate:
    """AUC lost by the trials of a measurement, divided by that of the shipped response.

    Mean over seeds of the ratio of sums; the interval includes the error of the response's slope.
    """
    of_seeds = [
        [losses(trial, seed.twin.quality, quality)
         for trial, quality in seed.quality.items() if trial.saving.strategy == strategy]
        for seed in results if seed.twin is not None
    ]  # fmt: skip
    ratios = np.array([over_prediction(trials, response) for trials in of_seeds])
    mean, n = float(ratios.mean()), len(ratios)
    of_slope = float(response.standard_error[-1] / response.loss[-1])
    deviation = float(np.hypot(ratios.std(ddof=1) / sqrt(n), mean * of_slope))
    return StudyEstimate.around(mean, float(stats.t.ppf(HIGH, n - 1)) * deviation)


def over_prediction(trials: Sequence[Mapping[Any, Any]], response: Response) -> float:
    """AUC lost over that predicted, of the trials of one seed together."""
    predicted = [float(response.predict(_weighted(trial, response))[0][0]) for trial in trials]
    return float(sum(trial["auc"] for trial in trials) / sum(predicted))


def _weighted(trial: Mapping[Any, Any], response: Response) -> Floats:
    """Weighted PLS (1,) of one run; shares of the run are taken as hours of a job of 1 h."""
    at, since_save, since_reload = np.array(trial["stale"]).T
    zeros = np.zeros(len(at), np.int64)
    shares = np.full(len(at), 1 / N_SERVERS)
    stale = ShardLoss(zeros, at, zeros, since_save, since_reload, shares)
    return weighted_pls(response, stale, np.zeros(1, np.int64), 1.0, trial["interval"])


# --------------------------------------------------------------------------- at production scale

NAMES_AT_SCALE = {
    "cpr": "CPR, divided",
    "cpr-undivided": "CPR, undivided",
    "cpr-mfu": "CPR-MFU, divided",
    "cpr-0.05": "CPR, divided, target 0.05",
    "cpr-0.02": "CPR, divided, target 0.02",
}
IN_CURVES = ("cpr", "cpr-undivided", "cpr-mfu")  # more lines would hide each other
LOSS_LABELS = {"pls": "PLS", "log_loss": "log-loss added", "auc": "AUC lost"}
SETTLED = 0.1  # share of the run after which the loss is shown
N_SHOWN = 150  # points of a curve
ADDED = 0.0008  # to the training loss (published)


def production_loss(work: Work) -> Summary:
    """Train under the failures of several simulated replications.

    The stand-in saves where the simulated job saved and loses the shards that it lost.
    """
    n_seeds, samples = work.pick((2, 50_000), (6, 500_000), (20, 2_000_000))
    seeds = work.per_seed(partial(_at_scale, work, samples), n_seeds)
    mean = {
        (name, key): StudyEstimate.of_mean([seed[name][key] for seed in seeds])
        for name in NAMES_AT_SCALE
        for key in LOSS_LABELS
    }
    added = [mean[name, "log_loss"] for name in NAMES_AT_SCALE]
    lost, pls = (sum(seed["cpr"][key] for seed in seeds) for key in ("log_loss", "pls"))
    slope = lost / pls

    def per_pls(name: str) -> StudyEstimate:
        return StudyEstimate.of_mean([seed[name]["log_loss"] / seed[name]["pls"] for seed in seeds])

    return work.study.summary(
        {
            "log-loss added by the failures, by strategy": added,
            **{f"{LOSS_LABELS[key]}: {label}": mean[name, key]
               for name, label in NAMES_AT_SCALE.items() for key in ("log_loss", "pls")},
        },
        {
            "By strategy:": (
                {"strategy": label}
                | {heading: mean[name, key].text() for key, heading in LOSS_LABELS.items()}
                | {"log-loss per PLS": per_pls(name).text()}
                for name, label in NAMES_AT_SCALE.items()
            )
        },
        *_curves(seeds[0], added),
        n_seeds=n_seeds,
        slope=slope,
        pls=ADDED / slope,
        pls_then=mean["cpr-0.05", "pls"].text(),
        added_then=mean["cpr-0.05", "log_loss"].text(),
    )  # fmt: skip


def _at_scale(work: Work, samples: int, seed: int) -> dict[str, Any]:
    """One replication's failures on one seed's clicks."""
    overrides = [f"kernel.samples={samples}", f"kernel.seed={seed}", *work.clicks_overrides()]
    loaded = work.scenario(PRODUCTION, [*work.study.cases["stand-in"], *overrides])
    experiment, stand_in = assemble(loaded), proxy_model(loaded)
    train = runs_of(experiment, stand_in.trainer(), stand_in.shards, lambda *_: None)
    measured = measure_replication(experiment, seed, train)
    baseline = measured.whole
    outcome: dict[str, Any] = {
        "position": _thinned(baseline.position),
        "": _thinned(baseline.loss),
    }
    for strategy in measured.strategies:
        assert strategy.trained is not None, "the production job finishes"
        outcome[strategy.policy.name] = {
            "log_loss": strategy.trained.quality.log_loss - baseline.quality.log_loss,
            "auc": baseline.quality.auc - strategy.trained.quality.auc,
            "pls": strategy.pls,
            "curve": _thinned(strategy.trained.loss),
        }
    return outcome


def _thinned(values: Any) -> list[float]:
    """At most `N_SHOWN` points of a curve, each the mean of those around it."""
    pieces = np.array_split(np.asarray(values, dtype=np.float64), min(N_SHOWN, len(values)))
    return [float(piece.mean()) for piece in pieces]


def _curves(first: dict[str, Any], added: list[StudyEstimate]) -> tuple[Panel, ...]:
    position, baseline = np.array(first["position"]), np.array(first[""])
    late = position > SETTLED * position[-1]
    x, x_label = position[late] / 1e3, "thousand samples"
    curves = {NAMES_AT_SCALE[name]: np.array(first[name]["curve"]) for name in IN_CURVES}
    losses = (curves | {"no failures": baseline}).items()
    names = [*NAMES_AT_SCALE.values()]
    paper = series(f"paper: {ADDED} (published)", names, [ADDED] * len(names), kind="paper")
    return (
        Panel("Training loss", x_label, "loss, nats",
              tuple(series(label, x, loss[late]) for label, loss in losses), y_from_zero=False),
        Panel("Added by failures", x_label, "loss added, nats",
              tuple(series(label, x, (y - baseline)[late]) for label, y in curves.items())),
        Panel("At the end, on held-out clicks", "", "log-loss added, nats",
              (series("stand-in", names, added, kind="points"), paper)),
    )  # fmt: skip
