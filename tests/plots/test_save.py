"""Names and values of users are drawn as they are written, wherever they stand in a figure."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

from cprsim.plots.axes import fold, style
from cprsim.plots.chart import Band, Chart, Panel, Series
from cprsim.plots.draw_chart import chart_figure
from cprsim.plots.save import bytes_of, save_figure
from cprsim.plots.timeline import timeline_figure
from tests.plots import test_figures as hand
from tests.plots import test_sweep_figures as sweeps

NO_FORMULA = r"$x_{\alpha$"  # matplotlib ends in an error where it takes this for mathematics
NAMES = (NO_FORMULA, "$a$", r"\$b\$", "$", "a_b^c", "x$y$z")


def words(figure: Figure) -> set[str]:
    bytes_of(figure, "svg")  # spells out what no page shows
    file = BytesIO()
    with style(), rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    root = ElementTree.fromstring(file.getvalue())
    return {
        "".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")
    }


def everywhere(name: str) -> Figure:
    """A figure that says a name wherever one can stand."""
    with style():
        figure = Figure(figsize=(9, 7), layout="constrained")
        axes = figure.subplots()
        figure.suptitle(f"suptitle {name}")
        axes.set_title(f"title {name}")
        axes.set_ylabel(f"label {name}")
        axes.plot([0, 1], [1, 100], label=f"legend {name}")
        axes.set_xticks([0, 1], [fold(f"tick {name}", 99), "other"])
        axes.annotate(f"note {name}", (0.5, 10))
        axes.legend()
        figure.supxlabel(f"below {name}")
    return figure


@pytest.mark.parametrize("name", NAMES)
def test_every_text_of_a_figure_means_itself(name) -> None:
    said = words(everywhere(name))
    for place in ("suptitle", "title", "label", "legend", "tick", "note", "below"):
        assert f"{place} {name}" in said


def test_controls_are_spelled_out_so_that_an_svg_can_be_read() -> None:
    assert r"title \x1b[31m\u202eevil" in words(everywhere("\x1b[31m\u202eevil"))


@pytest.mark.filterwarnings("ignore:Glyph")
def test_runs_sweeps_and_charts_with_dollars_in_names_are_drawn(tmp_path, monkeypatch) -> None:
    named = replace(hand.CPR, name="cpr " + NO_FORMULA)
    events = hand.events(hand.FULL_EVENTS, named.name)
    save_figure(timeline_figure(hand.result((named,), events)), tmp_path / "timeline")
    monkeypatch.setitem(sweeps.VALUES, sweeps.FAMILY, [NO_FORMULA, "$a$"])
    for axes, mode in (((sweeps.FAMILY, sweeps.SAVE), "grid"),
                       ((sweeps.SAVE, sweeps.FAMILY), "one-at-a-time")):  # fmt: skip
        swept = sweeps.swept(*axes, mode=mode, names=("full", "a $x_{$ b"))
        for name, figure in sweeps.sweep_figures(swept).items():
            save_figure(figure, tmp_path / name)
    panel = Panel(
        NO_FORMULA, NO_FORMULA, NO_FORMULA,
        (Series(NO_FORMULA, (NO_FORMULA, "b"), (1.0, 2.0)),), (Band(NO_FORMULA, 1.0, 2.0),),
    )  # fmt: skip
    save_figure(chart_figure(Chart(NO_FORMULA, NO_FORMULA, (panel,))), tmp_path / "chart")
