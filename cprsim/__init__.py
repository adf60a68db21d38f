"""cprsim: what failures cost a training job, and what to do about it.

>>> import cprsim
>>> cprsim.run("quickstart", {"failures.mtbf": "20 h"}, replications=200)
<cprsim.Run quickstart>

Each function does what the command of its name does, by the same code, prints nothing, and returns
an answer: `table` (a DataFrame with intervals), `figure()`, `document`, `report(file)`; notebooks
show it. All errors are of `CprsimError`. What is asked for first is loaded then: ``import cprsim``
takes the standard library alone. docs/python.md has an example of each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cprsim.api.ledger import ledger as ledger
from cprsim.api.rehearse import rehearse as rehearse
from cprsim.api.report import read as read
from cprsim.api.report import report as report
from cprsim.api.run import run as run
from cprsim.api.sync import sync as sync
from cprsim.version import __version__ as __version__

if TYPE_CHECKING:
    from cprsim.api.backtests import BacktestedJobs, backtest
    from cprsim.api.calibrations import CalibratedScenario, calibrate
    from cprsim.api.comparing_systems import SystemsComparison, compare_systems
    from cprsim.api.curves import Curve
    from cprsim.api.fitting import Fit, fit
    from cprsim.api.fleets import Fleet, fleet
    from cprsim.api.measuring import measure
    from cprsim.api.scenario import Scenario, load
    from cprsim.api.selecting import Selection, select
    from cprsim.api.sweeping import Sweep, sweep
    from cprsim.api.systems import Systems, systems
    from cprsim.errors import CprsimError
    from cprsim.present.answer import Answer

__all__ = [
    "Answer",
    "BacktestedJobs",
    "CalibratedScenario",
    "CprsimError",
    "Curve",
    "Fit",
    "Fleet",
    "Scenario",
    "Selection",
    "Sweep",
    "Systems",
    "SystemsComparison",
    "backtest",
    "calibrate",
    "compare_systems",
    "fit",
    "fleet",
    "ledger",
    "load",
    "measure",
    "read",
    "rehearse",
    "run",
    "select",
    "sweep",
    "sync",
    "systems",
]

_WHERE = {
    "cprsim.api.backtests": ("BacktestedJobs", "backtest"),
    "cprsim.api.calibrations": ("CalibratedScenario", "calibrate"),
    "cprsim.api.comparing_systems": ("SystemsComparison", "compare_systems"),
    "cprsim.api.fitting": ("Fit", "fit"),
    "cprsim.api.fleets": ("Fleet", "fleet"),
    "cprsim.present.answer": ("Answer",),
    "cprsim.api.curves": ("Curve",),
    "cprsim.api.measuring": ("measure",),
    "cprsim.api.scenario": ("Scenario", "load"),
    "cprsim.api.selecting": ("Selection", "select"),
    "cprsim.api.sweeping": ("Sweep", "sweep"),
    "cprsim.api.systems": ("Systems", "systems"),
    "cprsim.errors": ("CprsimError",),
}


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first asked for."""
    for module, names in _WHERE.items():
        if name in names:
            found = globals()[name] = getattr(import_module(module), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
