"""What the emulation's two failures cost in accuracy, by strategy: measured, against twins.

The stand-in is trained once without failures and once per strategy with two failures of one of 8
servers each, at the same random instants for all. Full recovery trains the same batches on the same
weights again: it loses exactly nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cprsim.kernel.trials import Saving, ShardFailure, Trial
from cprsim.plots.chart import Chart, Panel, Series
from cprsim.reproduce.paper import Mark, words
from cprsim.reproduce.study import Part, Study, Work
from cprsim.reproduce.summary import Listing, Row, Summary, alone, as_shown, tested
from cprsim.reproduce.trained import MORE_BYTES, SHOWN, lost_by, setting_of, shown
from cprsim.reproduce.verdicts import Basis, Ours
from cprsim.results.metrics import interval_of_mean
from cprsim.streams import stream

SCENARIO = "criteo-kaggle.yaml"
INTERVAL = 0.8  # T_save over the job: 44.8 of 56 h, CPR's at target PLS 0.1
N_SERVERS, N_FAILURES = 8, 2
PRIORITY = ("scar", "mfu", "ssu", "round-robin")
STRATEGIES = ("partial", *PRIORITY, *(name + MORE_BYTES for name in PRIORITY))
METRICS = {"auc": "AUC lost", "log_loss": "log-loss added"}
SAVES_MORE = words("CPR-MFU and CPR-SSU lose less accuracy than saving whole", Mark.RECALLED)
FREE = ("the model, smaller than the paper's", "its clicks", "its training")


def make(work: Work) -> Summary:
    """Train over several seeds."""
    n_seeds, samples = work.pick((3, 50_000), (16, None), (40, None))
    parts = [
        Part(f"seed {seed}", partial(_measured, work, seed, samples), (SCENARIO,))
        for seed in range(1, n_seeds + 1)
    ]
    found = work.each(parts)
    lost = {metric: _by_strategy(found, metric) for metric in METRICS}
    pls = Ours(*interval_of_mean(np.array([one["trials"][0]["pls"] for one in found])))
    return Summary(
        "Accuracy by strategy",
        "What do the emulation's two failures cost in AUC and log-loss, by strategy "
        f"({'generated clicks' if work.clicks is None else work.clicks.name})?",
        (
            *_order_rows(lost["auc"]),
            alone("PLS of these failures", pls, ""),
            *(
                alone(f"{METRICS[metric]}: {shown(name)}", _mean(lost[metric][name]), "")
                for metric in METRICS
                for name in STRATEGIES
            ),
        ),
        (_listing(found, lost),),
        (
            f"Mean over {n_seeds} seeds with its 95 % interval (Student's t); each run beside the "
            "run without failures of the same clicks, order and initial weights. Full recovery "
            "loses exactly 0.",
            "Small tables: with each interval as in the paper, at equal bytes; *often*: with "
            "every sub-save, at more bytes. Round robin writes as much and knows nothing: it is "
            "the control.",
        ),
        (_chart(lost),),
    )


def _measured(work: Work, seed: int, samples: int | None) -> dict[str, Any]:
    rng = stream(seed, 0, "reproduce/accuracy")
    failures = tuple(
        ShardFailure(float(at), (int(rng.integers(N_SERVERS)),))
        for at in np.sort(rng.random(N_FAILURES))
    )
    trials = [Trial(Saving(name, INTERVAL), failures) for name in STRATEGIES]
    return lost_by(setting_of(work, SCENARIO, seed, samples), trials)


def _by_strategy(found: Sequence[Mapping[str, Any]], metric: str) -> dict[str, list[float]]:
    lost: dict[str, list[float]] = {name: [] for name in STRATEGIES}
    for one in found:
        for trial in one["trials"]:
            lost[trial["strategy"]].append(trial[metric])
    return lost


def _mean(values: Sequence[float]) -> Ours:
    return Ours(*interval_of_mean(np.array(values)))


def _order_rows(lost: Mapping[str, list[float]]) -> list[Row]:
    """Paired differences to whole saves: the same failures, so most of the noise cancels."""
    rows = []
    for name in ("mfu", "ssu", "mfu" + MORE_BYTES, "ssu" + MORE_BYTES):
        saved = _mean(np.array(lost["partial"]) - np.array(lost[name]))
        met = True if saved.low > 0 else False if saved.high < 0 else None
        what = f"AUC that {shown(name)} saves against whole saves"
        rows.append(tested(what, SAVES_MORE, met, as_shown(saved, ""), Basis(free=FREE)))
    return rows


def _listing(
    found: Sequence[Mapping[str, Any]], lost: Mapping[str, Mapping[str, list[float]]]
) -> Listing:
    twins = {metric: _mean([one["twin"][metric] for one in found]) for metric in METRICS}

    def line(name: str) -> tuple[str, ...]:
        cells = [as_shown(_mean(lost[metric][name]), "") for metric in METRICS]
        less = np.array(lost["auc"]["partial"]) - np.array(lost["auc"][name])
        saved = "" if name == "partial" else as_shown(_mean(less), "")
        return (shown(name), *cells, saved)

    reference = (
        "no failures, full recovery",
        *(f"of {twins[one].value:.5f}: 0" for one in METRICS),
    )
    return Listing(
        "By strategy:",
        ("strategy", *METRICS.values(), "AUC saved against whole saves"),
        ((*reference, ""), *(line(name) for name in STRATEGIES)),
    )


def _chart(lost: Mapping[str, Mapping[str, list[float]]]) -> Chart:
    def panel(metric: str) -> Panel:
        lines = []
        for suffix, label in (("", "equal bytes"), (MORE_BYTES, "small tables often")):
            names = [name for name in SHOWN if name + suffix in lost[metric]]
            means = [_mean(lost[metric][name + suffix]) for name in names]
            lines.append(
                Series(
                    label,
                    tuple(SHOWN[name] for name in names),
                    tuple(one.value for one in means),
                    tuple(one.low for one in means),
                    tuple(one.high for one in means),
                    "points",
                )
            )
        unit = "" if metric == "auc" else ", nats"
        return Panel(METRICS[metric], "", f"{METRICS[metric]}{unit}", tuple(lines))

    return Chart(
        "What two failures cost in accuracy, by strategy",
        "Mean over seeds against twins without failures; error bars: 95 % interval.",
        tuple(map(panel, METRICS)),
    )


STUDY = Study(
    "accuracy",
    "AUC and log-loss by strategy, measured on a small model (--clicks FILE: on your clicks)",
    make,
    (SCENARIO,),
    trains=True,
)
