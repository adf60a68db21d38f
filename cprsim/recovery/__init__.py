"""Recovery: each system turns what is known of a job into the policy that a simulation follows.

`paper` has the strategies of the paper, `systems` those of the literature: rows of one table.
"""
