"""Until `compare-systems` asks `cprsim.selector` itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cprsim.results.sensitivity import Sensitivity
from cprsim.scenario import LoadedScenario
from cprsim.selector import unknown


def sensitivity_of(
    loaded: LoadedScenario, entries: Mapping[str, str], costs: Mapping[str, float], best: str,
    on_priced: Callable[[], None] = lambda: None,
) -> Sensitivity | None:  # fmt: skip
    """As `cprsim.selector.unknown` finds it."""
    return unknown.sensitivity_of(loaded, entries, costs, best)
