"""``fit``: how the nodes of a log fail, or what the saves and loads of a log cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from annotated_types import Ge

from cprsim import watch
from cprsim.api import command
from cprsim.api.parameters import Bootstrap, FileName, Shell
from cprsim.errors import ParameterError, one_line

if TYPE_CHECKING:
    from cprsim.failures.traces.asked import LogOptions
    from cprsim.present.answer import Answer

COSTS, DATES = "costs", "dates"  # of --format, of --nodes
N_BOOTSTRAP = 199  # samples by default


@command
def fit(
    log: Annotated[str | Path, Shell(metavar="LOG")],
    *,
    format: Annotated[str | None, Shell(metavar="NAME")] = None,
    nodes: Annotated[int | str | Path | None, Shell(metavar="N|FILE|dates")] = None,
    period: Annotated[str | None, Shell(metavar="FROM..TO")] = None,
    columns: Annotated[
        Mapping[str, str] | Sequence[str], Shell("--column", "OURS=THEIRS", many=True)
    ] = (),
    time_unit: str | None = None,
    date_format: str | None = None,
    tz: Annotated[str | None, Shell(metavar="ZONE")] = None,
    system: int | None = None,
    repair: Annotated[str | None, Shell(metavar="TIME")] = None,
    coalesce: Annotated[str | None, Shell(metavar="TIME")] = None,
    together: Annotated[str | None, Shell(metavar="TIME")] = None,
    cause: str | None = None,
    node: str | None = None,
    causes: bool = False,
    age: Literal["new", "unknown"] | None = None,
    job_nodes: Annotated[int | None, Ge(1)] = None,
    bootstrap: Bootstrap = N_BOOTSTRAP,
    save: FileName = None,
) -> Answer:
    """Fit distributions to a log of failures, or of saves and loads.

    A log of failures names nodes and when they were down: gaps, up-times and repairs are fitted,
    for the section `failures` of a scenario. A CSV with the columns kind (save, load, detect,
    reschedule), start, end, and bytes if known is fitted for the section `costs`.

    Parameters
    ----------
    log : str or Path
        The log; it may be packed.
    format : str, optional
        How it is written: tidy (a table), jsonl, parquet, slurm-events, slurm-jobs, kubernetes,
        nvidia-xid, prometheus, infinitehbd, lanl; costs: saves and loads. Default: guessed from
        its beginning, and shown.
    nodes : int or str or Path, optional
        Nodes observed, those that never failed included: their number; a table with node and any
        of installed, entry, exit; dates: nodes exist between the dates in the log's own columns
        of these names, or in LANL's records.
    period : str, optional
        The observation, TO excluded, as the log writes times: 2024-01-01..2025-01-01; an end may
        be left out.
    columns : mapping of str to str, or sequence of str, optional
        What a column of a table is called, e.g. start=begin; may be repeated.
    time_unit : str, optional
        Of a table: unit of times that are numbers: ms, s, min, h, d.
    date_format : str, optional
        Of a table: form of its dates, e.g. '%d/%m/%Y %H:%M'; default: ISO 8601.
    tz : str, optional
        Zone of time stamps that name none, e.g. Europe/Berlin; default: UTC.
    system : int, optional
        Of lanl: which system.
    repair : str, optional
        Length of outages whose end is missing in the log, e.g. '2 h'.
    coalesce : str, optional
        Merge failures of one node that are less than this apart, e.g. '10 min'.
    together : str, optional
        Failures of nodes less than this after the one before are one event, e.g. '1 min'; default:
        those of one instant.
    cause : str, optional
        Only causes that contain this text; the others' outages censor the up-times.
    node : str, optional
        This node alone, by its name.
    causes : bool, default False
        A fit for each cause, and which to fix first.
    age : {"new", "unknown"}, optional
        new: nodes are new when the log begins; unknown: their first up-time is left out. Default:
        new, with a warning where it matters.
    job_nodes : int, optional
        Number of the nodes that the job of the fragment has; default: all.
    bootstrap : int, default 199
        Samples behind each p-value; 0 for none.
    save : str or Path, optional
        Write the fragment, a section for a scenario, to a new file (YAML).

    Returns
    -------
    Answer
        ``frames["families"]`` (a row per kind of times and family, the best by AIC first),
        ``["parameters"]``, ``["times"]``, ``["observation"]``, ``["causes"]`` where asked for;
        ``values["fragment"]``, and the same as data: ``values["failures"]`` and ``["scopes"]``,
        or ``["costs"]``; ``values["mtbf_h"]`` of the job.

    Raises
    ------
    TraceError
        The log can't be read: file, line, value.
    ParameterError
        An option that does not apply, or nothing that can be fitted.
    """
    from cprsim.failures.traces.asked import LogOptions
    from cprsim.failures.traces.times import require_zone
    from cprsim.files import require_new
    from cprsim.fitting.causes import taken_apart
    from cprsim.fitting.fragments import nodes_of_job
    from cprsim.fitting.lifetimes import FirstUptime
    from cprsim.fitting.reading import hours_option, read_failures
    from cprsim.fitting.report import report_of
    from cprsim.fitting.trace_fit import fit_trace
    from cprsim.present.fit import answer_of_fit

    if save is not None:
        require_new(Path(save))
    path, names = Path(log), _names(columns)
    if causes and cause is not None:
        raise ParameterError("--causes: takes all causes, --cause one alone")
    n_nodes, dates = _nodes(nodes)
    options = LogOptions(
        n_nodes=n_nodes, system=system, period=_period(period), columns=names, time_unit=time_unit,
        date_format=date_format, tz=None if tz is None else require_zone(tz),
        repair_h=None if repair is None else hours_option(repair, "--repair"),
    )  # fmt: skip
    of_failures = {
        "--nodes": nodes, "--coalesce": coalesce, "--together": together, "--cause": cause,
        "--node": node, "--causes": causes or None, "--age": age, "--job-nodes": job_nodes,
    }  # fmt: skip
    watch.doing("reading the log")
    if format == COSTS or (format is None and _has_costs(path, names)):
        given = {option for option, value in of_failures.items() if value is not None}
        return _costs(path, options, sorted(given), bootstrap, save)
    outages, observed = read_failures(
        path, options, form=format, dates=dates, coalesce=coalesce, together=together, cause=cause,
        node=node, age=age,
    )  # fmt: skip
    n_job, origin = nodes_of_job(job_nodes, outages.n_nodes), one_line(path.name)
    watch.doing("fitting")
    first = FirstUptime(age or "new")
    fitted = fit_trace(outages, first=first, n_bootstrap=bootstrap, observed=observed)
    by_cause = taken_apart(outages, n_job, first, origin, observed) if causes else None
    report = report_of(fitted, origin, n_job, by_cause)
    return answer_of_fit(report, _saved(save, report.to_save, report.why_no_fragment))


def fitted_fragment(log: Path, n_nodes: int) -> tuple[str, tuple[str, ...]]:
    """The section that `fit` writes for a job on `n_nodes` of a log's nodes, and its warnings.

    Raises CprsimError for a log that can't be read, or too few failures for a fit.
    """
    from cprsim.failures.traces.asked import LogOptions
    from cprsim.fitting.fragments import fragment, nodes_of_job
    from cprsim.fitting.reading import read_failures
    from cprsim.fitting.trace_fit import fit_trace

    outages, observed = read_failures(log, LogOptions())
    nodes_of_job(n_nodes, outages.n_nodes)  # refuses more before the fit takes its time
    fitted = fit_trace(outages, n_bootstrap=N_BOOTSTRAP, observed=observed)
    return fragment(fitted, one_line(log.name), n_nodes), fitted.warnings


def _costs(
    log: Path, options: LogOptions, given: Sequence[str], bootstrap: int, save: str | Path | None
) -> Answer:
    """The fit of a log of saves and loads."""
    from cprsim.fitting.cost_fit import fit_costs, read_transfers
    from cprsim.fitting.cost_fragment import costs_fragment
    from cprsim.present.fit_costs import answer_of_costs

    if wrong := [*given, *sorted(options.given() - {"--column", "--time-unit"})]:
        raise ParameterError(f"{wrong[0]}: belongs to logs of failures, not of saves and loads")
    transfers = read_transfers(log, columns=options.columns, time_unit=options.time_unit)
    watch.doing("fitting")
    fits, origin = fit_costs(transfers, n_bootstrap=bootstrap), one_line(log.name)
    fragment = costs_fragment(fits, origin)
    return answer_of_costs(fits, origin, fragment, transfers.notes, _saved(save, fragment, ""))


def _saved(save: str | Path | None, fragment: str | None, why_not: str) -> tuple[Path, ...]:
    """The file of the fragment, where it was asked for. Raises ParameterError if there is none."""
    from cprsim.files import write_new

    if save is None:
        return ()
    if fragment is None:
        raise ParameterError(f"--save: there is no fragment to write: {why_not}")
    write_new(Path(save), fragment)
    return (Path(save),)


# ------------------------------------------------------------------------------ options


def _has_costs(log: Path, names: Mapping[str, str]) -> bool:
    """Whether the columns are those of a log of saves and loads."""
    from cprsim.failures.traces.formats import head_of

    head = head_of(log)
    ours = [names.get(one, one) for one in ("kind", "start", "end")]
    return head.names(*ours, separator=",") and not (
        "node" in names or head.names("node", separator=",")
    )


def _names(columns: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """The log's names of columns by ours."""
    if isinstance(columns, Mapping):
        return dict(columns)
    names: dict[str, str] = {}
    for pair in columns:
        ours, sign, theirs = pair.partition("=")
        if not sign:
            raise ParameterError(f"--column: {ours!r} is no pair such as start=begin")
        names[ours] = theirs
    return names


def _period(text: str | None) -> tuple[str | None, str | None]:
    """Begin and end of the observation, as the log writes times."""
    first, sign, last = (text or "..").partition("..")
    if not sign:
        raise ParameterError(f"--period: {text!r} is no FROM..TO such as 2024-01-01..2025-01-01")
    return first.strip() or None, last.strip() or None


def _nodes(nodes: int | str | Path | None) -> tuple[int | None, Path | bool]:
    """How many nodes, and where their dates stand."""
    text = DATES if nodes is None else str(nodes)
    if text.removeprefix("-").isdigit():
        return int(text[:20]), False
    if text != DATES and not Path(text).is_file():
        raise ParameterError(
            f"--nodes: {one_line(text)!r} is neither a whole number nor a file, nor 'dates'"
        )
    return None, Path(text) if text != DATES else nodes is not None
