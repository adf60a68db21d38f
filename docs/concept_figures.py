"""The figures of docs/concepts.md that no command draws: PLS and ETTR, by `import cprsim`."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import cprsim
from cprsim.plots.axes import log_scale, title_axes
from cprsim.plots.save import save_figure
from cprsim.plots.style import series_line, style

FIGURES = Path(__file__).parent / "figures"
JOB = {"simulation.replications": 500}
CPR = {"strategy": "cpr", "target_pls": 0.05}
HOURS, MTBF_H, SERVERS = 12.0, 12.0, 4  # of quickstart


def pls_figure() -> str:
    """PLS of partial recovery over the interval, beside half an interval per failed shard."""
    swept = cprsim.sweep("quickstart", {"recovery.interval": "0.25h:6h:log6"}, _only("partial"))
    table = swept.of("pls")
    hours = table[swept.axes[0]]
    expected = HOURS / MTBF_H * hours / 2 / HOURS / SERVERS
    with style():
        axes = _axes("PLS over the interval", "quickstart, partial recovery, 500 jobs each")
        axes.plot(hours, expected, color="#555555", label="failures × interval / 2 / servers")
        _points(axes, hours, table, "simulated", 0)
        axes.set(xlabel="save interval [h]", ylabel="PLS")
        log_scale(axes, "x")
        log_scale(axes, "y")
        return _kept(axes, "concept-pls", "PLS grows in proportion to the interval")


def ettr_figure() -> str:
    """ETTR over the MTBF, by strategy."""
    swept = cprsim.sweep(
        "quickstart", {"failures.mtbf": "2h:48h:log6"}, _only("full", "partial", CPR)
    )
    table = swept.of("ettr")
    with style():
        axes = _axes("ETTR over the MTBF", "quickstart, 500 jobs each")
        for number, name in enumerate(swept.strategies):
            line = table[table["strategy"] == name]
            _points(axes, line[swept.axes[0]], line, name, number)
        axes.set(xlabel="MTBF of the job [h]", ylabel="ETTR: useful / wall time")
        log_scale(axes, "x")
        return _kept(axes, "concept-ettr", "ETTR falls as failures come closer together")


def _only(*strategies: object) -> dict[str, object]:
    return JOB | {"recovery": list(strategies)}


def _axes(title: str, caption: str) -> Axes:
    axes = Figure(figsize=(7, 3.6), layout="constrained").add_subplot()
    title_axes(axes, title, caption)
    return axes


def _points(axes: Axes, x: pd.Series, table: pd.DataFrame, label: str, number: int) -> None:
    look = series_line(number)
    ends = (table["mean"] - table["low"], table["high"] - table["mean"])
    axes.errorbar(
        x, table["mean"], yerr=ends, label=label,
        color=look.colour, marker=look.marker, linestyle=look.dashes,
    )  # fmt: skip


def _kept(axes: Axes, name: str, alternative: str) -> str:
    """The figure in docs/figures; its line in the document changes when the figure does."""
    axes.legend()
    figure = axes.figure
    assert isinstance(figure, Figure)
    (png,) = save_figure(figure, FIGURES / name, ("png",))
    digest = hashlib.sha256(png.read_bytes()).hexdigest()[:12]
    return f"\n![{alternative}](figures/{name}.png) <!-- {digest} -->\n"
