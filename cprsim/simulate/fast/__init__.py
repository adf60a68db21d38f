"""The compiled engine: many replications of a job, decided by `transitions`.

replications    from instant to instant, whatever the job's recovery system   (run)
saves, recoveries, skipping, state                                            what it is made of
batch           the common case: many replications side by side, step by step (run_batch)
params          that case in plain numbers

A replication's cost grows with its failures and not with its saves: between two failures, cycles
of work and save that are all alike are taken in one step.
"""

from __future__ import annotations
