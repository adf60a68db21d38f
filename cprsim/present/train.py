"""What ``cprsim train`` says: accuracy beside overhead, one row per strategy."""

from __future__ import annotations

from typing import Any

from cprsim.experiments.accuracy import StrategyAccuracy, TrainingOutcome
from cprsim.experiments.train_in_step import Team
from cprsim.kernel.metrics import Quality
from cprsim.present.document import Block, Column, Table, Words
from cprsim.records import NO_NUMBER
from cprsim.results.words import count, percent_number, saves

PAPERS_MEMORY = {  # of trackers, for rows of 16 and of 128 numbers
    "scar": "100 %",
    "mfu": "6.25 % to 0.78 %",
    "ssu": "0.78 % to 0.097 %",
}


def accuracy_blocks(measured: TrainingOutcome, useful_h: float) -> list[Block]:
    """What a terminal shows: the table, what was trained and what is known of it."""
    return [accuracy_table(measured, useful_h), Words(sentences(measured))]


def accuracy_table(measured: TrainingOutcome, useful_h: float) -> Table:
    """A row for the run without failures, and one per strategy."""
    whole = measured.whole.quality
    without = [*[""] * 3, f"{whole.auc:.4f}", "", f"{whole.log_loss:.4f}", "", ""]
    return Table(
        caption="Accuracy beside overhead; changes are against the run without failures",
        columns=[
            Column("strategy", is_number=False),
            Column("saves every", brief="saves\nevery"),
            Column("overhead, % of useful time", brief="overhead\n% of useful"),
            Column("PLS"),
            Column("test AUC", brief="test\nAUC"),
            Column("change"),
            Column("test log-loss", brief="test\nlog-loss"),
            Column("change"),
            Column("written, MB", brief="written\n[MB]"),
        ],
        rows=[
            ["no failures", *without],
            *([one.policy.name, *_cells(one, whole, useful_h)] for one in measured.strategies),
        ],
    )


def _cells(one: StrategyAccuracy, whole: Quality, useful_h: float) -> list[str]:
    every = saves(one.policy, useful_h)
    if one.trained is None:
        return [every, "did not finish", *[NO_NUMBER] * 6]
    quality = one.trained.quality
    return [
        every,
        percent_number(one.overhead_fraction),
        f"{one.pls:.4f}",
        f"{quality.auc:.4f}",
        f"{quality.auc - whole.auc:+.5f}",
        f"{quality.log_loss:.4f}",
        f"{quality.log_loss - whole.log_loss:+.5f}",
        NO_NUMBER if one.bytes_written is None else f"{one.bytes_written / 1e6:.1f}",
    ]


def sentences(measured: TrainingOutcome) -> list[str]:
    """What has to be said with the numbers."""
    what = measured.stand_in
    lines = [
        f"Failures of replication {measured.replication}. Accuracy was measured on "
        f"{what.measured_on}. One run per strategy: differences this small vary from seed to seed."
    ]
    if what.teacher is not None:
        lines.append(
            f"The clicks come from a planted teacher, whose own AUC is {what.teacher.auc:.4f} and "
            f"log-loss {what.teacher.log_loss:.4f}: no model can do better."
        )
    if measured.team is not None:
        lines += _in_step(measured, measured.team)
    if any(one.trained is measured.whole for one in measured.strategies):
        lines.append(
            "A strategy that rolls everybody back ends bit by bit as the run without failures."
        )
    lines += [
        _memory(one.policy.name, one.policy.sub_saves.tracker, one.tracker_fraction)
        for one in measured.strategies
        if one.policy.sub_saves is not None and one.bytes_written is not None
    ]
    if what.n_skipped:
        lines.append(f"Left out of the log: {count(what.n_skipped, 'bad line')}.")
    return lines


def _in_step(measured: TrainingOutcome, team: Team) -> list[str]:
    """How the replicas stayed in step, and what lost ones had not synchronised."""
    setting = team.setting
    lines = [
        f"{setting.n_trainers} replicas in step by {setting.name}, {setting.n_threads} threads "
        f"each; they train the last {team.n_trained:,} clicks, from the model of one trainer on "
        "those before.",
        f"Step gain {setting.step_gain:.2f}: so far all replicas move per step that every worker "
        "makes (docs/shadowsync.md).",
    ]
    for one in measured.strategies:
        if one.lost_iterations:
            mean = sum(one.lost_iterations) / len(one.lost_iterations)
            lines.append(
                f"{one.policy.name}: {count(len(one.lost_iterations), 'trainer')} lost, with "
                f"{mean:.1f} iterations since the last synchronisation on average."
            )
    return lines


def _memory(name: str, tracker: str, fraction: float) -> str:
    recalled = PAPERS_MEMORY.get(tracker)
    beside = "" if recalled is None else f" (the paper's, recalled: {recalled})"
    return f"{name}: its tracker adds {100 * fraction:.3g} % to the tables that it tracks{beside}."


def accuracy_as_json(measured: TrainingOutcome) -> dict[str, Any]:
    """One object for scripts."""
    teacher = measured.stand_in.teacher
    return {
        "replication": measured.replication,
        "stand_in": str(measured.stand_in),
        "skipped_lines": measured.stand_in.n_skipped,
        "teacher": None if teacher is None else _plain(teacher),
        "no_failures": _plain(measured.whole.quality),
        "strategies": [
            {
                "name": one.policy.name,
                "finished": one.trained is not None,
                "overhead_fraction": one.overhead_fraction if one.trained else None,
                "pls": one.pls,
                **_plain(None if one.trained is None else one.trained.quality),
                "bytes_written": one.bytes_written,
                "tracker_memory_fraction": one.tracker_fraction,
                "lost_iterations": list(one.lost_iterations),
            }
            for one in measured.strategies
        ],
    }


def _plain(quality: Quality | None) -> dict[str, float | None]:
    if quality is None:
        return {"auc": None, "log_loss": None}
    return {"auc": quality.auc, "log_loss": quality.log_loss, **quality.others}
