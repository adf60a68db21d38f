"""Training loss over the samples of each strategy's run, with the failures marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cprsim.experiments.accuracy import TrainingOutcome


def loss_figure(measured: TrainingOutcome, name: str) -> Figure:
    """Loss over samples, and beside it what each strategy adds to it, which is far smaller."""
    whole = measured.whole.curve
    thousand = floats(whole.position / 1e3)
    same = [one.policy.name for one in measured.strategies if one.trained is measured.whole]
    without = ", ".join(["no failures", *same])
    losses = [Series(without, thousand, floats(whole.loss))]
    added = [Series(without, thousand, (0.0,) * len(thousand))]
    for one in measured.strategies:
        if one.bytes_written is None or one.trained is None:
            continue
        curve = one.trained.curve
        x, lost_at = curve.position / 1e3, one.reverted_at * whole.position[-1] / 1e3
        for panel, y in ((losses, curve.loss), (added, curve.loss - whole.loss)):
            panel.append(Series(one.policy.name, floats(x), floats(y)))
            marks = floats(np.interp(lost_at, x, y))
            panel.append(Series(one.policy.name, floats(lost_at), marks, kind="points"))
    unfinished = ", ".join(one.policy.name for one in measured.strategies if one.trained is None)
    remarks = [f"replication {measured.replication}", "marks: failed shards go back"]
    remarks += [f"stand-in: {measured.stand_in}"]
    remarks += [f"did not finish: {unfinished}"] if unfinished else []
    if len(losses) == 1:
        remarks[1] = "every strategy rolls everybody back: no model changes"
    x_label = "thousand samples"
    panels = (
        Panel("Training loss", x_label, "training loss [nats]", tuple(losses), y_from_zero=False),
        Panel("Added by failures", x_label, "added [nats]", tuple(added), y_from_zero=False),
    )
    return chart_figure(
        Chart(f"Training loss, and what failures add: {name}", "; ".join(remarks), panels)
    )
