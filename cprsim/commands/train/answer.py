"""Training with one replication's failures: accuracy, overhead, and the training loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from cprsim.job.records import NO_NUMBER
from cprsim.pages.answer import Answer
from cprsim.pages.chart import Chart, Panel, Series, chart_figure, floats
from cprsim.pages.document import Document, Picture, Section, Table
from cprsim.results.words import count, percent_number, saves
from cprsim.training.accuracy import StrategyAccuracy, Trained, TrainingOutcome
from cprsim.training.kernel.metrics import Quality
from cprsim.training.proxy_model import ProxyModel
from cprsim.training.train_in_step import Team

N_AVERAGED = 10  # points of a line whose increases are smaller than its noise


def answer_of_train(
    measured: TrainingOutcome,
    name: str,
    useful_h: float,
    words: str,
    stand_in: ProxyModel | None,
    team: Team | None,
) -> Answer:
    """Effect of one replication's failures on a model, which `words` describe.

    Without a stand-in it is a trainer of the user's own; without a team it was trained alone.
    """
    baseline = measured.whole
    teacher, n_skipped = (stand_in.teacher, stand_in.n_skipped) if stand_in else (None, 0)
    runs = {
        "no failures": baseline,
        **{strategy.policy.name: new for strategy, new in _anew(measured)},
    }
    lost = pd.DataFrame(
        {"strategy": strategy.policy.name, "iterations": iterations}
        for strategy in measured.strategies
        for iterations in strategy.lost_iterations
    )
    return Answer(
        "train",
        name,
        lambda: _document(measured, name, useful_h, list(_remarks(words, stand_in, team))),
        frames={
            "strategies": pd.DataFrame(map(_row, measured.strategies)),
            **({"lost_trainers": lost} if len(lost) else {}),
        },
        values={
            "replication": measured.replication,
            "stand_in": words,
            "skipped_lines": n_skipped,
            "teacher": teacher and _plain(teacher),
            "no_failures": _plain(baseline.quality),
        },
        rows={
            "losses": pd.concat(
                [
                    pd.DataFrame({"run": run, "samples": of.position, "loss": of.loss})
                    for run, of in runs.items()
                ],
                ignore_index=True,
            )
        },
    )


def _row(strategy: StrategyAccuracy) -> dict[str, Any]:
    trained = strategy.trained
    quality = {"auc": None, "log_loss": None} if trained is None else _plain(trained.quality)
    return {
        "strategy": strategy.policy.name,
        "finished": trained is not None,
        "overhead_fraction": None if trained is None else strategy.overhead_fraction,
        "pls": strategy.pls,
        **quality,
        "bytes_written": strategy.bytes_written,
        "tracker_memory_fraction": strategy.tracker_fraction,
    }


def _plain(quality: Quality) -> dict[str, float]:
    return {"auc": quality.auc, "log_loss": quality.log_loss, **quality.others}


def _anew(measured: TrainingOutcome) -> list[tuple[StrategyAccuracy, Trained]]:
    """Strategies whose failures were trained; the others end as the run without failures."""
    return [(strategy, strategy.trained) for strategy in measured.strategies
            if strategy.trained is not None and strategy.bytes_written is not None]  # fmt: skip


# ------------------------------------------------------------------------------ the document


def _document(
    measured: TrainingOutcome, name: str, useful_h: float, remarks: list[str]
) -> Document:
    picture = Picture(
        "Training loss, and what failures add",
        "Lines: loss without failures, and the rise by strategy; marks: failed shards go back.",
        lambda: chart_figure(_chart(measured, name)),
        name="loss",
    )
    return Document(
        title=f"What failures do to a model: {name}, replication {measured.replication}",
        question="What do the failures of one job do to a model?",
        answer=[_answer(measured)],
        table=_table(measured, useful_h),
        remarks=remarks,
        sections=[Section("Training loss", [picture] * bool(len(measured.whole.loss)))],
    )


def _answer(measured: TrainingOutcome) -> str:
    baseline_auc = measured.whole.quality.auc
    changes = [(strategy.trained.quality.auc - baseline_auc, strategy.policy.name)
               for strategy in measured.strategies if strategy.trained is not None]  # fmt: skip
    change, worst = min(changes, default=(0.0, ""), key=lambda change: change[0])
    prefix = f"With the failures of replication {measured.replication}"
    if change >= 0:
        return f"{prefix} no strategy ends below the test AUC without failures, {baseline_auc:.4f}."
    return (
        f"{prefix} {worst} ends at the lowest test AUC, {baseline_auc + change:.4f}: {change:+.5f} "
        f"against {baseline_auc:.4f} without failures."
    )


def _table(measured: TrainingOutcome, useful_h: float) -> Table:
    """A row for the run without failures, and one per strategy."""
    baseline = measured.whole.quality
    rows = [
        ["no failures", "", "", "", f"{baseline.auc:.4f}", "", f"{baseline.log_loss:.4f}", "", ""]
    ]
    for strategy in measured.strategies:
        name, every = strategy.policy.name, saves(strategy.policy, useful_h)
        if strategy.trained is None:
            rows.append([name, every, "did not finish", *[NO_NUMBER] * 6])
            continue
        quality, n_bytes = strategy.trained.quality, strategy.bytes_written
        rows.append([
            name, every, percent_number(strategy.overhead_fraction), f"{strategy.pls:.4f}",
            f"{quality.auc:.4f}", f"{quality.auc - baseline.auc:+.5f}",
            f"{quality.log_loss:.4f}", f"{quality.log_loss - baseline.log_loss:+.5f}",
            NO_NUMBER if n_bytes is None else f"{n_bytes / 1e6:.1f}",
        ])  # fmt: skip
    return Table(
        "Accuracy beside overhead; changes are against the run without failures",
        [
            "strategy", "saves every", "overhead, % of useful", "PLS", "test AUC", "change",
            "test log-loss", "change", "written, MB",
        ],
        rows,
    )  # fmt: skip


def _remarks(words: str, stand_in: ProxyModel | None, team: Team | None) -> Iterator[str]:
    """Remarks on the numbers: skipped lines, noise between seeds, and the set-up."""
    if stand_in is not None and stand_in.n_skipped:
        yield f"Left out of the log: {count(stand_in.n_skipped, 'bad line')}."
    yield "One run per strategy: differences this small vary from seed to seed."
    on = f"a trainer of your own: {words}"
    if stand_in is not None:
        on = f"a stand-in: {words}; tested on the {len(stand_in.test):,} clicks that follow"
    yield f"Accuracy was measured on {on}."
    if team is not None:
        yield (
            f"{team.setting.n_trainers} replicas in step by {team.setting.name}, "
            f"{team.setting.n_threads} threads each, train the last {team.n_trained:,} clicks from "
            f"the model of one trainer; step gain {team.setting.step_gain:.2f}."
        )
    if stand_in is not None and (teacher := stand_in.teacher) is not None:
        yield (
            f"The clicks come from a known model (the teacher), whose AUC is {teacher.auc:.4f} and "
            f"log-loss {teacher.log_loss:.4f}: no model can do better."
        )


def _chart(measured: TrainingOutcome, name: str) -> Chart:
    """Loss over samples without failures, and the far smaller increase by each strategy."""
    baseline = measured.whole
    unchanged = [
        strategy.policy.name
        for strategy in measured.strategies
        if strategy.trained is measured.whole
    ]
    without, x = ", ".join(["no failures", *unchanged]), floats(baseline.position / 1e3)
    losses = [Series(without, x, floats(baseline.loss))]
    added = [Series(without, x, (0.0,) * len(x))]
    for strategy, new in _anew(measured):
        label, x = strategy.policy.name, floats(new.position / 1e3)
        more = pd.Series(new.loss - baseline.loss).rolling(N_AVERAGED, min_periods=1).mean()
        lost_at = strategy.reverted_at * baseline.position[-1] / 1e3
        added += [Series(label, x, floats(more))]
        added += [
            Series(label, floats(lost_at), floats(np.interp(lost_at, x, more)), kind="points")
        ]
    panels = (
        Panel(title, "thousand samples", label, tuple(series), y_from_zero=False)
        for title, label, series in (
            ("Training loss", "training loss [nats]", losses),
            (f"Added by failures, mean of {N_AVERAGED} points", "added [nats]", added),
        )
    )
    subtitle = f"Replication {measured.replication}; marks: failed shards go back."
    return Chart(f"Training loss, and what failures add: {name}", subtitle, tuple(panels))
