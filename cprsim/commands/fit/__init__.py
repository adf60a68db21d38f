"""``fit``: the failures of a log's nodes, or the costs of a log's saves and loads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge

from cprsim.commands import command
from cprsim.commands.fit.answer import answer_of_costs, answer_of_fit
from cprsim.commands.options import Bootstrap, CliOption, FileName, with_fields_of
from cprsim.errors import ParameterError, one_line, watch
from cprsim.files import require_new, write_new
from cprsim.logs.files import head_of
from cprsim.logs.fit.cost_fit import COST_KINDS, costs_fragment, fit_costs, read_transfers
from cprsim.logs.fit.fragments import Fragment, failures_fragment, fragment_of
from cprsim.logs.fit.lifetimes import Age
from cprsim.logs.fit.report import fit_failures
from cprsim.logs.formats import names, read_log
from cprsim.logs.spec import LogSpec
from cprsim.pages.answer import Answer

COSTS_FORMAT = "costs"  # of --format
N_BOOTSTRAP = 199  # samples by default


@command("cprsim fit failures.csv --period 2026-01-01..2026-01-21")
@with_fields_of(
    LogSpec,
    format=f"{', '.join(names())}; costs: saves and loads. Default: guessed, and shown.",
)
def fit(
    log: Annotated[str | Path, CliOption(metavar="LOG")],
    *,
    age: Age | None = None,
    job_nodes: Annotated[int | None, Ge(1)] = None,
    bootstrap: Bootstrap = N_BOOTSTRAP,
    save: FileName = None,
    **log_options: Any,
) -> Answer:
    r"""Fit distributions to a log of failures, or of saves and loads.

    A log of failures names nodes and when they were down: gaps, up-times and repairs are fitted,
    for the section `failures` of a scenario. A CSV with the columns kind (save, load, detect,
    reschedule), start, end or duration, and bytes if known is fitted for the section `costs`.

    Parameters
    ----------
    log : str or Path
        The log; it may be packed.
    **log_options : options of the command
        How the log is read, and what of it counts: ``format``, ``nodes``, ``period``, ``columns``,
        ``ignore``, ``down``, ``time_unit``, ``date_format``, ``tz``, ``system``, ``repair``,
        ``coalesce``, ``together``, ``cause``, ``not_cause``, ``node``, as ``cprsim fit --help``
        and ``help(cprsim.fit)`` describe them.
    age : {"new", "unknown"}, optional
        Nodes when the log begins; unknown leaves out their first up-times. Default: new.
    job_nodes : int, optional
        Nodes of the job that the fragment is for; default: all.
    bootstrap : int, default 199
        Samples behind each p-value; 0 for none.
    save : str or Path, optional
        Write the fragment, a section for a scenario, to a new file (YAML).

    Returns
    -------
    Answer
        ``frames["families"]`` (a row per kind of times and family, the best by AIC first),
        ``["parameters"]``, ``["times"]``, ``["observation"]``;
        ``values["fragment"]``, as data ``["failures"]`` or ``["costs"]``;
        ``values["mtbf_h"]`` of the job. ``rows["uptimes"]``: a row per up-time.

    Raises
    ------
    TraceError
        The log can't be read: file, line, value.
    ParameterError
        An option that does not apply, or nothing that can be fitted.

    Examples
    --------
    >>> days = [f"2026-01-{day:02d}" for day in range(1, 21)]
    >>> rows = [f"n{n % 4},{day}T08:00Z,{day}T09:00Z" for n, day in enumerate(days)]
    >>> _ = Path("failures.csv").write_text("\n".join(["node,start,end", *rows]))
    >>> fitted = cprsim.fit("failures.csv", nodes=8, period="2026-01-01..2026-01-21")
    >>> f"{fitted.values['mtbf_h'].mean:.1f} h"
    '24.0 h'
    """
    if save is not None:
        require_new(Path(save))
    spec = LogSpec(**log_options)
    watch.doing("reading the log")
    file = Path(log)
    if spec.format == COSTS_FORMAT or (spec.format is None and _has_costs(file, spec.names)):
        of_failures = {**spec.options_given, "--age": age, "--job-nodes": job_nodes}
        return _costs(file, spec, {option for option, value in of_failures.items() if value},
                      bootstrap, save)  # fmt: skip
    outages = read_log(file, spec)
    watch.doing("fitting")
    fitted = fit_failures(
        outages, one_line(file.name), n_job_nodes=job_nodes, age=age, n_bootstrap=bootstrap,
        cause=spec.cause,
    )  # fmt: skip
    fragment = fragment_of(fitted)
    return answer_of_fit(fitted, fragment, _saved(save, fragment))


def fitted_fragment(log: Path, n_nodes: int) -> tuple[str, tuple[str, ...]]:
    """The section that `fit` writes for a job on `n_nodes` of a log's nodes, and its warnings.

    Raises CprsimError for a log that can't be read, or too few failures for a fit.
    """
    outages = read_log(log, LogSpec())
    fitted = fit_failures(outages, one_line(log.name), n_job_nodes=n_nodes, n_bootstrap=N_BOOTSTRAP)
    return str(failures_fragment(fitted)), fitted.warnings


def _costs(
    log: Path, spec: LogSpec, options: set[str], bootstrap: int, save: str | Path | None
) -> Answer:
    """The fit of a log of saves and loads; most options are for logs of failures."""
    if wrong := sorted(
        options - {"--format", "--column", "--time-unit", "--date-format", "--ignore"}
    ):
        raise ParameterError("belongs to logs of failures, not of saves and loads", wrong[0])
    transfers, notes = read_transfers(log, spec)
    watch.doing("fitting")
    fits, origin = fit_costs(transfers, n_bootstrap=bootstrap), one_line(log.name)
    fragment = costs_fragment(fits, origin)
    return answer_of_costs(fits, origin, fragment, notes, _saved(save, fragment))


def _saved(save: str | Path | None, fragment: Fragment | str) -> tuple[Path, ...]:
    """Write the fragment if requested; returns its file. Raises ParameterError without one."""
    if save is None:
        return ()
    if isinstance(fragment, str):
        raise ParameterError(f"there is no fragment to write: {fragment}", option="--save")
    write_new(Path(save), str(fragment))
    return (Path(save),)


def _has_costs(log: Path, names: Mapping[str, str]) -> bool:
    """Whether its columns, or its first rows, are those of a log of saves and loads."""
    lines = head_of(log).lower().splitlines()[:6]
    words = [{word.strip(" \"'") for word in re.split(r"[,;|\t:{}\[\]]", line)} for line in lines]
    told = set[str]().union(*words)
    kind, start, end = (names.get(name, name).lower() for name in ("kind", "start", "end"))
    has_columns = told >= {kind, start} and not told.isdisjoint({end, *COST_KINDS})
    have_kinds = len(words) > 1 and not any(row.isdisjoint(COST_KINDS) for row in words[1:])
    return (has_columns or have_kinds) and "node" not in {*told, *names}
