"""The log that is to be fitted: options of its reader, format, nodes, what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Literal

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import Outages, with_lives
from cprsim.failures.traces.asked import LogOptions
from cprsim.failures.traces.formats import FORMATS, guess, read_log
from cprsim.failures.traces.formats.lanl import lanl_lives
from cprsim.failures.traces.node_file import lives_in_log, read_nodes
from cprsim.failures.traces.times import require_zone
from cprsim.fitting.causes import taken_apart
from cprsim.fitting.coalescing import brought_together, coalesced
from cprsim.fitting.fragments import nodes_of_job
from cprsim.fitting.lifetimes import FirstUptime
from cprsim.fitting.observation import Observation, Origin, Source, observation
from cprsim.fitting.report import FitReport, report_of
from cprsim.fitting.trace_fit import TraceFit, fit_trace
from cprsim.units import TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAsked:
    """A log that is to be fitted, and what of it.

    Parameters
    ----------
    log : the file
    reader : what its reader is told
    form : name of its format; None: guessed
    node_file : the nodes' dates
    node_dates : whether these are in the records
    coalesce : a time: failures of one node within so long of each other are one
    together : a time: failures of nodes within so long of the one before are one event
    cause, node : these alone
    age : ``new`` or ``unknown``, of the nodes when the log begins; None where nobody knows
    """

    log: Path
    reader: LogOptions = field(default_factory=LogOptions)
    form: str | None = None
    node_file: Path | None = None
    node_dates: bool = False
    coalesce: str | None = None
    together: str | None = None
    cause: str | None = None
    node: str | None = None
    age: str | None = None

    @property
    def first(self) -> FirstUptime:
        """How the first up-time of each node counts."""
        return FirstUptime(self.age or FirstUptime.NEW.value)


@dataclass(frozen=True, slots=True)
class LogRead:
    """A log as read: of the cause and the node that were asked for, merged as was asked for."""

    asked: LogAsked
    form: str
    chosen: Outages

    def fit(self, n_bootstrap: int, seed: int) -> TraceFit:
        """Fit all that was chosen. Raises ParameterError where nothing at all can be fitted."""
        known = observation_of(self.chosen, self.asked, self.form)
        return fit_trace(
            self.chosen, first=self.asked.first, n_bootstrap=n_bootstrap, seed=seed, observed=known
        )

    def report(
        self,
        *,
        by: Literal["cause"] | None = None,
        reach: Mapping[str, str] | None = None,
        job_nodes: int | None = None,
        bootstrap: int = 199,
        seed: int = 0,
        circle: bool = False,
    ) -> FitReport:
        """Fit, and make of it what was asked for; options as in `cprsim.fit`.

        Raises ParameterError for what does not go together, or where nothing can be fitted.
        """
        asked = self.asked
        if reach and by is None:
            raise ParameterError("--reach: goes with --by cause")
        if by is not None and asked.cause is not None:
            raise ParameterError("--by cause: takes all causes, --cause one alone")
        fitted, name = self.fit(bootstrap, seed), one_line(asked.log.name)
        n_job = nodes_of_job(job_nodes, fitted.outages.n_nodes)
        causes = None
        if by is not None:
            causes = taken_apart(
                self.chosen, n_job, asked.first, name, fitted.observation, reach or {}
            )
        return report_of(
            fitted,
            name,
            n_job_nodes=n_job,
            circle_seed=seed if circle else None,
            by_cause=causes,
        )


def read_to_fit(asked: LogAsked) -> LogRead:
    """Read a log. Raises ParameterError for an option that does not go, TraceError for the file."""
    found, form = read_as(asked.log, asked.form, asked.reader)
    found = with_node_lives(found, asked, form)
    if asked.coalesce is not None:
        found = coalesced(found, hours_option(asked.coalesce, "--coalesce"))
    if asked.cause is not None:
        found = found.choosing(asked.cause)
    if asked.node is not None:
        found = found.of_node(asked.node)
    within_h = 0.0 if asked.together is None else hours_option(asked.together, "--together")
    return LogRead(asked, form, brought_together(found, within_h) if within_h > 0 else found)


def log_asked(
    log: Path,
    *,
    form: str | None = None,
    nodes: str | None = None,
    node_dates: bool = False,
    system: int | None = None,
    period: tuple[str | None, str | None] = (None, None),
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    date_format: str | None = None,
    tz: str | None = None,
    repair: str | None = None,
    coalesce: str | None = None,
    together: str | None = None,
    cause: str | None = None,
    node: str | None = None,
    age: str | None = None,
) -> LogAsked:
    """The options as a user gives them. Raises ParameterError for a wrong number, zone or time."""
    n_nodes, node_file = nodes_option(nodes)
    reader = LogOptions(
        n_nodes=n_nodes,
        system=system,
        period=period,
        columns=columns or {},
        time_unit=time_unit,
        date_format=date_format,
        tz=None if tz is None else require_zone(tz),
        repair_h=None if repair is None else hours_option(repair, "--repair"),
    )
    return LogAsked(
        log=log, reader=reader, form=form, node_file=node_file, node_dates=node_dates,
        coalesce=coalesce, together=together, cause=cause, node=node, age=age,
    )  # fmt: skip


def read_as(trace: Path, name: str | None, asked: LogOptions) -> tuple[Outages, str]:
    """The outages of a log, and the format's name; a guess is said in the notes.

    Raises ParameterError for a format that is none, or an option that it does not take.
    """
    if name is not None and name != "auto":
        if name not in FORMATS:
            near = get_close_matches(name, FORMATS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ParameterError(
                f"--format: there is no {one_line(name)!r}; known are {', '.join(FORMATS)}{hint}"
            )
        return read_log(trace, FORMATS[name], asked), name
    if asked.system is not None:
        return read_log(trace, FORMATS["lanl"], asked), "lanl"
    form, why = guess(trace)
    if form.name == "lanl":
        raise ParameterError(
            f"{one_line(str(trace))}: these are LANL's records, of which `system` has to be said "
            "(--system 2), or --format lanl for all systems together"
        )
    outages = read_log(trace, form, asked)
    if form.name == "tidy" and "commas" in why:
        return outages, form.name
    note = f"read as format {form.name}: {why} (--format overrides)"
    return replace(outages, notes=(note, *outages.notes)), form.name


def with_node_lives(outages: Outages, asked: LogAsked, form: str) -> Outages:
    """The log with the lives of its nodes, from a file or from dates in the records.

    Raises ParameterError for both at once, or dates of another format's log.; TraceError for a file
    that can't be read.
    """
    if asked.node_file is not None and asked.node_dates:
        raise ParameterError("--node-dates: the nodes' dates are in the file of --nodes already")
    if asked.node_file is not None:
        return with_lives(outages, read_nodes(asked.node_file, outages, asked.reader))
    if not asked.node_dates:
        return outages
    if (pieces := FORMATS[form].pieces) is not None:
        table = pieces(asked.log)
        return with_lives(outages, lives_in_log(asked.log, table, outages, asked.reader))
    if form != "lanl" or asked.reader.system is None:
        raise ParameterError("--node-dates: belongs to tables and to format `lanl` with --system")
    return with_lives(outages, lanl_lives(asked.log, asked.reader.system, outages))


READ: dict[str, dict[str, Origin]] = {  # what logs of a format say of their observation
    "lanl": {"n_nodes": (Source.READ, "column nodes")},
    "infinitehbd": {"begins": (Source.READ, "the zero of the file's times")},
    "prometheus": {
        "n_nodes": (Source.READ, "a series for each node"),
        "begins": (Source.READ, "the first sample"),
        "ends": (Source.READ, "the last sample"),
    },
}


def observation_of(outages: Outages, asked: LogAsked, form: str) -> Observation:
    """The observation of a log, each fact with its origin."""
    known = dict(READ.get(form, {}))
    if lives := asked.node_file or (asked.node_dates and "--node-dates"):
        known["n_nodes"] = Source.READ, f"the nodes' own dates ({one_line(str(lives))})"
        known["ages"] = known["n_nodes"]
    if asked.reader.n_nodes is not None:
        known["n_nodes"] = Source.GIVEN, "--nodes"
    if asked.node is not None:
        known["n_nodes"] = Source.GIVEN, "--node"
    if asked.age is not None:
        known["ages"] = Source.GIVEN, "--age"
    inferred = observation(outages, asked.first)
    ends = (("begins", "--from", inferred.begins), ("ends", "--to", inferred.ends))
    for end, (name, option, fact) in zip(asked.reader.period, ends, strict=True):
        if end is not None and _is_at(str(end), str(fact.value)):
            known[name] = Source.GIVEN, option
        elif end is not None:
            known[name] = Source.INFERRED, f"what the file holds within {option} {end}"
    return observation(outages, asked.first, known, asked.cause)


def _is_at(given: str, window_end: str) -> bool:
    """Whether the window ends where the option says; true where a log's times are numbers."""
    try:
        begin, end = (
            datetime.fromisoformat(text).replace(tzinfo=None) for text in (given, window_end)
        )
    except ValueError:
        return True
    zoned = datetime.fromisoformat(given).tzinfo is not None
    return zoned or begin == end


def nodes_option(text: str | None) -> tuple[int | None, Path | None]:
    """The option ``--nodes``: a number, or a file."""
    if text is None:
        return None, None
    if text.removeprefix("-").isdigit():
        return int(text[:20]), None
    if not Path(text).is_file():
        raise ParameterError(f"--nodes: {one_line(text)!r} is neither a whole number nor a file")
    return None, Path(text)


def hours_option(text: str, option: str) -> float:
    """The value of an option [h]. Raises ParameterError where it is no time."""
    try:
        hours = TIME.parse(text)
        if not 0 <= hours < inf:
            raise ParameterError("is no time from 0 on")
    except ParameterError as error:
        raise ParameterError(f"{option}: {text!r} {error}") from None
    return hours
