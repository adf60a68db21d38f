"""When and where failures strike: distributions, fits, and the sources that draw or replay them.

A source that few jobs have is imported when a job has it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cprsim.failures.correlated import CorrelatedNodes as CorrelatedNodes
    from cprsim.failures.injected import Injected as Injected
    from cprsim.failures.replay import Replay as Replay
    from cprsim.failures.several import SeveralSources as SeveralSources

_WHERE = {
    "CorrelatedNodes": "correlated", "Injected": "injected", "Replay": "replay",
    "SeveralSources": "several",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
