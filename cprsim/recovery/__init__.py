"""Recovery: each system turns what is known of a job into the policy that both engines follow.

`paper` has the strategies of the paper, `systems` those of the literature: rows of one table.
"""
