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
    from cprsim.fitting.fragments import Fragment
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
        tidy (a table), jsonl, parquet, slurm-events, slurm-jobs, kubernetes, nvidia-xid,
        prometheus, infinitehbd, lanl; costs: saves and loads. Default: guessed, and shown.
    nodes : int or str or Path, optional
        Nodes observed, with those that never failed: their number; a table with node and any of
        installed, entry, exit; dates: the log's own columns of these names, or LANL's records.
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
        Failures of nodes less than this after the one before are one event; default: none.
    cause : str, optional
        Only causes that contain this text; the others' outages censor the up-times.
    node : str, optional
        This node alone.
    causes : bool, default False
        A fit for each cause, and which to fix first.
    age : {"new", "unknown"}, optional
        Nodes when the log begins; unknown leaves out their first up-times. Default: new, with a
        warning where it matters.
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
        ``["parameters"]``, ``["times"]``, ``["observation"]``, ``["causes"]`` where asked for;
        ``values["fragment"]``, as data ``["failures"]`` and ``["scopes"]``, or ``["costs"]``;
        ``values["mtbf_h"]`` of the job.

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
    from cprsim.fitting.lifetimes import FirstUptime
    from cprsim.fitting.reading import hours_option, read_failures
    from cprsim.fitting.report import fit_failures
    from cprsim.present.fit import answer_of_fit

    if save is not None:
        require_new(Path(save))
    if causes and cause is not None:
        raise ParameterError("--causes: takes all causes, --cause one alone")
    path, (n_nodes, dates) = Path(log), _nodes(nodes)
    options = LogOptions(
        n_nodes=n_nodes, system=system, period=_period(period), columns=_names(columns),
        time_unit=time_unit, date_format=date_format, tz=None if tz is None else require_zone(tz),
        repair_h=None if repair is None else hours_option(repair, "--repair"),
    )  # fmt: skip
    watch.doing("reading the log")
    if format == COSTS or (format is None and _has_costs(path, options.columns)):
        of_failures = {
            "--nodes": nodes, "--coalesce": coalesce, "--together": together, "--cause": cause,
            "--node": node, "--causes": causes or None, "--age": age, "--job-nodes": job_nodes,
        }  # fmt: skip
        wrong = sorted(option for option, value in of_failures.items() if value is not None)
        return _costs(path, options, wrong, bootstrap, save)
    outages, observed = read_failures(
        path, options, form=format, dates=dates, coalesce=coalesce, together=together, cause=cause,
        node=node, age=age,
    )  # fmt: skip
    watch.doing("fitting")
    fitted = fit_failures(
        outages, observed, one_line(path.name), n_job_nodes=job_nodes,
        first=FirstUptime(age or "new"), n_bootstrap=bootstrap, causes=causes,
    )  # fmt: skip
    return answer_of_fit(fitted, _saved(save, fitted.fragment, fitted.why_no_fragment))


def fitted_fragment(log: Path, n_nodes: int) -> tuple[str, tuple[str, ...]]:
    """The section that `fit` writes for a job on `n_nodes` of a log's nodes, and its warnings.

    Raises CprsimError for a log that can't be read, or too few failures for a fit.
    """
    from cprsim.failures.traces.asked import LogOptions
    from cprsim.fitting.reading import read_failures
    from cprsim.fitting.report import fit_failures

    read, origin = read_failures(log, LogOptions()), one_line(log.name)
    fitted = fit_failures(*read, origin, n_job_nodes=n_nodes, n_bootstrap=N_BOOTSTRAP)
    if fitted.fragment is None:
        raise ParameterError(fitted.why_no_fragment)
    return str(fitted.fragment), fitted.warnings


def _costs(
    log: Path, options: LogOptions, wrong: list[str], bootstrap: int, save: str | Path | None
) -> Answer:
    """The fit of a log of saves and loads; `wrong` options are for logs of failures."""
    from cprsim.fitting.cost_fit import fit_costs, read_transfers
    from cprsim.fitting.fragments import costs_fragment
    from cprsim.present.fit import answer_of_costs

    wrong += sorted(options.given() - {"--column", "--time-unit"})
    if wrong:
        raise ParameterError(f"{wrong[0]}: belongs to logs of failures, not of saves and loads")
    transfers = read_transfers(log, columns=options.columns, time_unit=options.time_unit)
    watch.doing("fitting")
    fits, origin = fit_costs(transfers, n_bootstrap=bootstrap), one_line(log.name)
    fragment = costs_fragment(fits, origin)
    return answer_of_costs(fits, origin, fragment, transfers.notes, _saved(save, fragment, ""))


def _saved(save: str | Path | None, fragment: Fragment | None, why_not: str) -> tuple[Path, ...]:
    """The file of the fragment, where it was asked for. Raises ParameterError if there is none."""
    from cprsim.files import write_new

    if save is None:
        return ()
    if fragment is None:
        raise ParameterError(f"--save: there is no fragment to write: {why_not}")
    write_new(Path(save), str(fragment))
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
    if wrong := [pair for pair in columns if "=" not in pair]:
        raise ParameterError(f"--column: {wrong[0]!r} is no pair such as start=begin")
    return dict(pair.split("=", 1) for pair in columns)


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
