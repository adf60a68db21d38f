"""Closed forms of overhead and survival that systems and studies compute with.

`tiers`          saves on several tiers, first order, and their optimal intervals
`nested_levels`  saves on nested levels, exact
`survival`       whether copies survive, and how many failures that takes
`systems`        single systems: increments, a published charge, rebuilding, a break-even rate

All are expectations in hours, shares of useful time, or probabilities. Each says on which clock
(docs/model.md, section 1) and under which assumption it is exact. Those that only the simulator is
held to stand with the tests (tests/closed_forms).
"""
