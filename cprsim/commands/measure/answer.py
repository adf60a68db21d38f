"""A staleness curve: the accuracy lost by stale shards, and the curve's validity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite, nan
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from cprsim.accuracy.curve import BY_PLS, Response, StalenessCurve
from cprsim.job.losses import MORE_BYTES, WHOLE, Metric
from cprsim.job.records import HIGH, Estimate, Floats
from cprsim.pages.answer import Answer
from cprsim.pages.chart import Chart, Panel, Series, chart_figure, floats
from cprsim.pages.document import Document, Picture, Section, Table
from cprsim.results.identity import flat
from cprsim.results.words import ends, portion, significant, with_ends, with_interval
from cprsim.training.measuring.checks import FAILS_BEYOND
from cprsim.training.measuring.curve import FAILED_FRACTION, TYPICAL_INTERVAL, typical_loss
from cprsim.training.measuring.fit import SeedMean
from cprsim.training.measuring.runs import COUNTED_INTERVAL

N_ON_LINE = 50  # of the figure: enough for a band
PORTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)  # of the samples lost; the answer has the first
EQUAL, OFTEN = ", equal bytes", ", small tables with every sub-save: more bytes"


def answer_of_curve(curve: StalenessCurve, **about: Any) -> Answer:
    """The answer that the file of a curve holds."""
    held_out = pd.DataFrame(_held_out(curve))
    frames = {
        "strategies": _strategies(curve),
        "losses": pd.concat(map(_losses, curve.responses), ignore_index=True),
        "weights": pd.concat(map(_weights, curve.responses), ignore_index=True),
        **({"held_out": held_out} if len(held_out) else {}),
    }
    return Answer(
        "curve",
        curve.name,
        lambda: _document(curve, frames),
        frames=frames,
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
        **about,
    )


def inputs_of_curve(curve: StalenessCurve) -> dict[str, str]:
    """The trained model, and the program and command that wrote the file, key by key."""
    inputs = {**curve.manifest, "kernel": curve.kernel, "command": curve.command or None}
    return dict(flat(inputs, ""))


# ------------------------------------------------------------------------------ frames


def _strategies(curve: StalenessCurve) -> pd.DataFrame:
    shares = curve.bytes_shares
    written = {WHOLE: 1.0, **shares} if shares else {}
    frame = pd.DataFrame(
        {
            "strategy": response.strategy,
            "metric": response.metric.value,
            "by": response.by,
            **_slope(response).columns("loss_per_pls"),
            "intercept": response.intercept,
            "interval_share": response.interval_share,
            "most_pls": response.most_pls,
            "n_seeds": int(response.degrees) + 1 if isfinite(response.degrees) else None,
            "bytes_over_partial": written.get(response.strategy, nan),
        }
        for response in curve.responses
    )
    partial_slope = frame[frame["strategy"] == WHOLE].set_index("metric")["loss_per_pls"]
    frame["over_partial"] = frame["loss_per_pls"] / frame["metric"].map(
        partial_slope[partial_slope != 0]
    )
    return frame


def _slope(response: Response) -> Estimate:
    """The loss at the largest PLS that was measured over that PLS, without the intercept."""
    loss, half = float(response.loss[-1]), _quantile(response) * float(response.standard_error[-1])
    return Estimate(loss, loss - half, loss + half).times(1 / response.most_pls)


def _losses(response: Response) -> pd.DataFrame:
    portions = np.array(
        sorted({*(PORTIONS if response.by == BY_PLS else ()), *floats(response.pls)})
    )
    losses = dict(zip(("loss", "loss_low", "loss_high"), _loss_at(response, portions), strict=True))
    labels = {"strategy": response.strategy, "metric": response.metric.value, "pls": portions}
    return pd.DataFrame({**labels, **losses, "extrapolated": portions > response.most_pls})


def _loss_at(response: Response, pls: Floats) -> tuple[Floats, Floats, Floats]:
    """Loss at each weighted PLS, and the ends of its 95 % interval."""
    loss, error = response.predict(pls)
    half = _quantile(response) * error
    return loss, loss - half, loss + half


def _quantile(response: Response) -> float:
    distribution = stats.t(response.degrees) if isfinite(response.degrees) else stats.norm
    return float(distribution.ppf(HIGH))


def _weights(response: Response) -> pd.DataFrame:
    """How much a lost sample counts; the logarithm is linear between these shares of the job."""
    labels = {"strategy": response.strategy, "metric": response.metric.value}
    return pd.DataFrame(
        {**labels, "at_fraction": response.weight.at, "weight": response.weight.weight}
    )


def _held_out(curve: StalenessCurve) -> Iterator[dict[str, Any]]:
    """Losses of runs held out of the fit, divided by the predicted losses."""
    for metric in curve.metrics:
        for check in curve.checks.get(metric.value, {}).get("held_out", ()):
            ratio = SeedMean(**check["measured_over_predicted"])
            low, high = (ratio.mean + sign * ratio.half_width for sign in (-1, 1))
            yield {
                "strategy": check["strategy"],
                "metric": metric.value,
                "n_failures": check["n_failures"],
                "pls": check["pls"],
                "loss": check["measured"],
                **Estimate(ratio.mean, low, high).columns("measured_over_predicted"),
                "standard_error": ratio.standard_error,
                "prediction": check["verdict"],
            }


# ------------------------------------------------------------------------------ the document


def _document(curve: StalenessCurve, frames: Mapping[str, pd.DataFrame]) -> Document:
    picture = Picture(
        "Accuracy lost against the portion of lost samples",
        "Lines: loss against weighted PLS by strategy, with 95 % intervals.",
        lambda: chart_figure(_chart(curve)),
        name="staleness",
    )
    held_out = [frames["held_out"]] if "held_out" in frames else []
    trained = [("identity of the trained model", str(curve.identity))]
    fitness = [] if curve.kernel is None else ["The curve is fit for use."]
    if curve.unfit:
        why = "; ".join(curve.unfit)
        fitness = [f"NOT FIT FOR USE: {why}. 'cprsim select' refuses this curve."]
    return Document(
        title=f"What stale shards cost in accuracy: {curve.name}",
        question="How much accuracy does a job lose by the samples that its failed servers lose?",
        answer=[*fitness, _answer(frames["losses"])],
        table=_table(frames["strategies"]),
        remarks=list(_remarks(curve)),
        sections=[
            Section("Loss against PLS", [picture]),
            Section("How far it holds", [_histories(frame) for frame in held_out]),
            Section(
                "What was measured",
                [Table("", ["", "value"], [*trained, *inputs_of_curve(curve).items()], ["value"])]
                if curve.kernel
                else [],
            ),
        ],
    )


def _answer(losses: pd.DataFrame) -> str:
    """The accuracy lost with a hundredth of the samples."""
    rows = losses[losses["pls"] == PORTIONS[0]]
    if rows.empty:
        return "It gives the loss of recovery systems by the number of their failures and saves."
    name = WHOLE if WHOLE in set(rows["strategy"]) else rows["strategy"].iloc[0]
    costs = [
        f"{Metric(metric).loss_label} {with_interval(loss, high - loss)}"
        for metric, loss, high in rows.loc[
            rows["strategy"] == name, ["metric", "loss", "loss_high"]
        ].to_numpy()
    ]
    share = f"{100 * PORTIONS[0]:g} % of the samples (weighted PLS {PORTIONS[0]:g})"
    return f"Losing {share} under {name} recovery costs: {', '.join(costs)}."


def _table(strategies: pd.DataFrame) -> Table:
    """Loss per PLS of each strategy, and the bytes that its saves write."""
    return Table(
        "Slopes per weighted PLS, beside an intercept, ± half of the 95 % interval; bytes if "
        f"saving every {COUNTED_INTERVAL:.0%} of the run",
        ["loss", "strategy", "per PLS", "/ partial's", "bytes / partial's"],
        [
            [Metric(row["metric"]).loss_label, row["strategy"],
             with_interval(row["loss_per_pls"], row["loss_per_pls_high"] - row["loss_per_pls"]),
             significant(row["over_partial"]), significant(row["bytes_over_partial"])]
            for row in strategies.to_dict("records")
        ],
        ["strategy"],
        grouped=True,
    )  # fmt: skip


def _remarks(curve: StalenessCurve) -> Iterator[str]:
    """Metrics that are unfit for use, and the loss of one failure."""
    for metric, why in curve.unfit_metrics.items():
        yield f"No limit of {metric.label} is taken: {'; '.join(why)}."
    lost = [
        f"{with_ends(loss.mean, *loss.interval())} of {response.metric.label}"
        for response in curve.responses
        if response.strategy == WHOLE and curve.kernel is not None
        for loss in [typical_loss(response)]
    ]
    if lost:
        yield (
            f"A failure of {FAILED_FRACTION:.1%} of the servers at any time, with saves every "
            f"{TYPICAL_INTERVAL:.0%} of the run, costs under {WHOLE} recovery {' and '.join(lost)}."
        )


def _histories(held_out: pd.DataFrame) -> Table:
    over = "measured_over_predicted"
    return Table(
        "Losses of runs held out of the fit, divided by the prediction of the other seeds' fit. It "
        f"does not hold if the whole interval lies beyond {FAILS_BEYOND:.0%} from 1; otherwise it "
        "holds if the interval lies within 0 to 2",
        ["strategy", "metric", "prediction", "failures", "PLS", "loss", "/ predicted", "95 %"],
        [
            [row["strategy"], Metric(row["metric"]).label, row["prediction"],
             str(row["n_failures"]), portion(row["pls"]), f"{row['loss']:.5f}",
             significant(row[over]), ends(row[f"{over}_low"], row[f"{over}_high"])]
            for row in held_out.to_dict("records")
        ],
        ["metric", "prediction"],
    )  # fmt: skip


def _chart(curve: StalenessCurve) -> Chart:
    panels = []
    for metric in curve.metrics:
        responses = [response for response in curve.responses if response.metric == metric]
        often = {
            response.strategy for response in responses if response.strategy.endswith(MORE_BYTES)
        }
        groups = {"": responses}
        if often:
            groups = {
                EQUAL: [response for response in responses if response.strategy not in often],
                OFTEN: [response for response in responses if response.strategy in often | {WHOLE}],
            }
        label = f"{metric.loss_label}{' [nats]' if metric == Metric.LOG_LOSS else ''}"
        for suffix, group in groups.items():
            title, lines = f"{metric.loss_label}{suffix}", tuple(map(_line, group))
            panels.append(Panel(title, "weighted PLS, portion of samples", label, lines))
    return Chart(
        f"Accuracy lost over the portion of lost samples: {curve.name}",
        "Lines: loss by the measured response, with its 95 % interval.",
        tuple(panels),
    )


def _line(response: Response) -> Series:
    pls = np.union1d(response.pls, np.linspace(0.0, max(response.pls), N_ON_LINE))
    y, low, high = map(floats, _loss_at(response, pls))
    return Series(response.strategy, floats(pls), y, low, high)
