"""Figures of a result: stacked overheads and a timeline. The only room with matplotlib."""

from __future__ import annotations

from cprsim.plots.loss import loss_figure
from cprsim.plots.overhead import overhead_figure
from cprsim.plots.percentiles import percentiles_figure
from cprsim.plots.save import FORMATS, draw_result, save_figure, svg_text
from cprsim.plots.timeline import timeline_figure

__all__ = [
    "FORMATS",
    "draw_result",
    "loss_figure",
    "overhead_figure",
    "percentiles_figure",
    "save_figure",
    "svg_text",
    "timeline_figure",
]
