"""What the emulation's two failures cost in accuracy, by strategy: measured, against twins.

The stand-in is trained once without failures and once per strategy with two failures of one of 8
servers each, at the same random instants for all. Full recovery trains the same batches on the same
weights again: it loses exactly nothing.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from cprsim.failures.streams import stream
from cprsim.kernel.trials import Saving, ShardFailure, Trial
from cprsim.plots.chart import Chart, Panel
from cprsim.staleness.names import MORE_BYTES
from cprsim.studies.estimates import StudyEstimate, series
from cprsim.studies.study import Study, Summary, Work
from cprsim.studies.trained import (
    SHOWN,
    STAND_IN,
    Seed,
    clicks_of,
    lost_by,
    setting_of,
    shown,
    trials_of,
)
from cprsim.studies.verdicts import Tested, alone, compare

SCENARIO = "criteo-kaggle.yaml"
INTERVAL = 0.8  # T_save over the job: 44.8 of 56 h, CPR's at target PLS 0.1
N_SERVERS, N_FAILURES = 8, 2
PRIORITY = ("scar", "mfu", "ssu", "round-robin")
STRATEGIES = ("partial", *PRIORITY, *(name + MORE_BYTES for name in PRIORITY))
METRICS = {"auc": "AUC lost", "log_loss": "log-loss added"}
SAVES_MORE = "CPR-MFU and CPR-SSU lose less accuracy than saving whole"
ASKED = tuple(name + suffix for suffix in ("", MORE_BYTES) for name in ("mfu", "ssu"))


def accuracy(work: Work) -> Summary:
    """Train over several seeds."""
    n_seeds, samples = work.pick((3, 50_000), (16, None), (40, None))
    seeds = work.per_seed(partial(_trained, work, samples), n_seeds)
    lost = {
        (name, metric): np.array([trial[metric] for (trial,) in trials_of(seeds, name)])
        for name in STRATEGIES
        for metric in ("pls", *METRICS)
    }
    mean = {key: StudyEstimate.of_mean(values) for key, values in lost.items()}
    saved = {  # paired differences: the same failures, so most of the noise cancels
        name: StudyEstimate.of_mean(lost["partial", "auc"] - lost[name, "auc"])
        for name in STRATEGIES[1:]
    }
    twin = {metric: np.mean([seed["twin"][metric] for seed in seeds]) for metric in METRICS}
    gain = "AUC saved against whole saves"
    no_loss = {"strategy": "no failures, full recovery"}
    no_loss |= {label: f"of {twin[metric]:.5f}: 0" for metric, label in METRICS.items()}
    rows = [
        {"strategy": shown(name)}
        | {label: mean[name, metric].shown() for metric, label in METRICS.items()}
        | {gain: saved[name].shown() if name in saved else ""}
        for name in STRATEGIES
    ]

    def panel(metric: str, unit: str) -> Panel:
        lines = (
            series(label, [SHOWN[name] for name in names],
                   [mean[name + suffix, metric] for name in names], "points")
            for suffix, label, names in (
                ("", "equal bytes", list(SHOWN)),
                (MORE_BYTES, "small tables often", [one for one in SHOWN if one in PRIORITY]),
            )
        )  # fmt: skip
        return Panel(METRICS[metric], "", f"{METRICS[metric]}{unit}", tuple(lines))

    return Summary.of(
        "Accuracy by strategy",
        "What do the emulation's two failures cost in AUC and log-loss, by strategy "
        f"({clicks_of(work)})?",
        [
            *(
                compare(f"AUC that {shown(name)} saves against whole saves", SAVES_MORE,
                        Tested(saved[name].above(0), saved[name].shown()), STAND_IN)
                for name in ASKED
            ),
            alone("PLS of these failures", mean["partial", "pls"]),
            *(alone(f"{label}: {shown(name)}", mean[name, metric])
              for metric, label in METRICS.items() for name in STRATEGIES),
        ],
        {"By strategy:": [no_loss | {gain: ""}, *rows]},
        (
            f"Mean over {len(seeds)} seeds with its 95 % interval (Student's t); each run "
            "beside the run without failures of the same clicks, order and initial weights. Full "
            "recovery loses exactly 0.",
            "Small tables: with each interval as in the paper, at equal bytes; *often*: with "
            "every sub-save, at more bytes. Round robin writes as much and knows nothing: it is "
            "the control.",
        ),
        Chart(
            "What two failures cost in accuracy, by strategy",
            "Mean over seeds against twins without failures; error bars: 95 % interval.",
            (panel("auc", ""), panel("log_loss", ", nats")),
        ),
    )  # fmt: skip


def _trained(work: Work, samples: int | None, seed: int) -> Seed:
    rng = stream(seed, 0, "reproduce/accuracy")
    failures = tuple(
        ShardFailure(float(at), (int(rng.integers(N_SERVERS)),))
        for at in np.sort(rng.random(N_FAILURES))
    )
    trials = [Trial(Saving(name, INTERVAL), failures) for name in STRATEGIES]
    return lost_by(setting_of(work, SCENARIO, seed, samples), trials)


STUDY = Study(
    "accuracy",
    "AUC and log-loss by strategy, measured on a small model (--clicks FILE: on your clicks)",
    accuracy,
    (SCENARIO,),
    trains=True,
)
