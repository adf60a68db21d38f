"""A staleness curve: what stale shards cost in accuracy, and how far that holds; what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from cprsim.curves import CurveFile
from cprsim.curves.curve_file import bytes_shares
from cprsim.measuring.checks import FAILS_BEYOND, SeedMean
from cprsim.measuring.curve import FAILED_FRACTION, TYPICAL_INTERVAL, typical_loss
from cprsim.measuring.elsewhere import RESULTS, PlannedRun
from cprsim.measuring.lengths import sentences_of_lengths
from cprsim.measuring.measure import Measured
from cprsim.measuring.power import LEVEL, PlannedSeeds
from cprsim.measuring.runs import COUNTED_INTERVAL
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure
from cprsim.present.answer import Answer
from cprsim.present.document import (
    Block,
    Column,
    Document,
    Facts,
    Picture,
    Section,
    Table,
    Words,
    row_columns,
    word_columns,
)
from cprsim.records import HIGH, NO_NUMBER, Estimate
from cprsim.results.compare import flat
from cprsim.results.words import count, ends, portion, significant, with_ends, with_interval
from cprsim.staleness import (
    BY_PLS,
    FEWEST_SEEDS_TO_USE,
    MORE_BYTES,
    WHOLE,
    Metric,
    Response,
)

PORTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)  # of the samples lost; the answer has the first
NO_TRIALS = pd.DataFrame({"strategy": [], "metric": [], "weighted_pls": [], "loss": []})
EQUAL, OFTEN = "equal bytes", "small tables with every sub-save: more bytes"
PAPERS_CORRELATION = 0.88  # recalled: of accuracy loss and PLS


def answer_of_curve(curve: CurveFile, measured: Measured | None = None, **about: Any) -> Answer:
    """The answer that the file of a curve holds; its trials where it was measured just now."""
    trials = NO_TRIALS if measured is None else pd.DataFrame(_trials(measured))
    held = pd.DataFrame(_held_out(curve))
    return Answer(
        "curve",
        curve.name,
        lambda: document_of_curve(curve, trials),
        frames={
            "strategies": pd.DataFrame(_strategies(curve)),
            "losses": pd.DataFrame(row for one in curve.responses for row in _losses(one)),
            "weights": pd.DataFrame(row for one in curve.responses for row in _weights(one)),
            **({"held_out": held} if len(held) else {}),
        },
        values={
            "fit_for_use": not curve.unfit,
            "unfit": curve.unfit,
            "unfit_metrics": curve.unfit_metrics,
            "kernel": curve.kernel,
            "identity": curve.identity,
            "command": curve.command,
            "manifest": curve.manifest,
            "checks": curve.checks,
        },
        rows={"trials": trials},
        **about,
    )


def loss_at(response: Response, pls: Sequence[float]) -> list[Estimate]:
    """Loss at each weighted PLS, with its 95 % interval."""
    loss, error = response.predict(np.asarray(pls, dtype=np.float64))
    half = _quantile(response) * error
    return [
        Estimate(*one) for one in zip(*map(floats, (loss, loss - half, loss + half)), strict=True)
    ]


def loss_per_pls(one: Response) -> Estimate:
    """The loss at the largest PLS that was measured over that PLS, without the intercept."""
    half = _quantile(one) * float(one.standard_error[-1])
    loss = float(one.loss[-1])
    return Estimate(loss, loss - half, loss + half).times(1 / one.most_pls)


def _quantile(response: Response) -> float:
    known = stats.t(response.degrees) if isfinite(response.degrees) else stats.norm
    return float(known.ppf(HIGH))


# ------------------------------------------------------------------------------ frames


def _strategies(curve: CurveFile) -> Iterator[dict[str, Any]]:
    slopes = {(one.strategy, one.metric): loss_per_pls(one) for one in curve.responses}
    shares = bytes_shares(curve.checks)
    written = {WHOLE: 1.0, **shares} if shares else {}
    for one in curve.responses:
        slope, whole = slopes[one.strategy, one.metric], slopes.get((WHOLE, one.metric))
        yield {
            "strategy": one.strategy,
            "metric": one.metric.value,
            "by": one.by,
            **slope.columns("loss_per_pls"),
            "over_partial": slope.mean / whole.mean if whole and whole.mean else nan,
            "intercept": one.intercept,
            "interval_share": one.interval_share,
            "most_pls": one.most_pls,
            "n_seeds": int(one.degrees) + 1 if isfinite(one.degrees) else None,
            "bytes_over_partial": written.get(one.strategy, nan),
        }


def _losses(one: Response) -> Iterator[dict[str, Any]]:
    portions = sorted({*(PORTIONS if one.by == BY_PLS else ()), *floats(one.pls)})
    for pls, loss in zip(portions, loss_at(one, portions), strict=True):
        known = {"strategy": one.strategy, "metric": one.metric.value, "pls": pls}
        yield {**known, **loss.columns("loss"), "extrapolated": pls > one.most_pls}


def _weights(one: Response) -> Iterator[dict[str, Any]]:
    """How much a lost sample counts; the logarithm is linear between these shares of the job."""
    for at, weight in zip(one.weight.at.tolist(), one.weight.weight.tolist(), strict=True):
        known = {"strategy": one.strategy, "metric": one.metric.value}
        yield {**known, "at_fraction": at, "weight": weight}


def _trials(measured: Measured) -> Iterator[dict[str, Any]]:
    """The runs that were fitted."""
    for metric in measured.fitted:
        for strategy in measured.seen.strategies:
            for pls, loss in zip(*measured.points(metric, strategy), strict=True):
                known = {"strategy": strategy, "metric": metric.value}
                yield {**known, "weighted_pls": float(pls), "loss": float(loss)}


def _held_out(curve: CurveFile) -> Iterator[dict[str, Any]]:
    """Runs that took no part in the fit, over what the fit predicts."""
    for metric in curve.metrics:
        for one in curve.checks.get(metric.value, {}).get("held_out", ()):
            ratio = SeedMean(**one["measured_over_predicted"])
            low, high = (ratio.mean + sign * ratio.half_width for sign in (-1, 1))
            yield {
                "strategy": one["strategy"],
                "metric": metric.value,
                "n_failures": one["n_failures"],
                "pls": one["pls"],
                "loss": one["measured"],
                **Estimate(ratio.mean, low, high).columns("measured_over_predicted"),
                "standard_error": ratio.standard_error,
                "prediction": one["verdict"],
            }


# ------------------------------------------------------------------------------ the document


def document_of_curve(curve: CurveFile, trials: pd.DataFrame = NO_TRIALS) -> Document:
    """Everything that the file of a curve says."""
    picture = Picture(
        "Accuracy lost over the portion of lost samples",
        "Lines: loss over weighted PLS by strategy, with 95 % intervals. Points: measured runs.",
        lambda: chart_figure(_chart(curve, trials)),
        name="staleness",
    )
    held = list(_held_out(curve))
    return Document(
        title=f"What stale shards cost in accuracy: {curve.name}",
        question="How much accuracy does a job lose by the samples that its failed servers lose?",
        answer=[*_fitness(curve), _answer(curve)],
        table=_table(curve),
        remarks=list(_remarks(curve)),
        sections=[
            Section("Loss over PLS", [picture, _losses_table(curve)]),
            Section("How far it holds", [_histories(held)] if held else []),
            Section("What was measured", [_measured(curve)]),
        ],
    )


def _fitness(curve: CurveFile) -> list[str]:
    """Whether select takes the curve; of a curve of the user's own nothing is known."""
    if curve.unfit:
        return [f"NOT FIT FOR USE: {'; '.join(curve.unfit)}. 'cprsim select' refuses this curve."]
    return [] if curve.kernel is None else ["The curve is fit for use."]


def _answer(curve: CurveFile) -> str:
    """What losing a hundredth of the samples costs."""
    by_pls = [one for one in curve.responses if one.by == BY_PLS]
    if not by_pls:
        return "It says what recovery systems lose by what their failures and saves count."
    name = WHOLE if any(one.strategy == WHOLE for one in by_pls) else by_pls[0].strategy
    costs = [
        f"{one.metric.loss_label} {with_interval(loss.mean, loss.half_width)}"
        for one in by_pls
        if one.strategy == name
        for loss in loss_at(one, PORTIONS[:1])
    ]
    portion = f"{100 * PORTIONS[0]:g} % of the samples (weighted PLS {PORTIONS[0]:g})"
    return f"Losing {portion} under {name} recovery costs: {', '.join(costs)}."


def _table(curve: CurveFile) -> Table:
    """A row per strategy: what a PLS costs under it, and the bytes that its saves write."""
    of = [name for one in curve.metrics for name in (f"{one.loss_label} per PLS", "over partial")]
    rows: dict[str, list[str]] = {}
    for one in _strategies(curve):
        cells = [one["strategy"], *[NO_NUMBER] * 2 * len(curve.metrics)]
        row = rows.setdefault(one["strategy"], [*cells, significant(one["bytes_over_partial"])])
        at, slope = 1 + 2 * curve.metrics.index(Metric(one["metric"])), one["loss_per_pls"]
        half = one["loss_per_pls_high"] - slope
        row[at : at + 2] = with_interval(slope, half), significant(one["over_partial"])
    return Table(
        "Slopes per weighted PLS, ± the half-width of the 95 % interval; bytes of saves every "
        f"{COUNTED_INTERVAL:.0%} of the run",
        row_columns("strategy", *of, "bytes over partial"),
        list(rows.values()),
    )


def _remarks(curve: CurveFile) -> Iterator[str]:
    """Where the curve is not for use, what one failure costs, and what it took to measure that."""
    for metric, why in curve.unfit_metrics.items():
        yield f"No limit of {metric.label} is taken: {'; '.join(why)}."
    yield from sentences_of_lengths(curve)
    if curve.kernel is None:
        return
    lost = [
        f"{with_ends(loss.mean, *loss.interval())} of {one.metric.label}"
        for one in curve.responses
        if one.strategy == WHOLE
        for loss in [typical_loss(one)]
    ]
    if lost:
        yield (
            f"A failure of {FAILED_FRACTION:.1%} of the servers at any time, with saves every "
            f"{TYPICAL_INTERVAL:.0%} of the run, costs under {WHOLE} recovery {' and '.join(lost)}."
        )
    if found := curve.checks.get(Metric.AUC.value, {}).get("correlation_with_pls"):
        yield (
            f"Correlation of AUC loss with PLS, single failures, {WHOLE}: {found['mean']:.2f} ± "
            f"{found['standard_error']:.2f} (standard error; paper, recalled: about "
            f"{PAPERS_CORRELATION})."
        )
    made = curve.manifest
    if {"seeds", "n_runs", "cpu_minutes"} <= set(made):
        n_seeds, cpu_min = len(made["seeds"]), made["cpu_minutes"]
        yield f"{n_seeds} seeds, {made['n_runs']:,} runs, {cpu_min:.1f} CPU minutes."


def _histories(held: Sequence[Mapping[str, Any]]) -> Table:
    """Runs held out of the fit."""
    over = "measured_over_predicted"
    return Table(
        "Losses of runs held out of the fit, over what the other seeds' fit predicts (a prediction "
        f"holds where it is not surely off by {FAILS_BEYOND:.0%}, and is distinguished from none "
        "and from twice as much)",
        row_columns("strategy", "metric", "failures", "PLS", "loss", "over predicted", "95 %",
                    "prediction"),
        [
            [one["strategy"], Metric(one["metric"]).label, str(one["n_failures"]),
             portion(one["pls"]), f"{one['loss']:.5f}", significant(one[over]),
             ends(one[f"{over}_low"], one[f"{over}_high"]), one["prediction"]]
            for one in held
        ],
    )  # fmt: skip


def _losses_table(curve: CurveFile) -> Table:
    return Table(
        "Loss at portions of lost samples (weighted PLS), ± the half-width of the 95 % interval; "
        f"{NO_NUMBER} beyond what was measured",
        [*word_columns("strategy", "loss"), *(Column(f"PLS {one:g}") for one in PORTIONS)],
        [
            [one.strategy, one.metric.loss_label]
            + [
                with_interval(loss.mean, loss.half_width) if pls <= one.most_pls else NO_NUMBER
                for pls, loss in zip(PORTIONS, loss_at(one, PORTIONS), strict=True)
            ]
            for one in curve.responses
            if one.by == BY_PLS
        ],
    )


def _chart(curve: CurveFile, trials: pd.DataFrame) -> Chart:
    panels = []
    for metric in curve.metrics:
        ours = [one for one in curve.responses if one.metric == metric]
        often = [one for one in ours if one.strategy.endswith(MORE_BYTES)]
        equal = [one for one in ours if one not in often]
        whole = [one for one in equal if one.strategy == WHOLE]
        fitted = trials[trials["metric"] == metric.value]
        panels.append(_panel(f", {EQUAL}" if often else "", equal, fitted))
        panels += [_panel(f", {OFTEN}", [*whole, *often], fitted)] if often else []
    points = "" if trials.empty else " Points: measured runs; below 0 noise exceeds the loss."
    return Chart(
        f"Accuracy lost over the portion of lost samples: {curve.name}",
        f"Lines: what the measurement gives, with its 95 % interval.{points}",
        tuple(panels),
    )


def _panel(what: str, responses: Sequence[Response], trials: pd.DataFrame) -> Panel:
    metric, lines = responses[0].metric, []
    for one in responses:
        ours = trials[trials["strategy"] == one.strategy]
        points = (floats(ours["weighted_pls"]), floats(ours["loss"]))
        lines += [Series(one.strategy, *points, kind="points")] if len(ours) else []
        y, low, high = zip(*(loss.triple for loss in loss_at(one, floats(one.pls))), strict=True)
        lines.append(Series(one.strategy, floats(one.pls), y, low, high))
    loss = f"{metric.loss_label}{' [nats]' if metric == Metric.LOG_LOSS else ''}"
    x_label = "weighted PLS, portion of samples"
    return Panel(f"{metric.loss_label}{what}", x_label, loss, tuple(lines))


def inputs_of_curve(curve: CurveFile) -> dict[str, str]:
    """What was trained and what made the file, key by key."""
    made = {**curve.manifest, "kernel": curve.kernel, "command": curve.command or None}
    return dict(flat(made, ""))


def _measured(curve: CurveFile) -> Block:
    """The section `kernel` that was trained, and what made the file."""
    if curve.kernel is None:
        sentence = "A curve of the user's own: the file says nothing of what was measured, or how."
        return Words([sentence])
    identity = ("identity of what was trained", str(curve.identity))
    return Facts([identity, *inputs_of_curve(curve).items()])


# ------------------------------------------------------------------------------ before it


def answer_of_plan(name: str, runs: Sequence[PlannedRun], file: Path) -> Answer:
    """The runs that are to be made elsewhere, of which a file was written."""
    n_seeds = len({one.seed for one in runs})
    document = Document(
        title=f"Runs to measure elsewhere: {name}",
        question="Which runs does a staleness curve take?",
        answer=[
            f"{count(len(runs), 'run')} of {count(n_seeds, 'seed')}; each row takes its results "
            f"({', '.join(RESULTS)}), then --runs makes the curve."
        ],
    )
    return Answer(
        "plan",
        name,
        lambda: document,
        values={"n_runs": len(runs), "n_seeds": n_seeds},
        rows={"runs": pd.DataFrame(one.cells() for one in runs)},
        files=[file],
    )


def answer_of_seeds(
    found: Mapping[float, PlannedSeeds], metric: Metric, limit: float, pilot: str
) -> Answer:
    """How many seeds and runs tell a loss from nothing, by the power that is asked for."""
    frame = pd.DataFrame(
        {"power_asked": asked, "n_seeds": one.n_seeds, "n_runs": one.n_runs, "power": one.power}
        for asked, one in found.items()
    )
    one, loss = next(iter(found.values())), f"a loss of {limit:g} of {metric.label}"
    rows = [
        [f"{asked:.0%}", f"{each.n_seeds:,}", f"{each.n_runs:,}", f"{each.power:.1%}"]
        for asked, each in found.items()
    ]
    columns = row_columns("probability asked for", "seeds", "runs", "probability")
    document = Document(
        title=f"Seeds that tell {loss} from nothing",
        question="How many seeds does a staleness curve take?",
        answer=[
            f"{' or '.join(row[1] for row in rows)} seeds tell {loss} from nothing, with a "
            f"probability of {' or '.join(row[0] for row in rows)}."
        ],
        table=Table("Seeds and runs of the whole measurement", columns, rows),
        remarks=[
            f"The loss is that of a failure of {FAILED_FRACTION:.1%} of the servers at any time; "
            f"the test is one-sided, at a level of {LEVEL:.0%}.",
            f"Seeds scatter by {one.spread:.2g}, as the {one.n_pilot} seeds of {pilot} say.",
            f"A curve is for use from {FEWEST_SEEDS_TO_USE} seeds.",
        ],
    )
    values = {"metric": metric.value, "limit": limit, "pilot": pilot, "spread": one.spread}
    values |= {"n_pilot": one.n_pilot}
    return Answer("seeds", pilot, lambda: document, frames={"seeds": frame}, values=values)
