"""Synchronised trainers: examples per second and sync gap, simulated and by the load model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isinf, nan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.job.records import NO_NUMBER, S_PER_H
from cprsim.job.sync_setting import SyncSetting
from cprsim.pages.answer import Answer
from cprsim.pages.chart import Chart, Panel, Series, chart_figure, floats
from cprsim.pages.document import Document, Picture, Section, Table
from cprsim.results.words import percent, percent_number, significant
from cprsim.training.in_step.load_model import (
    SpeedPoint,
    linear_samples_per_h,
    load_model,
    saturates_at,
)

LINEAR = 0.95  # share of linear scaling below which an algorithm counts as saturated
N_ON_LINE = 200  # points of the load model's line

Curve = Sequence[SpeedPoint]
Row = dict[str, Any]


def answer_of_sync(curves: Sequence[Curve], name: str) -> Answer:
    """One algorithm or several, each over the number of trainers."""
    return Answer(
        "sync",
        name,
        lambda: _document(curves, name),
        frames={"points": pd.DataFrame([_row(point) for curve in curves for point in curve])},
    )


def _row(point: SpeedPoint) -> Row:
    setting, model = point.setting, load_model(point.setting)
    linear_per_h = linear_samples_per_h(setting)
    return {
        "algorithm": setting.name,
        "n_trainers": setting.n_trainers,
        "elp": setting.elp,
        "examples_per_s": point.samples_per_h / S_PER_H,
        "examples_per_s_load_model": model.samples_per_h / S_PER_H,
        "examples_per_s_linear": linear_per_h / S_PER_H,
        "linear_fraction": point.samples_per_h / linear_per_h,
        "sync_gap": point.gap,
        "sync_gap_load_model": model.gap,
        "saturates_at_load_model": saturates_at(setting),
    }


# ------------------------------------------------------------------------------ the document


def _document(curves: Sequence[Curve], name: str) -> Document:
    picture = Picture(
        "Examples per second and sync gap over the number of trainers",
        "Left examples per second, right the sync gap, over the number of trainers. Points are "
        "simulated, lines the load model. The table has the numbers.",
        lambda: chart_figure(_chart(curves, name)),
        name="sync",
    )
    return Document(
        title=f"How fast trainers in step are: {name}",
        question="How fast are the trainers, and how often do they synchronise?",
        answer=[_answer([_row(curve[-1]) for curve in curves])],
        table=_table([_row(point) for curve in curves for point in curve], curves[0][0].setting),
        remarks=[_sentence([_row(point) for point in curve]) for curve in curves],
        sections=[Section("Over the number of trainers", [picture])],
    )


def _answer(last: Sequence[Row]) -> str:
    fastest, *slower = sorted(last, key=lambda row: row["examples_per_s"], reverse=True)
    text = (
        f"With {fastest['n_trainers']} trainers {fastest['algorithm']} processes "
        f"{fastest['examples_per_s']:,.0f} examples per second, "
        f"{percent(fastest['linear_fraction'])} of linear scaling"
    )
    speeds = [f"{row['algorithm']} {row['examples_per_s']:,.0f}" for row in slower]
    return f"{'; '.join([text, *speeds])}."


def _table(points: Sequence[Row], setting: SyncSetting) -> Table:
    """A row per algorithm and number of trainers."""
    return Table(
        caption=(
            "Examples per second (EPS) and sync gap (iterations of a trainer between two "
            f"synchronisations); {setting.n_threads} threads per trainer, batch {setting.batch}, "
            f"{S_PER_H * 1000 * setting.iteration.mean_h:.3g} ms per iteration, "
            f"{setting.dense_bytes / 1e6:.3g} MB of dense weights; compared with the load model"
        ),
        headings=[
            "algorithm",
            "trainers",
            "EPS simulated",
            "EPS load model",
            "% of linear",
            "sync gap simulated",
            "sync gap load model",
        ],
        rows=[
            [
                row["algorithm"],
                str(row["n_trainers"]),
                f"{row['examples_per_s']:,.0f}",
                f"{row['examples_per_s_load_model']:,.0f}",
                percent_number(row["linear_fraction"]),
                *(
                    NO_NUMBER if isinf(row[gap]) else significant(row[gap])
                    for gap in ("sync_gap", "sync_gap_load_model")
                ),
            ]
            for row in points
        ],
        grouped=True,
    )


def _sentence(rows: Sequence[Row]) -> str:
    """Where one algorithm saturates: in the simulation, and by the load model."""
    below = [row["n_trainers"] for row in rows if row["linear_fraction"] < LINEAR]
    text = f"within {1 - LINEAR:.0%} of linear throughout"
    if below:
        text = f"below {LINEAR:.0%} of linear from {below[0]} trainers on"
    most = rows[0]["saturates_at_load_model"]
    modelled = f"; saturated at {most:.1f} trainers by the load model" if most < inf else ""
    return f"{rows[0]['algorithm']}: {text}{modelled}."


def _chart(curves: Sequence[Curve], name: str) -> Chart:
    """Left examples per second, right the sync gap, a colour per algorithm."""
    speed: list[Series] = []
    gap: list[Series] = []
    for curve in curves:
        setting = curve[0].setting
        n = floats(point.setting.n_trainers for point in curve)
        fine = np.linspace(1, max(n), N_ON_LINE)
        numbers = np.unique(fine.round().astype(int))
        model = [load_model(replace(setting, n_trainers=int(x))) for x in numbers]
        for panel, height in ((speed, _thousands), (gap, _gap)):
            line = np.interp(fine, numbers, [height(point) for point in model])
            points = floats(height(point) for point in curve)
            panel.append(Series(setting.name, floats(fine), floats(line)))
            panel.append(Series(setting.name, n, points, kind="points"))
    gap_label = "iterations between synchronisations"
    panels = (
        Panel("Throughput", "trainers", "thousand examples per second", tuple(speed)),
        Panel("Sync gap", "trainers", gap_label, tuple(gap), y_log=True),
    )
    subtitle = "points: simulated; lines: the load model"
    return Chart(f"Throughput and sync gap over trainers: {name}", subtitle, panels)


def _thousands(point: SpeedPoint) -> float:
    return point.samples_per_h / S_PER_H / 1000


def _gap(point: SpeedPoint) -> float:
    return point.gap if 0 < point.gap < inf else nan
