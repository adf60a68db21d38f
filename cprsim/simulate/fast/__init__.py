"""The compiled engine: many replications of a job, decided by `transitions`.

replications    from instant to instant, whatever the job's recovery system   (run)
plain           from failure to failure, where nothing varies and nothing goes on beside the job
saves, recoveries, skipping, state                                            what it is made of
interpreting    the same as Python runs it

A replication's cost grows with its failures and not with its saves: between two failures, cycles
of work and save that are all alike are taken in one step.
"""

from __future__ import annotations
