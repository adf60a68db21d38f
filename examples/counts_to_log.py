"""Turn a CSV of how many nodes there were (time,nodes) into a log: node,start,end.

    python examples/counts_to_log.py counts.csv > log.csv

Which nodes leave is not in such a file: those come back first that left first. A node that is there
later for the first time is away before the first row. The last row ends the observation. A scenario
replays the log with `begins: first`, and `nodes` and `period` as printed below it.
"""

from __future__ import annotations

import sys
from collections import deque

import pandas as pd


def main(path: str) -> None:
    """Print the log; on stderr what a scenario says of it."""
    counts = pd.read_csv(path)
    times, nodes = counts["time"].tolist(), counts["nodes"].tolist()
    most = max(nodes)
    here = list(range(nodes[0]))
    away = deque((node, times[0] - 1) for node in range(nodes[0], most))
    print("node,start,end")
    for now, there in zip(times[1:], nodes[1:], strict=True):
        while len(here) > there:
            away.append((here.pop(), now))
        while len(here) < there:
            node, since = away.popleft()
            print(f"n{node:05d},{since},{now}")
            here.append(node)
    for node, since in away:
        print(f"n{node:05d},{since},")
    print(f"nodes: {most}, period: {{from: {times[0]}, to: {times[-1]}}}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
