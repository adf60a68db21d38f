"""Figures of sweeps: which belong to which shape, what they mark, and the same bytes again."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from cprsim.commands.sweep.figures import axis_label
from cprsim.commands.sweep.figures import sweep_figures as figures_of
from cprsim.commands.sweep.folder import AxisColumn, SweepResult
from cprsim.errors import ParameterError
from cprsim.pages.figures import words_of_key

INTERVAL = AxisColumn("recovery.interval", "recovery.interval [min]", "min", True, True)
SAVE = AxisColumn("costs.save", "costs.save [s]", "s", True, False)
FAMILY = AxisColumn("failures.family", "failures.family", "", False, False)
VALUES = {INTERVAL: [15.0, 30.0, 60.0, 120.0], SAVE: [10.0, 20.0, 60.0], FAMILY: ["gamma", "other"]}


def sweep_figures(result: SweepResult) -> dict[str, Figure]:
    """The figures of a sweep, drawn."""
    return {name: draw() for name, draw in figures_of(result).items()}


def rows(axes, place, varied, names=("full", "partial")):
    """Full recovery by its first-order form; partial recovery's grows with the save alone."""
    at = dict(zip([axis.column for axis in axes], place, strict=True))
    interval_min, save_s = (at.get(axis.column) or VALUES[axis][1] for axis in (INTERVAL, SAVE))
    first_order = save_s / 60 / interval_min + interval_min / 2400
    of = {name: save_s / 400 if name == "partial" else first_order for name in names}
    for name in names:
        yield {
            **at, "varied": varied, "strategy": name, "on_failure": "x", "save_interval_h": 1.0,
            "interval_rule": "given", "young_h": 0.75, "daly_h": 0.7,
            "cpr_h": 1.5 if name == "partial" else np.nan,
            "quantity": "overhead_fraction", "n": 100, "reference": "full",
            "mean": of[name], "low": 0.9 * of[name], "high": 1.1 * of[name],
            "difference": np.nan if name == "full" else of[name] - of["full"],
            "difference_low": np.nan, "difference_high": np.nan,
        }  # fmt: skip


def swept(*axes: AxisColumn, mode: str = "grid", names=("full", "partial")) -> SweepResult:
    if mode == "grid":
        places = product(*(VALUES[axis] for axis in axes))
        found = [row for place in places for row in rows(axes, place, "all", names)]
    else:
        found = list(rows(axes, [None] * len(axes), "", names))
        for n, axis in enumerate(axes):
            for value in VALUES[axis]:
                place = [value if i == n else None for i in range(len(axes))]
                found += rows(axes, place, axis.key, names)
    return SweepResult(Path(), "made-up", mode, axes, "full", 20.0, pd.DataFrame(found))


def texts(figure) -> str:
    said = (t.get_text() for t in figure.findobj(matplotlib.text.Text))
    return "\n".join(said).replace("\N{NO-BREAK SPACE}", " ")


def unfinished(result: SweepResult) -> SweepResult:
    """The same, but partial recovery never finishes: it is left out without a warning."""
    lost = result.table["strategy"] == "partial"
    result.table.loc[lost, ["mean", "low", "high", "difference"]] = np.nan
    return result


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (swept(INTERVAL), {"curves"}),
        (unfinished(swept(SAVE, INTERVAL)), {"curves", "map"}),
        (swept(FAMILY, INTERVAL), {"curves", "map"}),
        (swept(SAVE, INTERVAL, names=("full",)), {"curves", "map"}),
        (swept(FAMILY, SAVE, INTERVAL), {"curves", "map"}),
        (swept(SAVE, INTERVAL, FAMILY, mode="one-at-a-time"), {"tornado"}),
    ],
)
def test_the_shape_of_a_sweep_chooses_its_figures(result, names) -> None:
    assert set(sweep_figures(result)) == names


def written(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_map_has_the_cheapest_of_each_point_and_its_overhead() -> None:
    axes = (figure := sweep_figures(swept(SAVE, INTERVAL))["map"]).axes[0]
    for said in ("full is the cheapest", "partial is the cheapest", "15 min", "120 min", "60 s"):
        assert said in texts(figure)
    (cells,) = axes.collections
    costs = [[(s / 60 / t + t / 2400, s / 400) for t in VALUES[INTERVAL]] for s in VALUES[SAVE]]
    assert (cells.get_array() == np.argmin(costs, axis=2)).all()
    np.testing.assert_allclose(np.float64(written(axes)), 100 * np.min(costs, axis=2).ravel(), 5e-3)


def test_a_map_of_one_strategy_has_any_of_its_quantities() -> None:
    result = swept(SAVE, INTERVAL)
    saves = result.table.assign(quantity="saves", mean=7.0 * result.table["mean"])
    both = replace(result, table=pd.concat([result.table, saves]))
    draw = figures_of(both)["map"]
    own, other = draw(strategy="partial").axes[0], draw(strategy="partial", metric="saves").axes[0]
    assert written(own) == np.repeat(["2.5", "5", "15"], 4).tolist()
    assert written(other) == np.repeat(["0.175", "0.35", "1.05"], 4).tolist()
    with pytest.raises(ParameterError, match="of which strategy: full, partial"):
        draw(metric="saves")
    figure = figures_of(unfinished(swept(SAVE, INTERVAL)))["map"]()
    assert "full, the cheapest at each point" in texts(figure)
    assert len(figure.axes) == 2  # beside it the colours
    both.table["mean"] = np.nan  # no strategy finishes anywhere: the cells are blank
    assert [written(draw(strategy=name).axes[0]) for name in ("", "full")] == [[], []]


def test_an_interval_has_its_minimum_and_what_the_formulas_choose_in_its_own_unit() -> None:
    figure = sweep_figures(swept(INTERVAL))["curves"]
    said = texts(figure)
    for mark in ("lowest", "Young: 45 min", "Daly: 42 min", "full", "partial"):
        assert mark in said
    assert "CPR" not in said  # it is of partial recovery, which no interval here changes
    axes = figure.axes[0]
    rings = [line for line in axes.lines if line.get_marker() == "o" and line.get_markersize() > 8]
    at = [float(line.get_xdata()[0]) for line in rings if len(line.get_xdata())]
    assert at == [30.0]  # of full recovery: 20 s, 2400 min: sqrt(800) = 28 min; partial is flat
    varying, flat = sweep_figures(swept(INTERVAL, SAVE))["curves"].axes
    assert {"lowest", "Young"} <= {*varying.get_legend_handles_labels()[1]}
    assert not {"lowest", "Young"} & {*flat.get_legend_handles_labels()[1]}
    many = swept(INTERVAL, SAVE, names=("full", *"abcdef", "partial"))  # the last is the cheapest
    said = texts(figures_of(replace(many, name=150 * "n"))["curves"]())
    assert [words for words in ("not shown: e, f", "n\nn") if words not in said] == []


def test_a_tornado_has_the_widest_bar_on_top_and_names_its_ends() -> None:
    figure = sweep_figures(swept(SAVE, INTERVAL, FAMILY, mode="one-at-a-time"))["tornado"]
    full, partial = (
        [label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes[:2]
    )
    plain = [label.replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ") for label in full]
    assert plain[0] == "save interval: 30 min to 120 min"
    assert plain[1] == "cost of a save: 10 s to 60 s"
    assert ["no\N{NO-BREAK SPACE}effect" in x or "no effect" in x for x in partial] == [
        False, True, True
    ]  # fmt: skip


def test_with_prices_a_tornado_in_money_stands_beside_that_of_the_overhead() -> None:
    result = swept(SAVE, INTERVAL, FAMILY, mode="one-at-a-time")
    cost = result.table.assign(quantity="cost_month", mean=1000.0 * result.table["mean"])
    priced = replace(result, table=pd.concat([result.table, cost]), currency="EUR")
    figures = sweep_figures(priced)
    assert set(figures) == {"tornado", "money"}
    hours, money = (figures[name].axes[0] for name in ("tornado", "money"))
    assert money.get_xlabel() == "EUR for 730.5 h of useful work"
    widths = [[bar.get_width() for bar in axes.patches] for axes in (hours, money)]
    np.testing.assert_allclose(widths[1], 10.0 * np.array(widths[0]))
    assert "Cost of a month" in texts(figures["money"])


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("costs.save", "cost of a save"),
        ("recovery.full.interval", "save interval of full"),
        ("recovery.gemini.options.remote_every", "remote every of gemini"),
        ("scopes.process.share", "share of process failures"),
        ("scopes.rack.failures.mtbf", "mean time between rack failures"),
        ("job.of.nobody", "job.of.nobody"),
    ],
)
def test_axes_have_the_words_of_the_field(key: str, words: str) -> None:
    assert words_of_key(key) == words
    assert axis_label(AxisColumn(key, key, "h", numeric=True, logarithmic=False)) == f"{words} [h]"
