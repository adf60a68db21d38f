"""A staleness curve as a document: what stale shards cost in accuracy, and how far that holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from cprsim.curves import CurveFile
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.present.charts import chart_blocks
from cprsim.present.document import Block, Document, Facts, Section, Table, Words, row_columns
from cprsim.records import HIGH
from cprsim.results.compare import flat
from cprsim.results.words import count, with_interval
from cprsim.staleness import MORE_BYTES, WHOLE, Metric, Response

PORTION = 0.01  # of the samples lost, for which the answer says what it costs
EQUAL, OFTEN = "equal bytes", "small tables with every sub-save: more bytes"


def document_of_curve(curve: CurveFile) -> Document:
    """Everything that the file of a curve says."""
    metrics = list(curve.metrics)
    held = [_histories(curve.checks.get(metric.value) or {}, metric) for metric in metrics]
    blocks: list[Block] = [block for block in held if block is not None]
    return Document(
        title=f"What stale shards cost in accuracy: {curve.name}",
        question="How much accuracy does a job lose by the samples that its failed servers lose?",
        answer=[_answer(curve, metric) for metric in metrics],
        sections=[
            Section("Loss over PLS", chart_blocks(_chart(curve, metrics))),
            Section("How far it holds", blocks),
            Section("What was measured", _measured(curve)),
        ],
    )


def _answer(curve: CurveFile, metric: Metric) -> str:
    """What losing a hundredth of the samples costs, under each strategy."""
    sentences = [
        f"{one.strategy} {_with_interval(one, PORTION)}"
        for one in curve.responses
        if one.metric == metric
    ]
    return (
        f"A job that loses {100 * PORTION:g} % of its samples (weighted PLS) loses this much of "
        f"its {metric.label}, by the way it saves: {'; '.join(sentences)}."
        if metric == Metric.AUC
        else f"Its {metric.label} rises by: {'; '.join(sentences)}."
        if metric == Metric.LOG_LOSS
        else f"In {metric.label} it gets worse by: {'; '.join(sentences)}."
    )


def _with_interval(response: Response, pls: float) -> str:
    loss, half = with_half_width(response, np.array([pls]))
    return with_interval(float(loss[0]), float(half[0]))


def with_half_width(response: Response, pls: Any) -> tuple[Any, Any]:
    """Loss at each weighted PLS, and the half-width of its 95 % interval."""
    loss, error = response.predict(np.asarray(pls, dtype=np.float64))
    quantile = stats.norm if np.isinf(response.degrees) else stats.t(response.degrees)
    return loss, float(quantile.ppf(HIGH)) * error


# ------------------------------------------------------------------------------ the figure


def _chart(curve: CurveFile, metrics: list[Metric]) -> Chart:
    panels = []
    for metric in metrics:
        ours = [one for one in curve.responses if one.metric == metric]
        often = [one for one in ours if one.strategy.endswith(MORE_BYTES)]
        equal = [one for one in ours if one not in often]
        panels.append(_panel(metric, EQUAL if often else "", equal))
        if often:
            whole = [one for one in equal if one.strategy == WHOLE]
            panels.append(_panel(metric, OFTEN, [*whole, *often]))
    return Chart(
        f"Accuracy lost over the portion of lost samples: {curve.name}",
        "Lines: what the measurement gives, with its 95 % interval.",
        tuple(panels),
    )


def _lost(metric: Metric) -> str:
    """What the axis counts."""
    known = {Metric.AUC: "AUC lost", Metric.LOG_LOSS: "log-loss added, nats"}
    return known.get(metric, f"{metric.label} loss")


def _panel(metric: Metric, what: str, responses: list[Response]) -> Panel:
    title = f"{_lost(metric).split(',')[0]}, {what}".rstrip(", ")
    lines = tuple(map(_line, responses))
    return Panel(title, "weighted PLS, portion of samples", _lost(metric), lines)


def _line(response: Response) -> Series:
    x = floats(response.pls.tolist())
    loss, half = with_half_width(response, response.pls)
    low, high = (floats((loss + sign * half).tolist()) for sign in (-1, 1))
    return Series(response.strategy, x, floats(loss.tolist()), low, high)


# ------------------------------------------------------------------------------ how it was made


def _histories(checks: Mapping[str, Any], metric: Metric) -> Table | None:
    """Runs held out of the fit; None where none were run."""
    rows = [
        [
            one["strategy"],
            count(int(one["n_failures"]), "failure"),
            f"{one['pls']:.3f}",
            f"{one['measured']:.5f}",
            f"{one['measured_over_predicted']['mean']:.2f}",
            f"{one['measured_over_predicted']['standard_error']:.2f}",
            one["verdict"],
        ]
        for one in checks.get("held_out") or []
    ]
    if not rows:
        return None
    return Table(
        f"{_lost(metric).split(',')[0]} in runs held out of the fit, over what the other seeds' "
        "fit predicts",
        row_columns(
            "strategy", "failures", "PLS", "measured", "over predicted", "standard error",
            "prediction",
        ),
        rows,
    )  # fmt: skip


def inputs_of_curve(curve: CurveFile) -> dict[str, str]:
    """What was trained and what made the file, key by key."""
    made = {**curve.manifest, "kernel": curve.kernel, "command": curve.command or None}
    return dict(flat(made, ""))


def _measured(curve: CurveFile) -> list[Block]:
    """The section `kernel` that was trained, and what made the file."""
    if curve.kernel is None:
        sentence = "A curve of the user's own: the file says nothing of what was measured, or how."
        return [Words([sentence])]
    made = {"command": curve.command, "identity of what was trained": curve.identity}
    made |= {name.replace("_", " "): value for name, value in curve.manifest.items()}
    entries = {**{f"kernel.{key}": value for key, value in curve.kernel.items()}, **made}
    return [Facts([(key, _said(value)) for key, value in entries.items()])]


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_said(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(_said(one) for one in value)
    return str(value)
