"""The formats of logs that can be read, each a file of this folder with one `FORMAT`.

A new format is a new file: it is found by its being here.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import HEAD_BYTES, Head, LogFormat, LogOptions
from cprsim.failures.traces.bounded import opened
from cprsim.failures.traces.not_read import require_readable

PACKED = (".xz", ".gz", ".bz2", ".zst", ".zip")


def _found() -> dict[str, LogFormat]:
    names = sorted(module.name for module in iter_modules(__path__))
    formats = [import_module(f"{__name__}.{name}").FORMAT for name in names]
    return {one.name: one for one in sorted(formats, key=lambda one: (one.order, one.name))}


FORMATS: dict[str, LogFormat] = _found()


def head_of(path: Path) -> Head:
    """The beginning of a log. Raises TraceError where it can't be opened or unpacked."""
    with opened(path) as file:
        begins = file.read(HEAD_BYTES)
    name = path.name.lower()
    name = name.rsplit(".", 1)[0] if name.endswith(PACKED) else name
    return Head(name, begins.decode("utf-8", errors="replace"), begins[:16])


def guess(path: Path) -> tuple[LogFormat, str]:
    """The format that a log seems to have, and by what it was recognised.

    Raises
    ------
    TraceError
        where the file can't be opened or unpacked, or is of a kind that no format reads.
    """
    head = head_of(path)
    for one in FORMATS.values():
        if one.name == "tidy":  # the last: takes anything that is text
            require_readable(path, head)
        if why := one.looks_like(head):
            return one, why
    return FORMATS["tidy"], "nothing else was recognised"


def read_log(path: Path, form: LogFormat, asked: LogOptions) -> Outages:
    """The outages of a log.

    Raises
    ------
    ParameterError
        for an option that the format does not take.
    TraceError, BudgetError
        for a log that can't be read, with file and line, row or byte.
    """
    if wrong := sorted(asked.given() - form.options):
        takers = [f"`{one.name}`" for one in FORMATS.values() if wrong[0] in one.options]
        belongs = "belongs" if " and " not in wrong[0] else "belong"
        raise ParameterError(
            f"{wrong[0]}: {belongs} to format {', '.join(takers)}, not `{form.name}`"
        )
    return form.read(path, asked)
