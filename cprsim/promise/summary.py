"""What came of the promise, as one JSON object and as a table."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

import cprsim
from cprsim.kernel.blas import description
from cprsim.measuring.runs import read_seed
from cprsim.promise.cells import CONFIDENCE, Cell
from cprsim.promise.exhaustive import NEAR_ENOUGH, Beside, search
from cprsim.promise.histories import FRESH_SEED, N_HISTORIES
from cprsim.promise.keeping import ENOUGH, FIRST_SEED, MOST_SEEDS, Job, Kept
from cprsim.results.manifest import git_state

LEAST_KEPT = 27 / 30
LEAST_USED = 0.6  # mean of measured over limit: a merely cautious selector fails


def summary(jobs: list[Job], kept: list[Kept], folder: Path) -> dict[str, Any]:
    """Every cell, the verdict, and what made them; of JSON's types."""
    by_cell = {one.cell: one for one in kept}
    cells = [_cell(job, cell, by_cell.get(cell)) for job in jobs for cell in job.cells]
    beside = [
        one
        for job in jobs
        for one in search(job, [by_cell[cell] for cell in job.cells if cell in by_cell])
    ]
    settled = [one for one in cells if one["measured"] is not None]
    n_below = sum(one["below_limit"] for one in settled)
    used = sum(one["measured_over_limit"] for one in settled) / max(len(settled), 1)
    return {
        "command": "make promise",
        "verdict": {
            "cells": len(cells),
            "below_limit": n_below,
            "mean_measured_over_limit": used,
            "known_to_a_tenth": sum(
                one["standard_error"] <= ENOUGH * one["limit"] for one in settled
            ),
            "kept": len(settled) == len(cells)
            and n_below >= LEAST_KEPT * len(cells)
            and used >= LEAST_USED,
        },
        "cells": cells,
        "exhaustive_search": _exhaustive(beside),
        "manifest": {
            "cprsim": cprsim.__version__,
            "commit": git_state(),
            "blas": description(),
            "confidence": CONFIDENCE,
            "seeds_of_training": f"{FIRST_SEED} on",
            "seed_of_failures": FRESH_SEED,
            "histories_simulated": N_HISTORIES,
            **_effort(jobs, folder),
        },
    }


def _effort(jobs: list[Job], folder: Path) -> dict[str, Any]:
    n_runs, cpu_s = 0, 0.0
    for job in jobs:
        for seed in range(FIRST_SEED, FIRST_SEED + MOST_SEEDS):
            result = read_seed(folder / job.loaded.scenario.name, seed)
            n_runs += len(result.quality) + (result.twin is not None)
            cpu_s += result.cpu_s
    return {"n_runs": n_runs, "cpu_minutes": round(cpu_s / 60, 1)}


def _cell(job: Job, cell: Cell, one: Kept | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "scenario": cell.scenario,
        "strategy": cell.strategy,
        "limit": cell.limit,
        "interval_h": None,
        "measured": None,
        "runs": 0,
        "below_limit": False,
    }
    if cell.policy is not None:
        interval_h = cell.policy.save_interval_h
        told |= {
            "interval_h": interval_h if isfinite(interval_h) else None,
            "saves": int(job.experiment.useful_h / interval_h),
            "predicted": cell.predicted,
            "held": cell.held,
        }
    if one is not None and isfinite(one.mean):
        told |= {
            "measured": one.mean,
            "standard_error": one.standard_error,
            "predicted_on_fresh_failures": one.predicted,
            "runs": one.n_runs,
            "below_limit": one.is_below,
            "measured_over_limit": one.over_limit,
        }
    return told


def _exhaustive(beside: list[Beside]) -> dict[str, Any]:
    """The choices beside the grid, and how many cost nearly as little as the best there."""
    return {
        "near_enough": NEAR_ENOUGH,
        "within": sum(one.over_best <= NEAR_ENOUGH for one in beside),
        "cells": [
            {
                "scenario": one.cell.scenario,
                "strategy": one.cell.strategy,
                "limit": one.cell.limit,
                "chosen": asdict(one.chosen),
                **{
                    name: point and asdict(point)
                    for name, point in (
                        ("best_of_same_risk", one.same_risk),
                        ("best_of_same_risk_as_measured", one.measured_same_risk),
                        ("best_with_loss_known", one.loss_known),
                    )
                },
                "chosen_over_best": _number(one.over_best),
                "price_of_uncertainty": _number(one.price_of_uncertainty),
            }
            for one in beside
        ],
    }


def _number(value: float) -> float | None:
    return value if isfinite(value) else None


def print_summary(console: Console, document: dict[str, Any]) -> None:
    """A row per cell, and the verdict."""
    headings = (
        "limit\nof AUC",
        "T_save\n\\[h]",
        "predicted",
        "measured",
        "runs",
        "over\nlimit",
    )
    table = _table(*headings)
    for cell in document["cells"]:
        table.add_row(cell["scenario"], cell["strategy"], *_numbers(cell))
    console.print(table)
    verdict = document["verdict"]
    console.print(
        f"{verdict['below_limit']} of {verdict['cells']} cells are below their limit; measured "
        f"over limit is {verdict['mean_measured_over_limit']:.2f} in the mean: the promise is "
        f"{'kept' if verdict['kept'] else 'NOT kept'}."
    )


def _numbers(cell: dict[str, Any]) -> list[str]:
    if cell["measured"] is None:
        return [f"{cell['limit']:.2g}", "–", "–", "not measured", str(cell["runs"]), "–"]
    return [
        f"{cell['limit']:.5f}",
        _or_dash(cell["interval_h"], "{:.2f}"),
        f"{cell['predicted']:.5f}",
        f"{cell['measured']:.5f} ± {cell['standard_error']:.5f}",
        str(cell["runs"]),
        f"{cell['measured_over_limit']:.2f}",
    ]


def print_exhaustive(console: Console, document: dict[str, Any]) -> None:
    """A row per cell: what was chosen beside the best of a fine grid, and what doubt costs."""
    headings = (
        "limit\nof AUC",
        "chosen",
        "best of\nsame risk",
        "chosen\nover best",
        "best of same risk,\nas measured",
        "best were the\nloss known",
        "price of\ndoubt",
    )
    table = _table(*headings, title="Overhead, % of useful time (saves)")
    found = document["exhaustive_search"]
    for one in found["cells"]:
        table.add_row(
            one["scenario"],
            one["strategy"],
            f"{one['limit']:.5f}",
            _point(one["chosen"]),
            _point(one["best_of_same_risk"]),
            _or_dash(one["chosen_over_best"], "{:.3f}"),
            _point(one["best_of_same_risk_as_measured"]),
            _point(one["best_with_loss_known"]),
            _or_dash(one["price_of_uncertainty"], "{:.0%}"),
        )
    console.print(table)
    console.print(
        f"{found['within']} of {len(found['cells'])} choices cost at most {found['near_enough']} "
        "times what the best of the same risk on a fine grid of intervals costs."
    )


def _table(*headings: str, title: str | None = None) -> Table:
    """A table of cells, to be filled: which they are, and numbers under some headings."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title)
    for heading in ("scenario", "strategy"):
        table.add_column(heading)
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _point(point: dict[str, Any] | None) -> str:
    return "–" if point is None else f"{100 * point['overhead']:.2f} ({point['saves']})"


def _or_dash(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
