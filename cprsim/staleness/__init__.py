"""What stale shards cost in accuracy: measured responses, and what they predict for failures.

A shard that goes back to an old save loses samples. Training was measured to lose accuracy nearly
in proportion to them, one loss adding to the next; when in the run they are lost weighs too. So a
response per strategy and metric is enough to price any failures (docs/staleness.md says how far).

    curve: the responses of one model ──> response: loss over weighted PLS of one strategy
        ──> expected: mean losses with both kinds of noise
"""
