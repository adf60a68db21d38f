"""What failures of nodes, of racks and of all strike."""

from itertools import chain

import numpy as np
import pytest

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.several import SeveralSources
from cprsim.job.distributions import Constant, Exponential
from cprsim.job.policy import Reach
from cprsim.job.records import Cluster, Holds, Role
from cprsim.simulation.strikes import ScopedBlock, ScopeShares

N_NODES, USEFUL_H = 14, 60.0
REACHES = (Reach.NODE, Reach.RACK, Reach.ALL)


def failures_of(together: int) -> BlockFailures:
    cluster = Cluster((Role("worker", N_NODES, Holds.SHARD),), 3, Constant(2.0))
    source = JobClock(Exponential(5.0), range(N_NODES), together=together)
    return BlockFailures(source, cluster, 1, 0, USEFUL_H).of_these(range(40))


def block_of(together: int, rack: int | None) -> ScopedBlock:
    shares = ScopeShares((0.4, 0.4, 0.2), REACHES, N_NODES, rack)
    return ScopedBlock(failures_of(together), shares)


@pytest.mark.parametrize("rack", [None, 1, 4, 5, 20])
@pytest.mark.parametrize("together", [1, 3])
def test_a_failure_strikes_what_its_scope_reaches(together: int, rack: int | None) -> None:
    block, drawn = block_of(together, rack), failures_of(together)
    assert len(block.strikes(1).at_h) > 400
    assert len(np.unique(block.strikes(1).slot)) == N_NODES
    of = block.strikes(2)
    for replication, failing in enumerate(map(drawn.of, range(40))):
        of_chunks = [range(*first[replication : replication + 2]) for first in of.first]
        for n, failed in zip(chain(*of_chunks), failing, strict=False):
            struck = slice(*of.first_slot[n : n + 2])
            reach = REACHES[of.scope[n]]
            slots, repair_h = set(failed.slots), tuple(failed.repair_h)
            if reach is Reach.ALL:
                slots = set(range(N_NODES))
            elif reach is Reach.RACK and rack is not None:
                racks = {slot // rack for slot in slots}
                slots = {slot for slot in range(N_NODES) if slot // rack in racks}
            widens = reach is Reach.ALL or (reach is Reach.RACK and rack is not None)
            assert of.at_h[n] == failed.at_h
            assert set(of.slot[struck]) == slots
            assert tuple(of.repair_h[struck]) == (repair_h[:1] * len(slots) if widens else repair_h)


def test_failures_of_a_source_of_their_own_are_of_its_scope() -> None:
    cluster = Cluster((Role("worker", N_NODES, Holds.SHARD),), 3, Constant(2.0))
    nodes = JobClock(Exponential(5.0), range(N_NODES))
    racks = JobClock(Exponential(20.0), range(N_NODES))
    sources = SeveralSources((("", nodes), ("rack", racks)))
    shares = ScopeShares((1.0, 0.0), (Reach.NODE, Reach.RACK), N_NODES, 7, of_source=(1,))
    failures = BlockFailures(sources, cluster, 1, 0, USEFUL_H).of_these(range(40))
    block = ScopedBlock(failures, shares)
    flat = block.strikes(1)
    sizes = np.diff(flat.first_slot)
    assert set(sizes[flat.scope == 0]) == {1}
    assert set(sizes[flat.scope == 1]) == {7}
    assert 0.1 < np.mean(flat.scope) < 0.3
