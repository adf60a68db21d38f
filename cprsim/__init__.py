"""cprsim: the cost of failures in a training job, and how to reduce it.

>>> import cprsim
>>> cprsim.run("quickstart", {"failures.mtbf": "20 h"}, replications=200)
<cprsim.Answer run quickstart>

Each function is the command of its name, prints nothing, and returns an `Answer`: `frames` (tables
with intervals), `values`, `figure()`, `report(file)`; notebooks show it. All errors derive from
`CprsimError`. Modules load at first use: ``import cprsim`` imports the standard library alone.
docs/python.md has examples.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from cprsim.version import __version__ as __version__

if TYPE_CHECKING:
    from cprsim.commands.backtest import backtest as backtest
    from cprsim.commands.calibrate import calibrate as calibrate
    from cprsim.commands.explore import explore as explore
    from cprsim.commands.fit import fit as fit
    from cprsim.commands.fleet import fleet as fleet
    from cprsim.commands.init import init as init
    from cprsim.commands.ledger import ledger as ledger
    from cprsim.commands.measure import measure as measure
    from cprsim.commands.options import Scenario as Scenario
    from cprsim.commands.options import load as load
    from cprsim.commands.rehearse import rehearse as rehearse
    from cprsim.commands.report import read as read
    from cprsim.commands.report import report as report
    from cprsim.commands.reproduce import reproduce as reproduce
    from cprsim.commands.run import run as run
    from cprsim.commands.select import select as select
    from cprsim.commands.sweep import sweep as sweep
    from cprsim.commands.sync import sync as sync
    from cprsim.commands.systems import systems as systems
    from cprsim.commands.train import train as train
    from cprsim.commands.validate import validate as validate
    from cprsim.errors import CprsimError as CprsimError
    from cprsim.pages.answer import Answer as Answer

_WHERE = {
    "Answer": "pages.answer", "CprsimError": "errors", "Scenario": "commands.options",
    "load": "commands.options", "read": "commands.report",
}  # fmt: skip
_FOLDERS = filter(attrgetter("ispkg"), iter_modules([f"{__path__[0]}/commands"]))
__all__ = sorted([*_WHERE, *map(attrgetter("name"), _FOLDERS)])


def __getattr__(name: str) -> Any:
    """A public name: a function is in the folder of its name."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"cprsim.{_WHERE.get(name, f'commands.{name}')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
