"""The formats of logs that can be read, each a file of this folder with one `FORMAT`.

A new format is a new file: it is found by its being here, and named as its file is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from cprsim.errors import ParameterError, one_line
from cprsim.logs.spec import FORMAT_OPTIONS, LogSpec

if TYPE_CHECKING:
    from cprsim.failures.outages import Outages
    from cprsim.logs.log import LogFormat

GENERAL = 90  # the order of the format that takes whatever no other takes

ADVICE = {  # for files that are no log of failures, by what their beginning holds
    r'\{(?!.*"(?:involvedObject|regarding)")(?=.*"apiVersion").*"kind":\s*"Node"[,}]|'
    r"NAME\s+STATUS\s+ROLES\b|(?:NAMESPACE\s+)?LAST SEEN\s+TYPE\s+REASON|apiVersion: ": (
        "holds nodes as they are now, or events without their instants: write `kubectl get events "
        "-A --field-selector involvedObject.kind=Node -o json`"
    ),
    r"\s*(?:JobID|Cluster|NodeName)\b[^|\n]*\n[- ]+\n": (
        "is a table of Slurm whose columns of a fixed width cut names off: print it with bars (-P)"
    ),
    r'(?=.*"alertname":).*"startsAt":': (
        "holds alerts of Alertmanager: one outage has several, and each begins late, by the `for` "
        "of its rule; query Prometheus for `up` (/api/v1/query_range)"
    ),
    r'.*"torchelastic\.worker\.status|(?:[IWE]\d{4}|\[?\d{4}-)[^\n]*torch[./]distributed': (
        "is the log of a job that torchrun ran, which names no failures of nodes: `cprsim ledger` "
        "reads it"
    ),
    r"\{__name__=|[^\s,]+,\S+=\S+ \S+=\S+ \d{10,19}\s": (
        "holds dumped samples: ask Prometheus' /api/v1/query_range, or write node,start,state"
    ),
    r"\[\d{10}\] [A-Z ]+: ": (
        "is an archive of Nagios: make a table of it by (echo node,start,state; sed -nE "
        r"'s/^\[([0-9]+)\] HOST ALERT: ([^;]+);(DOWN|UP);HARD;.*/\2,\1,\3/p' FILE)"
    ),
}


def names() -> list[str]:
    """What formats are called."""
    return sorted(module.name.replace("_", "-") for module in iter_modules(__path__))


def format_of(name: str) -> LogFormat:
    """The format of a name."""
    if name not in names():
        known_names = ", ".join((*names(), "costs"))
        message = f"there is no {one_line(name)!r}; known are {known_names}"
        raise ParameterError(message, option="--format")
    log_format: LogFormat = import_module(f"{__name__}.{name.replace('-', '_')}").FORMAT
    return log_format


def guess(log: PathLike[str]) -> tuple[str, str]:
    """Return the format that a log seems to have, and the reason."""
    from cprsim.logs.files import head_of, trace_error

    head = head_of(log)
    for beginning, advice in ADVICE.items():
        if re.match(beginning, head, re.DOTALL):
            raise trace_error(log, None, advice)
    formats = {name: format_of(name) for name in names()}
    for name, form in sorted(formats.items(), key=lambda one: (one[1].order, one[0])):
        if why := form.looks_like(head):
            if form.order >= GENERAL and "\0" in head:
                break
            return name, why
    message = "is no text: write the log as CSV (node,start,end), JSON lines or Parquet"
    raise trace_error(log, None, f"{message}; a packed one is called .gz, .xz, .bz2, .zst or .zip")


def not_taken(spec: LogSpec, name: str) -> Iterator[tuple[str, str]]:
    """The options given that a format does not take, and which formats do."""
    for option in sorted((spec.options_given.keys() & FORMAT_OPTIONS) - format_of(name).options):
        takers = [f"`{taker}`" for taker in names() if option in format_of(taker).options]
        said = f"{', '.join(takers)}, not `{name}`, as which the log is read (`format` says which)"
        yield option, f"belongs to format {said}"


def read_log(log: Path, spec: LogSpec | None = None) -> Outages:
    """Return the outages of a log, with notes on those left out, closed, assumed or merged.

    Raises ParameterError for an option that does not apply, TraceError for a log that can't be
    read, with file and line, row or byte.
    """
    from cprsim.failures.outages import Note
    from cprsim.logs.log import Log, outages_of_log

    spec = spec or LogSpec()
    name, why = (spec.format, "") if spec.format else guess(log)
    form = format_of(name)
    for option, message in not_taken(spec, name):
        raise ParameterError(message, option)
    read: Log = form.read(log, spec)
    if why and (form.order < GENERAL or "commas" not in why):
        note = Note("read_as", None, f"read as format {name}: {why} (--format overrides)")
        read = replace(read, notes=(note, *read.notes))
    return outages_of_log(log, read, spec)
