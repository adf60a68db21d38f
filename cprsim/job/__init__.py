"""The nouns: cluster, costs, clocks, durations, policies of recovery, event logs, losses."""
