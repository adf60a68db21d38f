"""Nodes that are in repair, and who gets them."""

from __future__ import annotations

from math import inf

import simpy

from cprsim.simulate.events.spares import Spares


def test_the_next_node_is_there_when_the_next_repair_ends() -> None:
    env = simpy.Environment()
    spares = Spares(env, 0, on_return=lambda: None)
    for slot, repair_h in ((0, 2.0), (1, 5.0), (2, 7.0)):
        spares.lose(slot, repair_h)
    assert spares.next_at_h == inf  # nobody has asked yet
    spares.ask([1, 0])
    at_h = []
    while spares.queued:
        at_h.append(spares.next_at_h)
        env.run(until=spares.next_at_h + 0.5)
    assert at_h == [2.0, 5.0]
    assert spares.next_at_h == inf
    assert spares.vacant == {2}
