"""What ``cprsim rehearse`` prints: predicted beside measured, and what each is worth."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table

from cprsim.present.terminal import print_whole, say
from cprsim.rehearsal.rehearsing import Attempt, Rehearsal
from cprsim.rehearsal.verdict import PLS, ComparedQuantity

HEADINGS = ("predicted", "measured", "error", "")


def print_rehearsal(console: Console, rehearsal: Rehearsal) -> None:
    """Print the table, and under it what was calibrated, replayed and not valid."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("strategy")
    table.add_column("seconds in")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for policy in rehearsal.policies:
        judged = rehearsal.verdict(policy)
        if judged is None:
            table.add_row(policy.name, "no valid run", "", "", "", "")
            continue
        for number, line in enumerate(judged.lines):
            table.add_row(policy.name if number == 0 else "", line.name, *_cells(line))
        table.add_section()
    print_whole(console, table)
    for sentence in sentences(rehearsal):
        say(console, sentence)


def _cells(line: ComparedQuantity) -> list[str]:
    form = "{:.4f}" if line.name == PLS else "{:.2f}"
    error = line.error_fraction
    shown = "" if error is None else f"{100 * error:+.1f} %"
    off = "off" if line.off else ""
    return [form.format(line.predicted), form.format(line.measured), shown, off]


def sentences(rehearsal: Rehearsal) -> Iterator[str]:
    """What the table does not say."""
    was = rehearsal.calibration
    yield (
        f"Calibrated without failures: a whole save stalls {was.stall_s:.3f} s (its bytes alone "
        f"{was.nominal_stall_s:.3f} s), a spare is there after {was.activation_s * 1e3:.0f} ms, a "
        f"step takes {was.step_s * 1e3:.1f} ms of {was.pace_s * 1e3:.1f} ms. Detection, "
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
    found = list(of.accounts)
    if not of.equal_bits:
        found.append(f"not the same bits (AUC {of.auc:.6f} and {of.auc_of_replay:.6f})")
    if of.bytes_saved != of.bytes_of_replay:
        found.append(f"{of.bytes_saved:,} bytes saved and {of.bytes_of_replay:,}")
    return "; ".join(found)


def _name(one: Attempt) -> str:
    return f"{one.planned.policy.name}, trace {one.planned.trace}, attempt {one.number}"
