"""A rehearsal on real processes: predicted beside measured, and what each is worth."""

from __future__ import annotations

from collections.abc import Iterator

from cprsim.present.document import Block, Column, Table, Words
from cprsim.rehearsal.rehearsing import Attempt, Rehearsal
from cprsim.rehearsal.verdict import PLS, ComparedQuantity

HEADINGS = ("predicted", "measured", "error", "")


def rehearsal_blocks(rehearsal: Rehearsal) -> list[Block]:
    """The table, and under it what was calibrated, replayed and not valid."""
    rows: list[list[str]] = []
    for policy in rehearsal.policies:
        judged = rehearsal.verdict(policy)
        if judged is None:
            rows.append([policy.name, "no valid run", "", "", "", ""])
        else:
            rows += [[policy.name, line.name, *_cells(line)] for line in judged.lines]
    columns = [Column("strategy", is_number=False), Column("seconds in", is_number=False)]
    table = Table(
        "Predicted beside measured", [*columns, *map(Column, HEADINGS)], rows, grouped=True
    )
    return [table, Words(list(sentences(rehearsal)))]


def _cells(line: ComparedQuantity) -> list[str]:
    form = "{:.4f}" if line.name == PLS else "{:.2f}"
    error = line.error_fraction
    percent = "" if error is None else f"{100 * error:+.1f} %"
    off = "off" if line.off else ""
    return [form.format(line.predicted), form.format(line.measured), percent, off]


def sentences(rehearsal: Rehearsal) -> Iterator[str]:
    """What the table does not say."""
    costs = rehearsal.calibration
    yield (
        f"Calibrated without failures: a whole save stalls {costs.stall_s:.3f} s (its bytes alone "
        f"{costs.nominal_stall_s:.3f} s), a spare is there after {costs.activation_s * 1e3:.0f} "
        f"ms, a step takes {costs.step_s * 1e3:.1f} ms of {costs.pace_s * 1e3:.1f} ms. Detection, "
        "rescheduling and bandwidths are the scenario's; all else is predicted."
    )
    yield f"Written before the first run: SHA-256 {rehearsal.digest}."
    if rehearsal.n_left_out:
        yield (
            f"{rehearsal.n_left_out} strikes on processes that were dead already and not noticed "
            "were left out."
        )
    for policy in rehearsal.policies:
        yield from _replay(policy.name, rehearsal.of(policy))
    for one in rehearsal.disagreeing:
        yield f"{_name(one)} differs from its replay: {_differences(one)}."
    for one in rehearsal.attempts:
        if not one.is_valid:
            yield f"{_name(one)} is not valid: {one.load.too_busy}."
    if rehearsal.missing:
        yield (
            "The machine was too busy to tell: run the same command again when it is idle "
            "(`uptime` shows a load average below 1); valid runs are kept."
        )


def _replay(name: str, runs: tuple[Attempt, ...]) -> Iterator[str]:
    if not runs:
        return
    first = runs[0].replayed
    n_equal = sum(one.replayed.equal_bits for one in runs)
    yield (
        f"{name}: AUC {first.auc:.6f}, of the kernel's replay {first.auc_of_replay:.6f}; "
        f"{n_equal} of {len(runs)} runs equal their replay bit by bit."
    )


def _differences(one: Attempt) -> str:
    of = one.replayed
    differences = list(of.accounts)
    if not of.equal_bits:
        differences.append(f"not the same bits (AUC {of.auc:.6f} and {of.auc_of_replay:.6f})")
    if of.bytes_saved != of.bytes_of_replay:
        differences.append(f"{of.bytes_saved:,} bytes saved and {of.bytes_of_replay:,}")
    return "; ".join(differences)


def _name(one: Attempt) -> str:
    return f"{one.planned.policy.name}, trace {one.planned.trace}, attempt {one.number}"
