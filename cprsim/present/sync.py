"""What ``cprsim sync`` prints: simulation and load model side by side, a row per trainer count."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isinf
from typing import Any

from rich.console import Console

from cprsim.files import finite_or_none
from cprsim.present.document import Column, Table, Words
from cprsim.present.terminal import say, show
from cprsim.records import NO_NUMBER
from cprsim.results.words import percent_number, significant
from cprsim.sync.simulation import SpeedPoint

SECONDS = 3600.0  # in an hour
LINEAR = 0.95  # share of linear scaling below which a form counts as saturated


def print_sync(console: Console, name: str, curves: Sequence[Sequence[SpeedPoint]]) -> None:
    """Print the table, and below it where each form saturates."""
    say(console, _heading(name, curves))
    show(console, [sync_table(curves), Words([sentence(curve) for curve in curves])])


def _heading(name: str, curves: Sequence[Sequence[SpeedPoint]]) -> str:
    first = curves[0][0].setting
    return (
        f"{name}: {first.n_threads} threads per trainer, batch {first.batch}, "
        f"{SECONDS * 1000 * first.iteration.mean_h:.3g} ms per iteration, "
        f"{first.dense_bytes / 1e6:.3g} MB of dense weights. EPS: examples per second; sync gap: "
        "iterations of a trainer between two of its synchronisations."
    )


def sync_table(curves: Sequence[Sequence[SpeedPoint]]) -> Table:
    """A row per form and number of trainers: simulation and load model side by side."""
    return Table(
        caption="Examples per second and sync gap over the number of trainers",
        columns=[
            Column("algorithm", is_number=False),
            Column("trainers"),
            Column("ELP"),
            Column("EPS simulated", brief="EPS\nsimulated"),
            Column("EPS by the load model", brief="EPS\nload model"),
            Column("% of linear", brief="% of\nlinear"),
            Column("sync gap simulated", brief="sync gap\nsimulated"),
            Column("sync gap by the load model", brief="sync gap\nload model"),
        ],
        rows=[[point.setting.name, *_cells(point)] for curve in curves for point in curve],
        grouped=True,
    )


def _cells(point: SpeedPoint) -> list[str]:
    eps = point.simulated.samples_per_h
    return [
        str(point.setting.n_trainers),
        f"{point.setting.elp:,}",
        f"{eps / SECONDS:,.0f}",
        f"{point.model.samples_per_h / SECONDS:,.0f}",
        percent_number(eps / point.model.linear_samples_per_h),
        _gap(point.simulated.gap),
        _gap(point.model.gap),
    ]


def _gap(iterations: float) -> str:
    return NO_NUMBER if isinf(iterations) else significant(iterations)


def sentence(curve: Sequence[SpeedPoint]) -> str:
    """Where one form saturates: in the simulation, and by the load model."""
    name = curve[0].setting.name
    held_up = [
        point
        for point in curve
        if point.simulated.samples_per_h < LINEAR * point.model.linear_samples_per_h
    ]
    predicted = curve[0].model.saturates_at
    text = f"{name}: " + (
        f"below {LINEAR:.0%} of linear from {held_up[0].setting.n_trainers} trainers on"
        if held_up
        else f"within {1 - LINEAR:.0%} of linear throughout"
    )
    if predicted != inf:
        text += f"; the load model has it saturated at {predicted:.1f}"
    return f"{text}."


def sync_as_json(curves: Sequence[Sequence[SpeedPoint]]) -> dict[str, Any]:
    """One object for scripts; a gap that there is not is null."""
    return {
        "curves": [
            {
                "algorithm": curve[0].setting.name,
                "saturates_at": finite_or_none(curve[0].model.saturates_at),
                "points": [_plain(point) for point in curve],
            }
            for curve in curves
        ]
    }


def _plain(point: SpeedPoint) -> dict[str, float | int | None]:
    return {
        "trainers": point.setting.n_trainers,
        "elp": point.setting.elp,
        "eps": point.simulated.samples_per_h / SECONDS,
        "eps_load_model": point.model.samples_per_h / SECONDS,
        "eps_linear": point.model.linear_samples_per_h / SECONDS,
        "sync_gap": finite_or_none(point.simulated.gap),
        "sync_gap_load_model": finite_or_none(point.model.gap),
    }
