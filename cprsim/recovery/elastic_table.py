"""The speed of a job that goes on without some of its nodes, from a table of its throughput.

The global batch stays as it is, so that fewer nodes take longer over each step: samples per second
are hours of progress per hour, and no sample is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from cprsim.errors import ParameterError
from cprsim.recovery.legal import MOST_UNITS
from cprsim.recovery.policy import GROWTH_H, Elastic, Stage, StageKind
from cprsim.recovery.system import JobFacts


def elastic_of(
    facts: JobFacts, throughput: Sequence[float] | None, unit_nodes: int, wanted_by: str
) -> Elastic:
    """How fast a job works without some units of the role whose state is saved."""
    if unit_nodes < 1 or facts.n_nodes % unit_nodes:
        raise ParameterError(
            f"{wanted_by}: units of {unit_nodes} nodes do not divide the {facts.n_nodes} nodes of "
            f"`{facts.role}`"
        )
    n_units = facts.n_nodes // unit_nodes
    if throughput is None:
        n_known = min(n_units + 1, MOST_UNITS)
        return Elastic(facts.role, tuple(1.0 - d / n_units for d in range(n_known)), unit_nodes)
    _check(throughput, n_units, wanted_by)
    return Elastic(facts.role, tuple(here / throughput[0] for here in throughput), unit_nodes)


def _check(throughput: Sequence[float], n_units: int, wanted_by: str) -> None:
    if not 1 <= len(throughput) <= min(n_units + 1, MOST_UNITS):
        raise ParameterError(
            f"{wanted_by}: `throughput` has {len(throughput)} numbers; give one for all "
            f"{n_units} units, one for a unit fewer and so on, at most {n_units + 1}"
        )
    if not throughput[0] > 0.0 or any(not isfinite(here) or here < 0.0 for here in throughput):
        raise ParameterError(
            f"{wanted_by}: `throughput` must be positive with all units and never negative"
        )
    for fewer, here in enumerate(throughput):
        if here > throughput[0]:
            raise ParameterError(
                f"{wanted_by}: `throughput` is {here} without {fewer} units and {throughput[0]} "
                "with all: begin with the number for all units"
            )


def until_it_grows(when: float | str) -> tuple[Stage, ...]:
    """What slots whose nodes are back wait for."""
    grows_h = GROWTH_H[when] if isinstance(when, str) else when
    return (Stage(StageKind.WAIT, blocks=False, grows_h=grows_h),) if grows_h else ()
