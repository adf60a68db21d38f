"""``cprsim fit`` and ``fit-costs``: distributions from logs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cprsim.cli.options import AsJson, Bootstrap, column_names, settled
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import complain, show, write_document
from cprsim.errors import one_line
from cprsim.making.options import JOB_NODES, SEED


class Age(StrEnum):
    """What is known of a node's age when its observation begins."""

    new = "new"
    unknown = "unknown"


class By(StrEnum):
    """What a log is taken apart by."""

    cause = "cause"


Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="OURS=THEIRS",
        help="Of a table: what a column is called, e.g. start=begin; may be repeated.",
    ),
]
TimeUnit = Annotated[
    str | None, typer.Option(help="Of a table: unit of times that are numbers: ms, s, min, h, d.")
]
Seed = Annotated[int, typer.Option(help="Of the bootstrap.", min=SEED["ge"])]
PageFile = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Write one HTML file, too.", callback=settled),
]


def fit(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="The failure log.", show_default=False)
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="How the log is written: tidy (a table), jsonl, parquet, slurm-events, "
            "slurm-jobs, kubernetes, nvidia-xid, prometheus, infinitehbd, lanl; default: guessed "
            "from its beginning, and said.",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="N|FILE",
            help="Nodes observed, with those that never failed: how many, or a table with node "
            "and any of installed, entry, exit.",
            show_default=False,
        ),
    ] = None,
    node_dates: Annotated[
        bool,
        typer.Option(
            "--node-dates",
            help="Of tables and lanl: nodes are there between the dates that the log itself names.",
        ),
    ] = False,
    coalesce: Annotated[
        str | None,
        typer.Option(
            help="Failures of one node within so long of each other are one, e.g. '10 min'.",
            show_default=False,
        ),
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
    together: Annotated[
        str | None,
        typer.Option(
            help="Failures of nodes within so long of the one before are one event, e.g. '1 min'; "
            "default: those of one instant.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        By | None,
        typer.Option(help="A fit for each cause, and which to fix first.", show_default=False),
    ] = None,
    reach: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CAUSE=WHAT",
            help="Of --by cause: what it kills: process, gpu, node (default), rack, all; may be "
            "repeated.",
        ),
    ] = None,
    columns: Columns = None,
    time_unit: TimeUnit = None,
    date_format: Annotated[
        str | None,
        typer.Option(
            help="Of a table: form of its dates, e.g. '%d/%m/%Y %H:%M'; default: ISO 8601.",
            show_default=False,
        ),
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option(
            "--tz",
            metavar="ZONE",
            help="Zone of time stamps that name none, e.g. Europe/Berlin; default: UTC.",
            show_default=False,
        ),
    ] = None,
    repair: Annotated[
        str | None,
        typer.Option(
            help="How long outages last of which the log names no end, e.g. '2 h'.",
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
            min=JOB_NODES["ge"],
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
    page: PageFile = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to draw figures.", callback=settled),
    ] = None,
) -> None:
    """Fit distributions to a log of failures: gaps, up-times of nodes, repairs."""
    from cprsim.errors import ParameterError
    from cprsim.files import require_new, write_new, writes
    from cprsim.making.fit_log import log_asked, read_to_fit
    from cprsim.present.fit import blocks_of_fit, document_of_fit
    from cprsim.present.fit_json import fit_as_json

    if save is not None:
        require_new(save)
    asked = log_asked(
        trace, form=form, nodes=nodes, node_dates=node_dates, system=system, period=(first, last),
        columns=column_names(columns or []), time_unit=time_unit, date_format=date_format, tz=tz,
        repair=repair, coalesce=coalesce, together=together, cause=cause, node=node,
        age=age and age.value,
    )  # fmt: skip
    reaches = _by_cause_said(reach or [])
    pulse.doing("reading the log")
    log = read_to_fit(asked)
    pulse.doing("fitting")
    report = log.report(
        by="cause" if by else None, reach=reaches, job_nodes=job_nodes, bootstrap=bootstrap,
        seed=seed, circle=circle,
    )  # fmt: skip
    figures: list[Path] = []
    if out:
        from cprsim.plots.fit import fit_figures
        from cprsim.plots.save import save_figures

        pulse.doing("drawing figures")
        with writes(f"to {out}"):
            out.mkdir(parents=True, exist_ok=True)
            figures = save_figures(fit_figures(report.fitted), out, prefix="fit-")
    if page is not None:
        complain(f"page written to {write_document(document_of_fit(report), page)}")
    if save is not None and report.to_save is not None:
        write_new(save, report.to_save)
    show(
        lambda: fit_as_json(report, figures),
        lambda: blocks_of_fit(report),
        as_json=as_json,
        files=figures,
    )
    if save is not None and report.to_save is None:
        raise ParameterError(f"--save: there is no fragment to write: {report.why_no_fragment}")
    if save is not None:
        complain(f"fragment written to {save}")


def fit_costs(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="CSV with a row for each: kind (save, load; also detect, reschedule), start, end, "
            "and bytes if known.",
            show_default=False,
        ),
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="OURS=THEIRS",
            help="What a column is called, e.g. start=begin; may be repeated.",
        ),
    ] = None,
    time_unit: Annotated[
        str | None, typer.Option(help="Unit of times that are numbers: ms, s, min, h, d.")
    ] = None,
    bootstrap: Bootstrap = 199,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit what saves and loads cost to a log of them, for a scenario's `costs`."""
    from cprsim.fitting.cost_fit import fit_costs as fitted
    from cprsim.fitting.cost_fit import read_transfers
    from cprsim.fitting.cost_fragment import costs_fragment
    from cprsim.present.fit_costs import costs_as_json, costs_blocks

    pulse.doing("reading the log")
    transfers = read_transfers(log, columns=column_names(columns or []), time_unit=time_unit)
    pulse.doing("fitting")
    fits = fitted(transfers, n_bootstrap=bootstrap, seed=seed)
    fragment = costs_fragment(fits, one_line(log.name))
    show(
        lambda: costs_as_json(fits, fragment, transfers.notes),
        lambda: costs_blocks(fits, fragment, transfers.notes),
        as_json=as_json,
    )


def _by_cause_said(reach: list[str]) -> dict[str, str]:
    """What the user says each cause kills. Raises ParameterError where it is not CAUSE=WHAT."""
    from cprsim.errors import ParameterError

    for entry in reach:
        if "=" not in entry:
            raise ParameterError(f"--reach {entry!r}: write CAUSE=WHAT, e.g. disk=node")
    pairs = [entry.rsplit("=", 1) for entry in reach]
    return {cause.strip(): what.strip() for cause, what in pairs}
