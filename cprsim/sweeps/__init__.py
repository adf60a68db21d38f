"""Sweeps: a scenario at every combination of some values, for every strategy, as one table.

    scenario with axes ──> points ──> store: which are finished already?
                             │          └── the others, in tasks for the workers ──> store
                             └──> table, in the order of the axes ──> folder

A point is addressed by what decides its numbers, so a sweep that was killed goes on where it was,
and a longer axis computes its new points only (``docs/adr/0013-sweeps-are-points-in-a-store.md``).
"""
