"""What the failures at production scale do to a model: loss curves, and the loss at the end.

The failures of simulated replications of `scenarios/production.yaml` strike the stand-in: it saves
where the simulated job saved and loses the shards that it lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cprsim.accuracy import measure
from cprsim.assemble import assemble
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.reproduce.paper import PRODUCTION_LOSS
from cprsim.reproduce.study import Part, Study, Work
from cprsim.reproduce.summary import Listing, Row, Summary, alone, as_shown, compared_over_cases
from cprsim.reproduce.verdicts import Basis, Ours
from cprsim.results.metrics import interval_of_mean
from cprsim.stand_in import stand_in

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


def make(work: Work) -> Summary:
    """Train under the failures of several replications."""
    n_seeds, samples = work.pick((2, 50_000), (6, 500_000), (20, 2_000_000))
    parts = [
        Part(f"seed {seed}", partial(_measured, work, seed, samples), (SCENARIO,))
        for seed in range(1, n_seeds + 1)
    ]
    found = work.each(parts)
    added = {name: _mean([one[name]["log_loss"] for one in found]) for name in STRATEGIES}
    return Summary(
        "Production scale: what it costs the model",
        "How much higher is the loss with 5 failures of 4 of 18 servers?",
        tuple(_rows(found, added)),
        (_listing(found, added),),
        (
            "The paper's model, data and target are not known: a small DLRM on generated clicks "
            "stands in, and the log-loss on held-out clicks is compared. Against the twin without "
            f"failures, mean over {n_seeds} seeds with its 95 % interval. Verdict at most "
            "*consistent*.",
            "What decides is how many samples are lost: the undivided interval loses about 4 times "
            "as many as the divided one, and the loss is higher in proportion. The paper does not "
            "say its target; 0.1 is recalled, of the emulation. " + _target_note(found),
        ),
        (_chart(found[0], added),),
    )


def _measured(work: Work, seed: int, samples: int) -> dict[str, Any]:
    """One replication's failures on one seed's clicks."""
    overrides = [KERNEL % samples, f"kernel.seed={seed}", RECOVERY, *work.clicks_overrides()]
    loaded = work.scenario(SCENARIO, overrides)
    measured = measure(assemble(loaded), stand_in(loaded), seed, lambda run, done, to_do: None)
    whole = measured.whole
    found: dict[str, Any] = {"position": _some(whole.curve.position), "": _some(whole.curve.loss)}
    for one in measured.strategies:
        assert one.trained is not None, "the production job finishes"
        found[one.policy.name] = {
            "log_loss": one.trained.quality.log_loss - whole.quality.log_loss,
            "auc": whole.quality.auc - one.trained.quality.auc,
            "pls": one.pls,
            "curve": _some(one.trained.curve.loss),
            "reverted_at": sorted(set(one.reverted_at.tolist())),
        }
    return found


def _some(values: Any) -> list[float]:
    """At most so many of the points of a curve, each the mean of those around it."""
    pieces = np.array_split(np.asarray(values, dtype=np.float64), min(N_SHOWN, len(values)))
    return [float(piece.mean()) for piece in pieces]


def _mean(values: Sequence[float]) -> Ours:
    return Ours(*interval_of_mean(np.array(values)))


def _rows(found: Sequence[Mapping[str, Any]], added: Mapping[str, Ours]) -> list[Row]:
    rows = [
        compared_over_cases(
            "log-loss added by the failures, by strategy",
            PRODUCTION_LOSS,
            list(added.values()),
            Basis(free=FREE),
        )
    ]
    for name, label in STRATEGIES.items():
        rows.append(alone(f"log-loss added: {label}", added[name], ""))
        rows.append(alone(f"PLS: {label}", _mean([one[name]["pls"] for one in found]), ""))
    return rows


def _target_note(found: Sequence[Mapping[str, Any]]) -> str:
    """At which PLS the stand-in would lose what the paper lost, and what a run near it lost."""
    cpr = [one["cpr"] for one in found]
    slope = sum(one["log_loss"] for one in cpr) / sum(one["pls"] for one in cpr)
    near = [one["cpr-0.05"] for one in found]
    ran = ", ".join(
        f"{what} {as_shown(_mean([one[key] for one in near]), '')}"
        for key, what in (("pls", "PLS"), ("log_loss", "log-loss added"))
    )
    return (
        f"At CPR's loss per PLS, {slope:.4f}, the published {PRODUCTION_LOSS.low:g} belongs to a "
        f"PLS of {PRODUCTION_LOSS.low / slope:.3f}; the run with target 0.05 has {ran}."
    )


def _listing(found: Sequence[Mapping[str, Any]], added: Mapping[str, Ours]) -> Listing:
    return Listing(
        "By strategy:",
        ("strategy", "PLS", "log-loss added", "AUC lost", "log-loss per PLS"),
        tuple(
            (
                label,
                as_shown(_mean([one[name]["pls"] for one in found]), ""),
                as_shown(added[name], ""),
                as_shown(_mean([one[name]["auc"] for one in found]), ""),
                as_shown(_mean([one[name]["log_loss"] / one[name]["pls"] for one in found]), ""),
            )
            for name, label in STRATEGIES.items()
        ),
    )


def _chart(one: Mapping[str, Any], added: Mapping[str, Ours]) -> Chart:
    position = np.array(one["position"])
    late = position > SETTLED * position[-1]
    x = floats((position[late] / 1e3).tolist())

    def line(label: str, loss: Any) -> Series:
        return Series(label, x, floats(np.asarray(loss)[late].tolist()))

    whole = np.array(one[""])
    shown = {name: STRATEGIES[name] for name in IN_CURVES}
    curves = [line(label, one[name]["curve"]) for name, label in shown.items()]
    curves.append(line("no failures", whole))
    more = [line(label, np.array(one[name]["curve"]) - whole) for name, label in shown.items()]
    names = tuple(STRATEGIES.values())
    ends = Series(
        "stand-in",
        names,
        tuple(value.value for value in added.values()),
        tuple(value.low for value in added.values()),
        tuple(value.high for value in added.values()),
        "points",
    )
    papers = Series(f"paper: {PRODUCTION_LOSS}", names, (PRODUCTION_LOSS.low,) * len(names),
                    kind="paper")  # fmt: skip
    return Chart(
        "Loss under the failures at production scale, on the stand-in",
        "Training loss of one seed; at the end: mean over seeds, error bars: 95 % interval.",
        (
            Panel("Training loss", "thousand samples", "loss, nats", tuple(curves),
                  y_from_zero=False),
            Panel("Added by failures", "thousand samples", "loss added, nats", tuple(more)),
            Panel("At the end, on held-out clicks", "", "log-loss added, nats", (ends, papers)),
        ),
    )  # fmt: skip


STUDY = Study(
    "production-loss",
    "loss curves at production scale, and the loss at the end, on a small model",
    make,
    (SCENARIO,),
    trains=True,
)
