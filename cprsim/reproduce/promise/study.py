"""The study: the selector's intervals held to losses measured on fresh data.

What came of it is one JSON object, of the same form as ``results/promise/summary.json``; the
targets and tables read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import inf, isfinite
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

import cprsim
from cprsim.codec import finite_or_none
from cprsim.curves import chosen_curve
from cprsim.errors import ParameterError
from cprsim.estimate import NO_NUMBER
from cprsim.kernel.blas import description
from cprsim.measuring.runs import read_seed
from cprsim.reproduce.paper import Mark, words
from cprsim.reproduce.promise.cells import CONFIDENCE, PromiseCell
from cprsim.reproduce.promise.exhaustive import NEAR_ENOUGH, ChoiceOnGrid, search
from cprsim.reproduce.promise.histories import FRESH_SEED, N_HISTORIES
from cprsim.reproduce.promise.losses import (
    ENOUGH,
    FIRST_SEED,
    MOST_SEEDS,
    CellLoss,
    OnRound,
    PromisedJob,
    measure_losses,
    no_report,
)
from cprsim.reproduce.study import Study, Work
from cprsim.reproduce.summary import Listing, Target, Tested
from cprsim.results.manifest import git_state
from cprsim.scenario import LoadedScenario
from cprsim.workers import Workers

SCENARIOS = ("criteo-kaggle", "criteo-terabyte", "production-gamma")
LEAST_KEPT = 27 / 30
LEAST_USED = 0.6  # mean of measured over limit: a merely cautious selector fails
Document = dict[str, Any]  # of JSON's types
Column = tuple[str, Callable[[Mapping[str, Any]], str]]  # heading in lines, cell


def numbers(work: Work) -> Document:
    """Measure every cell until its mean is known; the runs are kept in journals."""
    scenarios = [work.scenario(f"{name}.yaml") for name in SCENARIOS]
    return measured(scenarios, work.folder("runs"), work.workers)


def measured(
    scenarios: Sequence[LoadedScenario],
    folder: Path,
    workers: Workers,
    until: float = inf,
    on_round: OnRound = no_report,
) -> Document:
    """Every cell, the verdict, and what made them.

    Parameters
    ----------
    folder : of the journals: a run that was cut off goes on where it was
    until : instant [s since the epoch] after which no run is begun
    on_round : is told what is known before each round

    Raises
    ------
    ParameterError : no curve is shipped for a scenario
    """
    jobs = []
    for loaded in scenarios:
        curve = chosen_curve(loaded)
        if curve is None:
            name = loaded.scenario.name
            raise ParameterError(f"no curve is shipped for the section `kernel` of {name}")
        jobs.append(PromisedJob.of(loaded, curve))
    return document_of(jobs, measure_losses(jobs, folder, workers, until, on_round), folder)


def document_of(
    jobs: list[PromisedJob], kept: list[CellLoss], folder: Path, command: str = "make promise"
) -> dict[str, Any]:
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
        "command": command,
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


def _effort(jobs: list[PromisedJob], folder: Path) -> dict[str, Any]:
    n_runs, cpu_s = 0, 0.0
    for job in jobs:
        for seed in range(FIRST_SEED, FIRST_SEED + MOST_SEEDS):
            result = read_seed(folder / job.loaded.scenario.name, seed)
            n_runs += len(result.quality) + (result.twin is not None)
            cpu_s += result.cpu_s
    return {"n_runs": n_runs, "cpu_minutes": round(cpu_s / 60, 1)}


def _cell(job: PromisedJob, cell: PromiseCell, one: CellLoss | None) -> dict[str, Any]:
    plain: dict[str, Any] = {
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
        plain |= {
            "interval_h": finite_or_none(interval_h),
            "saves": int(job.experiment.useful_h / interval_h),
            "predicted": cell.predicted,
            "held": cell.held,
        }
    if one is not None and isfinite(one.mean):
        plain |= {
            "measured": one.mean,
            "standard_error": one.standard_error,
            "predicted_on_fresh_failures": one.predicted,
            "runs": one.n_runs,
            "below_limit": one.is_below,
            "measured_over_limit": one.over_limit,
        }
    return plain


def _exhaustive(beside: list[ChoiceOnGrid]) -> dict[str, Any]:
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
                "chosen_over_best": finite_or_none(one.over_best),
                "price_of_uncertainty": finite_or_none(one.price_of_uncertainty),
            }
            for one in beside
        ],
    }


# ------------------------------------------------------------------------------ what it says


def _below(document: Document) -> Tested:
    verdict = document["verdict"]
    n_below, n = verdict["below_limit"], verdict["cells"]
    return Tested(n_below >= LEAST_KEPT * n, f"{n_below} of {n}")


def _used(document: Document) -> Tested:
    used = document["verdict"]["mean_measured_over_limit"]
    return Tested(used >= LEAST_USED, f"{used:.2f}")


TARGETS = [
    Target("cells below their limit", words("27 of 30", Mark.PROMISED), _below),
    Target("mean of measured over limit", words("at least 0.6", Mark.PROMISED), _used),
]


def _number_of(key: str, form: Callable[[Any], str]) -> Callable[[Mapping[str, Any]], str]:
    """A cell of a table; a dash where there is no number."""
    return lambda cell: NO_NUMBER if cell.get(key) is None else form(cell[key])


def _limit(cell: Mapping[str, Any]) -> str:
    return f"{cell['limit']:.2g}" if cell["measured"] is None else f"{cell['limit']:.5f}"


def _if_measured(shown: Callable[[Mapping[str, Any]], str], otherwise: str) -> Any:
    return lambda cell: otherwise if cell["measured"] is None else shown(cell)


NAMES: tuple[Column, ...] = (
    ("scenario", lambda cell: str(cell["scenario"])),
    ("strategy", lambda cell: str(cell["strategy"])),
)
CELLS: tuple[Column, ...] = (
    ("limit\nof AUC", _limit),
    ("T_save\n\\[h]", _if_measured(_number_of("interval_h", "{:.2f}".format), NO_NUMBER)),
    ("predicted", _if_measured(_number_of("predicted", "{:.5f}".format), NO_NUMBER)),
    (
        "measured",
        _if_measured(
            lambda cell: f"{cell['measured']:.5f} ± {cell['standard_error']:.5f}", "not measured"
        ),
    ),
    ("runs", lambda cell: str(cell["runs"])),
    ("over\nlimit", _number_of("measured_over_limit", "{:.2f}".format)),
)


def _point(point: Mapping[str, Any]) -> str:
    return f"{100 * point['overhead']:.2f} ({point['saves']})"


CHOICES: tuple[Column, ...] = (
    ("limit\nof AUC", lambda cell: f"{cell['limit']:.5f}"),
    ("chosen", _number_of("chosen", _point)),
    ("best of\nsame risk", _number_of("best_of_same_risk", _point)),
    ("chosen\nover best", _number_of("chosen_over_best", "{:.3f}".format)),
    ("best of same risk,\nas measured", _number_of("best_of_same_risk_as_measured", _point)),
    ("best were the\nloss known", _number_of("best_with_loss_known", _point)),
    ("price of\ndoubt", _number_of("price_of_uncertainty", "{:.0%}".format)),
)
CHOICES_TITLE = "Overhead, % of useful time (saves)"


def _listing(title: str, cells: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> Listing:
    on_one_line = [
        (heading.replace("\n", " ").replace("\\", ""), cell) for heading, cell in columns
    ]
    return Listing.of(title, cells, *NAMES, *on_one_line)


def _near(document: Document) -> str:
    found = document["exhaustive_search"]
    return (
        f"{found['within']} of {len(found['cells'])} choices cost at most {found['near_enough']} "
        "times what the best of the same risk on a fine grid of intervals costs."
    )


def print_summary(console: Console, document: Document) -> None:
    """A row per cell, and the verdict."""
    _print_table(console, document["cells"], CELLS)
    verdict = document["verdict"]
    console.print(
        f"{verdict['below_limit']} of {verdict['cells']} cells are below their limit; measured "
        f"over limit is {verdict['mean_measured_over_limit']:.2f} in the mean: the promise is "
        f"{'kept' if verdict['kept'] else 'NOT kept'}."
    )


def print_exhaustive(console: Console, document: Document) -> None:
    """A row per cell: what was chosen beside the best of a fine grid, and what doubt costs."""
    _print_table(console, document["exhaustive_search"]["cells"], CHOICES, CHOICES_TITLE)
    console.print(_near(document))


def _print_table(
    console: Console,
    cells: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    title: str | None = None,
) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title)
    for heading, _ in NAMES:
        table.add_column(heading)
    for heading, _ in columns:
        table.add_column(heading, justify="right")
    for cell in cells:
        table.add_row(*(shown(cell) for _, shown in (*NAMES, *columns)))
    console.print(table)


STUDY = Study(
    name="promise",
    shows="the selector's intervals held to losses measured on fresh data (up to 90 minutes)",
    module=__name__,
    title="Whether the selector keeps its limits",
    question="Does a job lose no more than the limit at the interval that the selector chose, on "
    "fresh failures, clicks and weights: 5 limits in each of 3 scenarios, for 2 strategies?",
    numbers=numbers,
    targets=TARGETS,
    listings=lambda document: [
        _listing(
            "Loss of AUC, predicted and measured (± one standard error):", document["cells"], CELLS
        ),
        _listing(f"{CHOICES_TITLE}:", document["exhaustive_search"]["cells"], CHOICES),
    ],
    notes=(_near,),
    inputs=tuple(f"{name}.yaml" for name in SCENARIOS),
    by_name_only=True,
)
