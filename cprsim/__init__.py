"""cprsim: what failures cost a training job, and what to do about it.

>>> import cprsim
>>> cprsim.run("quickstart", {"failures.mtbf": "20 h"}, replications=200)
<cprsim.Answer run quickstart>

Each function is the command of its name, prints nothing, and returns an `Answer`: `frames` (tables
with intervals), `values`, `figure()`, `report(file)`; notebooks show it. All errors are of
`CprsimError`. What a function needs is loaded when it runs. docs/python.md has examples.
"""

from typing import TYPE_CHECKING, Any

from cprsim.api.backtest import backtest as backtest
from cprsim.api.calibrate import calibrate as calibrate
from cprsim.api.fit import fit as fit
from cprsim.api.fleet import fleet as fleet
from cprsim.api.init import init as init
from cprsim.api.ledger import ledger as ledger
from cprsim.api.measure import measure as measure
from cprsim.api.rehearse import rehearse as rehearse
from cprsim.api.report import read as read
from cprsim.api.report import report as report
from cprsim.api.reproduce import reproduce as reproduce
from cprsim.api.run import run as run
from cprsim.api.scenario import Scenario as Scenario
from cprsim.api.scenario import load as load
from cprsim.api.select import select as select
from cprsim.api.sweep import sweep as sweep
from cprsim.api.sync import sync as sync
from cprsim.api.systems import systems as systems
from cprsim.api.train import train as train
from cprsim.api.validate import validate as validate
from cprsim.errors import CprsimError as CprsimError
from cprsim.version import __version__ as __version__

if TYPE_CHECKING:
    from cprsim.present.answer import Answer as Answer

__all__ = [
    "Answer",
    "CprsimError",
    "Scenario",
    "backtest",
    "calibrate",
    "fit",
    "fleet",
    "init",
    "ledger",
    "load",
    "measure",
    "read",
    "rehearse",
    "report",
    "reproduce",
    "run",
    "select",
    "sweep",
    "sync",
    "systems",
    "train",
    "validate",
]


def __getattr__(name: str) -> Any:
    """`Answer`, whose module is heavy."""
    if name != "Answer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cprsim.present.answer import Answer

    return Answer


def __dir__() -> list[str]:
    return __all__
