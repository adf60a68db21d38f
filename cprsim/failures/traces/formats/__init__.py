"""The formats of logs that can be read, each a file of this folder with one `FORMAT`.

A new format is a new file: it is found by its being here.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.files import opened, trace_error
from cprsim.failures.traces.foreign import advice
from cprsim.failures.traces.reading import HEAD_BYTES


def _found() -> dict[str, LogFormat]:
    names = sorted(module.name for module in iter_modules(__path__))
    formats = [import_module(f"{__name__}.{name}").FORMAT for name in names]
    return {one.name: one for one in sorted(formats, key=lambda one: (one.order, one.name))}


FORMATS: dict[str, LogFormat] = _found()


def head_of(path: Path) -> Head:
    """The beginning of a log. Raises as `guess` does where the file can't be opened."""
    with opened(path) as file:
        begins = file.read(HEAD_BYTES)
    return Head(begins.decode("utf-8-sig", errors="replace").lstrip(), begins[:16])


def guess(path: Path) -> tuple[LogFormat, str]:
    """The format that a log seems to have, and by what it was recognised.

    Raises TraceError where the file can't be opened or unpacked, or holds no text.
    """
    head = head_of(path)
    if instead := advice(head.text):
        raise trace_error(path, None, instead)
    for one in FORMATS.values():
        if why := one.looks_like(head):
            if one.name == "tidy" and "\0" in head.text:
                break
            return one, why
    raise trace_error(
        path, None,
        "is no text: write the log as CSV (node,start,end), JSON lines or Parquet; a packed one is "
        "called .gz, .xz, .bz2, .zst or .zip",
    )  # fmt: skip


def read_log(path: Path, form: LogFormat, asked: LogOptions) -> Outages:
    """The outages of a log.

    Raises ParameterError for an option that the format does not take.; TraceError for a log that
    can't be read, with file and line, row or byte.
    """
    if wrong := sorted(asked.given() - form.options):
        takers = ", ".join(f"`{one.name}`" for one in FORMATS.values() if wrong[0] in one.options)
        raise ParameterError(f"{wrong[0]}: belongs to format {takers}, not `{form.name}`")
    return form.read(path, asked)
