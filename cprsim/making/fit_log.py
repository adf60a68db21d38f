"""The log that is to be fitted: options of its reader, format, nodes, what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from cprsim.foreign import one_line

if TYPE_CHECKING:
    from cprsim.failures.outages import NodeGroups, Outages
    from cprsim.failures.traces.asked import LogOptions
    from cprsim.fitting.apart import TakenApart
    from cprsim.fitting.lifetimes import FirstUptime
    from cprsim.fitting.observation import Observation
    from cprsim.fitting.trace_fit import TraceFit


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
    reader: LogOptions
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
        from cprsim.fitting.lifetimes import FirstUptime

        return FirstUptime(self.age or FirstUptime.NEW.value)


@dataclass(frozen=True, slots=True)
class LogRead:
    """A log as read, and as failures of a node within some time were made one."""

    asked: LogAsked
    form: str
    as_read: Outages
    coalesced: Outages

    @property
    def chosen(self) -> Outages:
        """Those of the cause and of the node that were asked for, those of one event together."""
        from cprsim.fitting.coalescing import brought_together

        found = self.apart
        return brought_together(found, self.within_h) if self.within_h > 0 else found

    @property
    def within_h(self) -> float:
        """How near in time failures are one event [h]."""
        together = self.asked.together
        return 0.0 if together is None else hours_option(together, "--together")

    def groups(self, column: str) -> NodeGroups:
        """What each node belongs to, by a column of the nodes' table or of the log itself."""
        from cprsim.failures.traces.node_groups import read_groups

        asked = self.asked
        if asked.node_file is not None:
            return read_groups(asked.node_file, "tidy", column, self.apart)
        named = asked.reader.columns.get("node", "node")
        return read_groups(asked.log, self.form, column, self.apart, named)

    @property
    def apart(self) -> Outages:
        """Those of the cause and of the node that were asked for."""
        found, asked = self.coalesced, self.asked
        found = found if asked.cause is None else found.choosing(asked.cause)
        return found if asked.node is None else found.of_node(asked.node)

    def fit(self, n_bootstrap: int, seed: int) -> TraceFit:
        """Fit all that was chosen. Raises ParameterError where nothing at all can be fitted."""
        from cprsim.fitting.trace_fit import fit_trace

        asked, chosen = self.asked, self.chosen
        begin, end = (None if one is None else str(one) for one in asked.reader.period)
        known = observation_of(
            chosen,
            asked.first,
            form=self.form,
            nodes=asked.reader.n_nodes,
            lives=asked.node_file or (asked.node_dates and "--node-dates") or None,
            node=asked.node,
            period=(begin, end),
            age=asked.age,
            cause=asked.cause,
        )
        return fit_trace(
            chosen, first=asked.first, n_bootstrap=n_bootstrap, seed=seed, observed=known
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FitAsked:
    """What is to be made of a log.

    Parameters
    ----------
    by : ``cause``, or a column of groups of nodes
    reach : of ``by cause``: what each cause kills
    now : a fragment for what comes after the log
    through_window : a fragment, and a circle, with the rate as it changes along the log
    job_nodes : nodes of the job that the fragment is for; None: all
    bootstrap, seed : samples behind each p-value, and their seed
    circle : whether to simulate the log from its fit

    Raises
    ------
    ParameterError
        for what does not go together.
    """

    by: str | None = None
    reach: Mapping[str, str] = field(default_factory=dict)
    now: bool = False
    through_window: bool = False
    job_nodes: int | None = None
    bootstrap: int = 199
    seed: int = 0
    circle: bool = False

    def __post_init__(self) -> None:
        """Raise ParameterError for what does not go together."""
        from cprsim.errors import ParameterError

        if self.now and self.through_window:
            raise ParameterError("--now and --through-window: each is a fragment; give one of them")
        for option, is_so in (("--now", self.now), ("--through-window", self.through_window)):
            if is_so and self.by is not None:
                message = "goes without --by, which takes the whole window"
                raise ParameterError(f"{option}: {message}")
        if self.reach and self.by != "cause":
            raise ParameterError("--reach: goes with --by cause")

    def of(self, log: LogRead) -> tuple[TraceFit, TakenApart]:
        """Fit the log, and take it apart. Raises ParameterError where nothing can be fitted."""
        from cprsim.errors import ParameterError
        from cprsim.fitting.apart import WHOLE, TakenApart
        from cprsim.fitting.by_group import ByGroup
        from cprsim.fitting.fragments import nodes_of_job

        if self.by == "cause" and log.asked.cause is not None:
            raise ParameterError("--by cause: takes all causes, --cause one alone")
        fitted = log.fit(self.bootstrap, self.seed)
        name = one_line(log.asked.log.name)
        n_job = nodes_of_job(self.job_nodes, fitted.outages.n_nodes)
        if self.by == "cause":
            return fitted, self._causes(log, fitted, name, n_job)
        if self.by is not None:
            groups = ByGroup.of(fitted, log.groups(self.by), log.asked.first, name)
            return fitted, TakenApart(groups=groups)
        return fitted, WHOLE

    def _causes(self, log: LogRead, fitted: TraceFit, name: str, n_job: int) -> TakenApart:
        from cprsim.fitting.apart import TakenApart
        from cprsim.fitting.causes import by_cause, fragment_of_all, fragments_by_cause, reaches_of

        causes = by_cause(log.chosen, n_job, log.asked.first)
        reaches = reaches_of(causes, self.reach)
        written = fragments_by_cause(causes, name, n_job, fitted.observation)
        return TakenApart(causes, written, fragment_of_all(written, reaches))


def read_to_fit(asked: LogAsked) -> LogRead:
    """Read a log. Raises ParameterError for an option that does not go, TraceError for the file."""
    from cprsim.fitting.coalescing import coalesced

    as_read, form = read_as(asked.log, asked.form, asked.reader)
    as_read = with_node_lives(
        as_read, asked.log, form, asked.reader, asked.node_file, dates=asked.node_dates
    )
    within_h = None if asked.coalesce is None else hours_option(asked.coalesce, "--coalesce")
    return LogRead(
        asked, form, as_read, as_read if within_h is None else coalesced(as_read, within_h)
    )


def options_of_reader(
    nodes: int | None,
    system: int | None,
    period: tuple[str | None, str | None],
    columns: Mapping[str, str],
    time_unit: str | None,
    date_format: str | None,
    tz: str | None,
    repair: str | None,
) -> LogOptions:
    """What the reader of a log is told. Raises ParameterError for a wrong zone or time."""
    from cprsim.failures.traces.asked import LogOptions
    from cprsim.failures.traces.times import require_zone

    return LogOptions(
        n_nodes=nodes,
        system=system,
        period=period,
        columns=columns,
        time_unit=time_unit,
        date_format=date_format,
        tz=None if tz is None else require_zone(tz),
        repair_h=None if repair is None else hours_option(repair, "--repair"),
    )


def read_as(trace: Path, name: str | None, asked: LogOptions) -> tuple[Outages, str]:
    """The outages of a log, and the format's name; a guess is said in the notes.

    Raises
    ------
    ParameterError
        for a format that is none, or an option that it does not take.
    """
    from difflib import get_close_matches

    from cprsim.errors import ParameterError
    from cprsim.failures.traces.formats import FORMATS, guess, read_log

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


def with_node_lives(
    outages: Outages,
    trace: Path,
    form: str,
    asked: LogOptions,
    node_file: Path | None,
    *,
    dates: bool,
) -> Outages:
    """The log with the lives of its nodes, from a file or from dates in the records.

    Raises
    ------
    ParameterError
        for both at once, or dates of another format's log.
    TraceError
        for a file that can't be read.
    """
    from cprsim.errors import ParameterError
    from cprsim.failures.outages import with_lives
    from cprsim.failures.traces.formats import FORMATS
    from cprsim.failures.traces.formats.lanl import lanl_lives
    from cprsim.failures.traces.node_file import lives_in_log, read_nodes

    if node_file is not None and dates:
        raise ParameterError("--node-dates: the nodes' dates are in the file of --nodes already")
    if node_file is not None:
        return with_lives(outages, read_nodes(node_file, outages, asked))
    if not dates:
        return outages
    if (pieces := FORMATS[form].pieces) is not None:
        return with_lives(outages, lives_in_log(trace, pieces(trace), outages, asked))
    if form != "lanl" or asked.system is None:
        raise ParameterError("--node-dates: belongs to tables and to format `lanl` with --system")
    return with_lives(outages, lanl_lives(trace, asked.system, outages))


def observation_of(
    outages: Outages,
    first: FirstUptime,
    *,
    form: str,
    nodes: int | None,
    node: str | None,
    period: tuple[str | None, str | None],
    age: str | None,
    cause: str | None,
    lives: str | Path | None = None,
) -> Observation:
    """The observation of a log.

    Parameters
    ----------
    outages : as read
    first : how the first up-time of each node counts
    form : name of the log's format
    nodes, node, period, age, cause : the options; None where they were not given
    lives : from where the dates of the nodes are; None where they have none
    """
    from cprsim.fitting.observation import Source, observation

    known: dict[str, tuple[Source, str]] = {}
    if form == "lanl":
        known["n_nodes"] = Source.READ, "column nodes"
    if form == "infinitehbd":
        known["begins"] = Source.READ, "the zero of the file's times"
    if form == "prometheus":
        known["n_nodes"] = Source.READ, "a series for each node"
        known["begins"] = Source.READ, "the first sample"
        known["ends"] = Source.READ, "the last sample"
    if lives is not None:
        origin = (Source.READ, f"the nodes' own dates ({one_line(str(lives))})")
        known["n_nodes"] = known["ages"] = origin
    if nodes is not None:
        known["n_nodes"] = Source.GIVEN, "--nodes"
    if node is not None:
        known["n_nodes"] = Source.GIVEN, "--node"
    if age is not None:
        known["ages"] = Source.GIVEN, "--age"
    inferred = observation(outages, first)
    ends = (("begins", "--from", inferred.begins), ("ends", "--to", inferred.ends))
    for instant, (name, option, fact) in zip(period, ends, strict=True):
        if instant is not None and _is_at(instant, str(fact.value)):
            known[name] = Source.GIVEN, option
        elif instant is not None:
            known[name] = Source.INFERRED, f"what the file holds within {option} {instant}"
    return observation(outages, first, cause=cause, **known)


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
    from cprsim.errors import ParameterError

    if text is None:
        return None, None
    if text.removeprefix("-").isdigit():
        return int(text[:20]), None
    if not Path(text).is_file():
        raise ParameterError(f"--nodes: {one_line(text)!r} is neither a whole number nor a file")
    return None, Path(text)


def hours_option(text: str, option: str) -> float:
    """The value of an option [h]. Raises ParameterError where it is no time."""
    from cprsim.errors import ParameterError
    from cprsim.units import TIME

    try:
        hours = TIME.parse(text)
        if not 0 <= hours < inf:
            raise ParameterError("is no time from 0 on")
    except ParameterError as error:
        raise ParameterError(f"{option}: {text!r} {error}") from None
    return hours
