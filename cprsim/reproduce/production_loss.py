"""What the failures at production scale do to a model: loss curves, and the loss at the end.

The failures of simulated replications of `scenarios/production.yaml` strike the stand-in: it saves
where the simulated job saved and loses the shards that it lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cprsim.experiments.accuracy import built_in, measure
from cprsim.experiments.assemble import assemble
from cprsim.experiments.proxy_model import proxy_model
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.reproduce.estimates import StudyEstimate, series
from cprsim.reproduce.paper import PRODUCTION_LOSS
from cprsim.reproduce.study import Study, Work
from cprsim.reproduce.summary import Listing, Target, alone
from cprsim.reproduce.verdicts import Assumptions

SCENARIO = "production.yaml"
KERNEL = "kernel={tables: criteo-kaggle, most_rows: 5000, samples: %d}"
RECOVERY = (
    "recovery=[{strategy: cpr, target_pls: 0.1}, "
    "{strategy: cpr, name: cpr-undivided, interval: cpr-undivided, target_pls: 0.1}, "
    "{strategy: cpr-mfu, target_pls: 0.1}, "
    "{strategy: cpr, name: cpr-0.05, target_pls: 0.05}, "
    "{strategy: cpr, name: cpr-0.02, target_pls: 0.02}]"
)
STRATEGIES = {
    "cpr": "CPR, divided",
    "cpr-undivided": "CPR, undivided",
    "cpr-mfu": "CPR-MFU, divided",
    "cpr-0.05": "CPR, divided, target 0.05",
    "cpr-0.02": "CPR, divided, target 0.02",
}
IN_CURVES = ("cpr", "cpr-undivided", "cpr-mfu")  # more lines would hide each other
SETTLED = 0.1  # share of the run after which the loss is shown
N_SHOWN = 150  # points of a curve
FREE = ("the model", "its clicks", "its training", "target PLS", "which loss is meant")

Seeds = Sequence[dict[str, Any]]  # what `_trained` found on each


def numbers(work: Work) -> Seeds:
    """Train under the failures of several replications."""
    n_seeds, samples = work.pick((2, 50_000), (6, 500_000), (20, 2_000_000))
    return work.per_seed(partial(_trained, work, samples), n_seeds, reads=(SCENARIO,))


def _trained(work: Work, samples: int, seed: int) -> dict[str, Any]:
    """One replication's failures on one seed's clicks."""
    overrides = [KERNEL % samples, f"kernel.seed={seed}", RECOVERY, *work.clicks_overrides()]
    loaded = work.scenario(SCENARIO, overrides)
    experiment, what = assemble(loaded), proxy_model(loaded)
    runs = built_in(experiment, what, lambda run, done, to_do: None)
    measured = measure(experiment, seed, what, runs)
    whole = measured.whole
    found: dict[str, Any] = {"position": _some(whole.curve.position), "": _some(whole.curve.loss)}
    for one in measured.strategies:
        assert one.trained is not None, "the production job finishes"
        found[one.policy.name] = {
            "log_loss": one.trained.quality.log_loss - whole.quality.log_loss,
            "auc": whole.quality.auc - one.trained.quality.auc,
            "pls": one.pls,
            "curve": _some(one.trained.curve.loss),
        }
    return found


def _some(values: Any) -> list[float]:
    """At most so many of the points of a curve, each the mean of those around it."""
    pieces = np.array_split(np.asarray(values, dtype=np.float64), min(N_SHOWN, len(values)))
    return [float(piece.mean()) for piece in pieces]


def _mean(seeds: Seeds, strategy: str, quantity: str) -> StudyEstimate:
    return StudyEstimate.of_mean([seed[strategy][quantity] for seed in seeds])


def _alone(strategy: str, quantity: str, label: str) -> Target[Seeds]:
    return alone(f"{label}: {STRATEGIES[strategy]}", lambda seeds: _mean(seeds, strategy, quantity))


TARGETS: list[Target[Seeds]] = [
    Target(
        "log-loss added by the failures, by strategy",
        PRODUCTION_LOSS,
        lambda seeds: tuple(_mean(seeds, name, "log_loss") for name in STRATEGIES),
        Assumptions(FREE),
    ),
    *(
        _alone(name, quantity, label)
        for name in STRATEGIES
        for quantity, label in (("log_loss", "log-loss added"), ("pls", "PLS"))
    ),
]


def _target_note(seeds: Seeds) -> str:
    """At which PLS the stand-in would lose what the paper lost, and what a run near it lost."""
    cpr = [seed["cpr"] for seed in seeds]
    slope = sum(one["log_loss"] for one in cpr) / sum(one["pls"] for one in cpr)
    return (
        "What decides is how many samples are lost: the undivided interval loses about 4 times "
        "as many as the divided one, and the loss is higher in proportion. The paper does not "
        "say its target; 0.1 is recalled, of the emulation. "
        f"At CPR's loss per PLS, {slope:.4f}, the published {PRODUCTION_LOSS.low:g} belongs to a "
        f"PLS of {PRODUCTION_LOSS.low / slope:.3f}; the run with target 0.05 has "
        f"PLS {_mean(seeds, 'cpr-0.05', 'pls').shown()}, "
        f"log-loss added {_mean(seeds, 'cpr-0.05', 'log_loss').shown()}."
    )


def _listings(seeds: Seeds) -> list[Listing]:
    def per_pls(name: str) -> StudyEstimate:
        return StudyEstimate.of_mean([seed[name]["log_loss"] / seed[name]["pls"] for seed in seeds])

    return [
        Listing.of(
            "By strategy:",
            STRATEGIES,
            ("strategy", lambda name: STRATEGIES[name]),
            ("PLS", lambda name: _mean(seeds, name, "pls").shown()),
            ("log-loss added", lambda name: _mean(seeds, name, "log_loss").shown()),
            ("AUC lost", lambda name: _mean(seeds, name, "auc").shown()),
            ("log-loss per PLS", lambda name: per_pls(name).shown()),
        )
    ]


def _chart(seeds: Seeds) -> Chart:
    first = seeds[0]
    position, whole = np.array(first["position"]), np.array(first[""])
    late = position > SETTLED * position[-1]
    x = floats(position[late] / 1e3)

    def line(label: str, loss: Any) -> Series:
        return Series(label, x, floats(loss[late]))

    curves = {STRATEGIES[name]: np.array(first[name]["curve"]) for name in IN_CURVES}
    names = tuple(STRATEGIES.values())
    added = [_mean(seeds, name, "log_loss") for name in STRATEGIES]
    paper = Series(
        f"paper: {PRODUCTION_LOSS}", names, (PRODUCTION_LOSS.low,) * len(names), kind="paper"
    )
    return Chart(
        "Loss under the failures at production scale, on the stand-in",
        "Training loss of one seed; at the end: mean over seeds, error bars: 95 % interval.",
        (
            Panel(
                "Training loss",
                "thousand samples",
                "loss, nats",
                tuple(line(*curve) for curve in (*curves.items(), ("no failures", whole))),
                y_from_zero=False,
            ),
            Panel(
                "Added by failures",
                "thousand samples",
                "loss added, nats",
                tuple(line(label, loss - whole) for label, loss in curves.items()),
            ),
            Panel(
                "At the end, on held-out clicks",
                "",
                "log-loss added, nats",
                (series("stand-in", names, added, "points"), paper),
            ),
        ),
    )


STUDY = Study(
    name="production-loss",
    shows="loss curves at production scale, and the loss at the end, on a small model",
    title="Production scale: what it costs the model",
    question="How much higher is the loss with 5 failures of 4 of 18 servers?",
    numbers=numbers,
    targets=TARGETS,
    listings=_listings,
    notes=(
        lambda seeds: (
            "The paper's model, data and target are not known: a small DLRM on generated clicks "
            "stands in, and the log-loss on held-out clicks is compared. Against the twin without "
            f"failures, mean over {len(seeds)} seeds with its 95 % interval. Verdict at most "
            "*consistent*."
        ),
        _target_note,
    ),
    chart=_chart,
    inputs=(SCENARIO,),
    trains=True,
)
