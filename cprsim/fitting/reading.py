"""A log of failures that is to be fitted: read, merged, and what of it was observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from math import inf
from pathlib import Path

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import NodeLives, Outages, with_lives
from cprsim.failures.traces.asked import LogOptions, Period
from cprsim.failures.traces.formats import FORMATS, guess, read_log
from cprsim.failures.traces.formats.lanl import lanl_lives
from cprsim.failures.traces.node_file import lives_in_log, read_nodes
from cprsim.fitting.coalescing import brought_together, coalesced
from cprsim.fitting.lifetimes import FirstUptime
from cprsim.fitting.observation import Observation, Origin, Source, observation
from cprsim.units import TIME

Dates = Path | bool  # of the nodes: their file, or whether the log has them
READ = {  # what logs of a format say of their observation
    "lanl": {"n_nodes": "column nodes"},
    "infinitehbd": {"begins": "the zero of the file's times"},
    "prometheus": {
        "n_nodes": "a series for each node", "begins": "the first sample", "ends": "the last sample"
    },
}  # fmt: skip


def read_failures(
    log: Path,
    options: LogOptions,
    *,
    form: str | None = None,
    dates: Dates = False,
    coalesce: str | None = None,
    together: str | None = None,
    cause: str | None = None,
    node: str | None = None,
    age: str | None = None,
) -> tuple[Outages, Observation]:
    """The outages of a log, merged and chosen, and what was observed; options as in `cprsim.fit`.

    Raises ParameterError for an option that does not apply, TraceError for the file.
    """
    found, form = _read_as(log, form, options)
    known: dict[str, Origin] = {
        name: (Source.READ, how) for name, how in READ.get(form, {}).items()
    }
    if dates is not False:
        found = with_lives(found, _dates(found, log, form, options, dates))
        of = "--nodes dates" if dates is True else one_line(str(dates))
        known["n_nodes"] = known["ages"] = Source.READ, f"the nodes' own dates ({of})"
    if coalesce is not None:
        found = coalesced(found, hours_option(coalesce, "--coalesce"))
    if cause is not None:
        found = found.choosing(cause)
    if node is not None:
        found = found.of_node(node)
    if together is not None and (within_h := hours_option(together, "--together")) > 0:
        found = brought_together(found, within_h)
    given = {
        "--nodes": ("n_nodes", options.n_nodes), "--node": ("n_nodes", node), "--age": ("ages", age)
    }  # fmt: skip
    for option, (name, value) in given.items():
        if value is not None:
            known[name] = Source.GIVEN, option
    return found, observed_in(found, options.period, known, FirstUptime(age or "new"), cause)


def _read_as(log: Path, name: str | None, options: LogOptions) -> tuple[Outages, str]:
    """The outages of a log, and the format's name; a guess is said in the notes."""
    if name is not None and name not in FORMATS:
        known = ", ".join((*FORMATS, "costs"))
        raise ParameterError(f"--format: there is no {one_line(name)!r}; known are {known}")
    if name is not None or options.system is not None:
        name = name or "lanl"
        return read_log(log, FORMATS[name], options), name
    form, why = guess(log)
    if form.name == "lanl":
        raise ParameterError(
            f"{one_line(str(log))}: these are LANL's records, of which `system` has to be said "
            "(--system 2), or --format lanl for all systems together"
        )
    outages = read_log(log, form, options)
    if form.name == "tidy" and "commas" in why:
        return outages, form.name
    note = f"read as format {form.name}: {why} (--format overrides)"
    return replace(outages, notes=(note, *outages.notes)), form.name


def _dates(outages: Outages, log: Path, form: str, options: LogOptions, dates: Dates) -> NodeLives:
    if isinstance(dates, Path):
        return read_nodes(dates, outages, options)
    if (pieces := FORMATS[form].pieces) is not None:
        return lives_in_log(log, pieces(log), outages, options)
    if form != "lanl" or options.system is None:
        raise ParameterError("--nodes dates: belongs to tables and to format `lanl` with --system")
    return lanl_lives(log, options.system, outages)


def observed_in(
    outages: Outages, period: Period, known: Mapping[str, Origin],
    first: FirstUptime = FirstUptime.NEW, cause: str | None = None,
) -> Observation:  # fmt: skip
    """The observation of a log, each fact with its origin; of the period by what the log holds."""
    inferred, known = observation(outages, first), dict(known)
    ends = ("begins", "from", inferred.begins), ("ends", "to", inferred.ends)
    for end, (name, what, fact) in zip(period, ends, strict=True):
        if end is not None and _is_at(str(end), str(fact.value)):
            known[name] = Source.GIVEN, "--period"
        elif end is not None:
            known[name] = Source.INFERRED, f"what the file holds {what} {end}, see --period"
    return observation(outages, first, known, cause)


def _is_at(given: str, window_end: str) -> bool:
    """Whether the window ends where the option says; true where a log's times are numbers."""
    try:
        begin, end = map(datetime.fromisoformat, (given, window_end))
    except ValueError:
        return True
    return begin.tzinfo is not None or begin == end.replace(tzinfo=None)


def hours_option(text: str, option: str) -> float:
    """The value of an option [h]. Raises ParameterError where it is no time."""
    try:
        hours = TIME.parse(text)
        if not 0 <= hours < inf:
            raise ParameterError("is no time from 0 on")
    except ParameterError as error:
        raise ParameterError(f"{option}: {text!r} {error}") from None
    return hours
