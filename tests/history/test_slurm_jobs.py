"""A table of sacct closes: known jobs, written in any of its forms, give the known node-hours."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cprsim

BEGIN = datetime(2025, 1, 1)
STATES = ("COMPLETED", "NODE_FAIL", "FAILED", "TIMEOUT", "CANCELLED by 7", "REQUEUED")
ATTEMPTS = st.tuples(
    st.integers(0, 99), st.integers(1, 200), st.integers(1, 9), st.sampled_from(STATES)
)  # hours before it starts, hours that it runs, nodes, its end
JOBS = st.lists(st.lists(ATTEMPTS, min_size=1, max_size=4), min_size=1, max_size=6)
COLUMNS = ("JobID", "State", "Start", "End", "Elapsed", "NNodes", "NodeList", "User")


def rows_of(jobs: list[list[tuple[int, int, int, str]]]) -> list[dict[str, str]]:
    """A row per attempt, one for a step of it, and one for a job that never started."""
    rows = []
    for number, attempts in enumerate(jobs):
        at = BEGIN + timedelta(days=number)
        for wait_h, hours, n_nodes, state in attempts:
            start = at + timedelta(hours=wait_h)
            at = start + timedelta(hours=hours)
            rows.append({
                "JobID": f"{1000 + number}_1", "State": state, "Start": start.isoformat(),
                "End": at.isoformat(), "Elapsed": f"{hours // 24}-{hours % 24:02}:00:00",
                "NNodes": str(n_nodes), "NodeList": f"gpu[001-{n_nodes:03}]", "User": "x",
            })  # fmt: skip
            rows.append({**rows[-1], "JobID": f"{1000 + number}_1.batch", "NNodes": "1"})
            at += timedelta(hours=1)
    never = {"JobID": "999", "State": "CANCELLED by 7", "Start": "None", "NNodes": "64"}
    return [*rows, dict.fromkeys(COLUMNS, "") | never | {"NodeList": "None assigned"}]


@settings(max_examples=40, deadline=None)
@given(JOBS, st.randoms(use_true_random=False), st.sampled_from(["NNodes", "NodeList", ""]))
def test_known_jobs_give_the_known_node_hours(
    jobs: list[list[tuple[int, int, int, str]]], drawn: Random, left_out: str
) -> None:
    wanted = Counter[str]()
    for attempts in jobs:
        for _, hours, n_nodes, state in attempts:
            wanted[state.split()[0]] += hours * n_nodes
    rows = rows_of(jobs)
    rows += drawn.sample(rows, len(rows) // 3)  # told twice
    drawn.shuffle(rows)
    names = [name for name in COLUMNS if name != left_out and (name != "Elapsed" or len(rows) % 2)]
    drawn.shuffle(names)
    half = drawn.randrange(len(rows))
    with TemporaryDirectory() as folder:
        for file, some in (("a.txt", rows[:half]), ("b.txt", rows[half:])):
            lines = ["|".join(names), *("|".join(row[name] for name in names) for row in some)]
            Path(folder, file).write_text("\n".join(lines) + "\n")
        answer = cprsim.ledger(folder, node_hour="2 USD")
    states = answer.frames["states"].set_index("state")
    assert states["node_h"].to_dict() == pytest.approx(wanted)
    failed_h = wanted["NODE_FAIL"] + wanted["FAILED"]
    values = answer.values
    assert values["node_h"] == pytest.approx(sum(wanted.values()))
    assert values["failed_node_h"] == pytest.approx(failed_h)
    assert values["failed_cost"] == pytest.approx(2 * failed_h)
    assert values["n_jobs"] == len(jobs)
    assert values["n_attempts"] == sum(map(len, jobs))
    for parts in ("months", "quarters", "jobs"):
        assert answer.frames[parts]["failed_node_h"].sum() == pytest.approx(failed_h)
        assert answer.frames[parts]["n_attempts"].sum() == values["n_attempts"]
    if left_out != "NodeList":
        nodes = answer.frames["nodes"]
        assert nodes["failed_node_h"].sum() == pytest.approx(failed_h)
        assert nodes["node_failures"].sum() == pytest.approx(values["n_node_failures"])
        assert nodes["hours"].sum() == pytest.approx(values["node_h"])
