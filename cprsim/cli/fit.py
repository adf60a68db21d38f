"""``cprsim fit`` and ``cprsim presets``: distributions from a log of failures, and ready ones."""

from __future__ import annotations

from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli.options import AsJson, column_names, settled
from cprsim.cli.saying import complain, say, say_json
from cprsim.foreign import one_line

if TYPE_CHECKING:
    from cprsim.failures.outages import Outages
    from cprsim.fitting.trace_fit import TraceFit


class Format(StrEnum):
    """How a log is written."""

    auto = "auto"
    tidy = "tidy"
    infinitehbd = "infinitehbd"
    lanl = "lanl"


class Age(StrEnum):
    """What is known of a node's age when its observation begins."""

    new = "new"
    unknown = "unknown"


Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="OURS=THEIRS",
        help="Of a CSV: what a column is called, e.g. start=begin; may be repeated.",
    ),
]
TimeUnit = Annotated[
    str | None, typer.Option(help="Of a CSV: unit of times that are numbers: ms, s, min, h, d.")
]
Bootstrap = Annotated[
    int, typer.Option(help="Samples behind each p-value; 0 for none.", min=0, max=100_000)
]
Seed = Annotated[int, typer.Option(help="Of the bootstrap.", min=0)]


def fit(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="The failure log.", show_default=False)
    ],
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="tidy: CSV with node, start, end (and cause); auto: infinitehbd for .json, lanl "
            "where --system is given, else tidy.",
        ),
    ] = Format.auto,
    nodes: Annotated[
        int | None,
        typer.Option(help="Nodes observed, with those that never failed.", show_default=False),
    ] = None,
    system: Annotated[
        int | None, typer.Option(help="Of lanl: which system.", show_default=False)
    ] = None,
    first: Annotated[
        str | None,
        typer.Option("--from", help="Start of the observation, as the log writes times."),
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", help="End of the observation, itself excluded.")
    ] = None,
    node: Annotated[str | None, typer.Option(help="This node alone, by its name.")] = None,
    cause: Annotated[
        str | None,
        typer.Option(
            help="Only causes that contain this text; the others' outages censor the up-times."
        ),
    ] = None,
    columns: Columns = None,
    time_unit: TimeUnit = None,
    repair: Annotated[
        str | None,
        typer.Option(
            help="Of a CSV: how long outages last of which it names no end, e.g. '2 h'.",
            show_default=False,
        ),
    ] = None,
    age: Annotated[
        Age | None,
        typer.Option(
            help="new: nodes are new when the log begins; unknown: their first up-time is left "
            "out. Absent: as new, with a warning where that matters.",
            show_default=False,
        ),
    ] = None,
    bootstrap: Bootstrap = 199,
    seed: Seed = 0,
    circle: Annotated[
        bool,
        typer.Option(
            "--circle", help="Simulate the log from its fit, and compare the two (groups, lemons)."
        ),
    ] = False,
    job_nodes: Annotated[
        int | None,
        typer.Option(
            help="Write the fragment for a job on so many of the nodes; default: all of them.",
            min=1,
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="FILE",
            help="Write the fragment to a new file (YAML).",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to draw figures.", callback=settled),
    ] = None,
) -> None:
    """Fit distributions to a log of failures: gaps, up-times of nodes, repairs."""
    from cprsim.cli.fit_observed import observed
    from cprsim.cli.fit_output import Shown, as_object, print_fit
    from cprsim.cli.terminal import Terminal
    from cprsim.errors import ParameterError
    from cprsim.fitting.fragments import nodes_of_job
    from cprsim.fitting.lifetimes import FirstUptime
    from cprsim.fitting.trace_fit import fit_trace
    from cprsim.results.new_file import require_new, write_new

    if save is not None:
        require_new(save)
    form = _form(form, trace, system)
    outages = _read(trace, form, nodes, system, (first, last), columns or [], time_unit, repair)
    if cause is not None:
        outages = outages.choosing(cause)
    if node is not None:
        outages = outages.of_node(node)
    nodes_of_job(job_nodes, outages.n_nodes)
    policy = FirstUptime((age or Age.new).value)
    known = observed(
        outages,
        policy,
        form=form.value,
        nodes=nodes,
        node=node,
        period=(first, last),
        age=age and age.value,
        cause=cause,
    )
    fitted = fit_trace(outages, first=policy, n_bootstrap=bootstrap, seed=seed, observed=known)
    shown = Shown.of(
        fitted, one_line(trace.name), n_job_nodes=job_nodes, circle_seed=seed if circle else None
    )
    figures = _draw(fitted, out) if out is not None else []
    if save is not None and shown.fragment is not None:
        write_new(save, shown.fragment)
    if as_json:
        say_json(as_object(shown, figures))
    else:
        print_fit(Terminal(), shown)
        for path in figures:
            say(path)
    if save is not None and shown.fragment is None:
        raise ParameterError(f"--save: there is no fragment to write: {shown.why_no_fragment}")
    if save is not None:
        complain(f"fragment written to {save}")


def presets(as_json: AsJson = False) -> None:
    """List failure rates that others published or that were fitted to public logs."""
    from dataclasses import asdict

    from cprsim.cli.fit_output import print_presets
    from cprsim.cli.terminal import Terminal
    from cprsim.failures.presets import PRESETS

    if as_json:
        say_json([asdict(one) for one in PRESETS])
        return
    print_presets(Terminal())


def _form(form: Format, trace: Path, system: int | None) -> Format:
    """How the log is written, where the user leaves that to us."""
    if form is not Format.auto:
        return form
    is_json = ".json" in trace.suffixes
    return Format.infinitehbd if is_json else Format.lanl if system else Format.tidy


def _read(
    trace: Path,
    form: Format,
    nodes: int | None,
    system: int | None,
    period: tuple[str | None, str | None],
    columns: list[str],
    time_unit: str | None,
    repair: str | None,
) -> Outages:
    from cprsim.errors import ParameterError
    from cprsim.failures.traces import read_infinitehbd, read_lanl, read_tidy

    if form is not Format.tidy and repair is not None:
        raise ParameterError(f"--repair: belongs to format `tidy`, not `{form.value}`")
    if form is Format.infinitehbd:
        if period != (None, None):
            raise ParameterError("--from and --to: this format is read as a whole")
        return read_infinitehbd(trace, n_nodes=nodes)
    if form is Format.lanl:
        return read_lanl(trace, system=system, period=period, n_nodes=nodes)
    return read_tidy(
        trace,
        columns=column_names(columns),
        time_unit=time_unit,
        n_nodes=nodes,
        period=period,
        repair_h=None if repair is None else _hours(repair),
    )


def _hours(repair: str) -> float:
    """The option ``--repair`` [h]. Raises ParameterError where it is no time."""
    from cprsim.errors import ParameterError
    from cprsim.units import TIME

    try:
        hours = TIME.parse(repair)
        if not 0 <= hours < inf:
            raise ParameterError("is no time from 0 on")
    except ParameterError as error:
        raise ParameterError(f"--repair: {repair!r} {error}") from None
    return hours


def _draw(fitted: TraceFit, out: Path) -> list[Path]:
    from cprsim.errors import ResultError
    from cprsim.plots.failure_fit import fit_figures
    from cprsim.plots.save import save_figure

    try:
        out.mkdir(parents=True, exist_ok=True)
        return [
            path
            for name, figure in fit_figures(fitted).items()
            for path in save_figure(figure, out / f"fit-{name}")
        ]
    except OSError as error:
        raise ResultError(f"can't write to {out}: {error.strerror or error}") from error
