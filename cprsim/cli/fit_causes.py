"""What ``cprsim fit --by cause`` prints, and the fragments that it writes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from cprsim.cli.saying import complain
from cprsim.errors import ParameterError
from cprsim.fitting.causes import AGES_H, RESTART_H, SAVE_H, OfCause
from cprsim.fitting.fragments import fragment
from cprsim.fitting.observation import Observation
from cprsim.fitting.trace_fit import fit_trace
from cprsim.foreign import one_line
from cprsim.results.new_file import require_new, write_new

MONTH_H = 720.0


@dataclass(frozen=True, slots=True)
class CauseFragment:
    """The section `failures` of one cause alone, or why there is none."""

    cause: str
    text: str | None
    why_not: str


def fragments(
    causes: tuple[OfCause, ...], origin: str, n_job: int, observed: Observation
) -> tuple[CauseFragment, ...]:
    """One for each cause, without p-values."""
    made = []
    for one in causes:
        try:
            fitted = fit_trace(
                one.outages, n_bootstrap=0, observed=replace(observed, cause=one.name)
            )
            written = f"# cause: {one_line(one.name)}\n{fragment(fitted, origin, n_job)}"
            made.append(CauseFragment(one.name, written, ""))
        except ParameterError as error:
            made.append(CauseFragment(one.name, None, str(error)))
    return tuple(made)


def print_causes(
    console: Console, causes: tuple[OfCause, ...], written: tuple[CauseFragment, ...], n_job: int
) -> None:
    """The tables, and the fragments below them."""
    _say(console, f"\nCauses, for a job on {n_job} node(s), the one to fix first on top:")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("cause", "failures", "of the job per 30 days", "repair [h]", "overhead saved"):
        table.add_column(heading, justify="left" if heading == "cause" else "right")
    for one in causes:
        table.add_row(*_costs(one))
    console.print(table)
    _say(
        console,
        f"  overhead saved: what full recovery with saves at Young's interval would cost less "
        f"without the cause;\n  assumed: a save and a restart take {SAVE_H * 60:g} and "
        f"{RESTART_H * 60:g} min. With 95 % intervals, as if failures did not bunch.",
    )
    _say(console, "Up-times to each cause, the others censoring, and the share it strikes first:")
    for one in causes:
        _say(console, f"  {_fit_line(one)}")
    for each in written:
        _say(
            console, "\n" + (each.text or f"# {one_line(each.cause)}: no fragment: {each.why_not}")
        )


def save_fragments(path: Path, written: tuple[CauseFragment, ...]) -> None:
    """Each fragment to a new file of its own, beside `path`: ``NAME-1-disk.yaml``.

    Raises
    ------
    ResultError : one of them is there already, or can't be written
    """
    there = [(_beside(path, number, one), one.text) for number, one in enumerate(written, 1)]
    for file, text in there:
        if text is not None:
            require_new(file)
    for file, text in there:
        if text is not None:
            write_new(file, text)
            complain(f"fragment written to {file}")


def causes_object(
    causes: tuple[OfCause, ...], written: tuple[CauseFragment, ...]
) -> list[dict[str, Any]]:
    """The same for scripts, in the same order."""
    return [
        {
            "cause": one.name,
            "n_failures": one.n_failures,
            "job_rate_per_h": _triple(*one.job_rate_per_h.triple),
            "mean_repair_h": one.mean_repair_h if isfinite(one.mean_repair_h) else None,
            "overhead_saved": one.saved,
            "uptimes": None
            if one.uptimes is None
            else {p.name: _triple(*p.triple) for p in (*one.uptimes.parameters, one.uptimes.mean)},
            "not_fitted": one.why_not or None,
            "cumulative_incidence": {f"{age_h:g} h": one.incidence.at(age_h) for age_h in AGES_H},
            "fragment": each.text or f"# no fragment: {each.why_not}\n",
        }
        for one, each in zip(causes, written, strict=True)
    ]


def _triple(estimate: float, low: float, high: float) -> dict[str, float]:
    return {"estimate": estimate, "low": low, "high": high}


def _costs(one: OfCause) -> list[str]:
    rate, low, high = (per_h * MONTH_H for per_h in one.job_rate_per_h.triple)
    repair = f"{one.mean_repair_h:.3g}" if isfinite(one.mean_repair_h) else "–"
    rates = f"{rate:.3g} [{low:.3g}, {high:.3g}]"
    return [one_line(one.name, 30), str(one.n_failures), rates, repair, f"{one.saved:.2%}"]


def _fit_line(one: OfCause) -> str:
    shares = ", ".join(f"{one.incidence.at(age_h):.2%} by {age_h / 24:g} d" for age_h in AGES_H)
    if one.uptimes is None:
        return f"{one_line(one.name)}: not fitted: {one.why_not}; {shares}"
    shown = (*one.uptimes.parameters, one.uptimes.mean)
    numbers = ", ".join(f"{p.name} {p.mean:.4g} [{p.low:.4g}, {p.high:.4g}]" for p in shown)
    return f"{one_line(one.name)}: weibull: {numbers}; {shares}"


def _beside(path: Path, number: int, one: CauseFragment) -> Path:
    slug = re.sub(r"[^a-z0-9]+", "-", one.cause.lower()).strip("-")[:40] or "cause"
    return path.with_name(f"{path.stem}-{number}-{slug}{path.suffix}")


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
