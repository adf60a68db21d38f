"""One replication of a run, along its wall time, and what each failure did."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from cprsim.present.document import (
    Block,
    Column,
    Picture,
    Section,
    Table,
    Words,
    row_columns,
)
from cprsim.records import NO_NUMBER
from cprsim.results import Result
from cprsim.results.words import hours

if TYPE_CHECKING:
    import pandas as pd

    from cprsim.plots.timeline import Lane


MOST_ROWS = 40  # failures shown: more are a table that nobody reads


def timeline_section(result: Result) -> Section:
    """The timeline, and a table with a row per strategy and failure."""
    from cprsim.plots.timeline import read_lane, timeline_figure

    number = result.timeline_replication
    events = {str(k): v for k, v in result.timeline.groupby("strategy", sort=False)}
    lanes = {policy.name: read_lane(events[policy.name]) for policy in result.policies}
    picture = Picture(
        caption=f"Replication {number} along its wall time, a lane per strategy",
        alternative=(
            "A lane per strategy over wall time: useful work, saves, failures, recoveries and work "
            "done again; below, the first failure from close up. The table below has the numbers."
        ),
        draw=lambda: timeline_figure(result),
        name="timeline",
    )
    blocks: list[Block] = [picture]
    rows = [row for name, lane in lanes.items() for row in _rows(name, lane)]
    if rows:
        blocks.append(_table(rows[:MOST_ROWS]))
    if len(rows) > MOST_ROWS:
        left = len(rows) - MOST_ROWS
        blocks.append(Words([f"{left:,} more failures are in timeline.parquet."]))
    elastic = [one.name for one in result.policies if one.elastic and not one.is_strategy]
    if paced := [row for name in elastic for row in _paces(name, events[name])]:
        blocks.append(_pace_table(paced[:MOST_ROWS]))
    if len(paced) > MOST_ROWS:
        blocks.append(Words([f"{len(paced) - MOST_ROWS:,} more follow from timeline.parquet."]))
    return Section("One course of the job", blocks)


def _table(rows: list[list[str]]) -> Table:
    return Table(
        caption="What each failure did: hours of wall time since the start of the job",
        columns=[
            *row_columns("strategy", "failure", "struck at, h"),
            Column("who went back", is_number=False),
            *map(Column, ("to the state of, h", "first new work after")),
        ],
        rows=rows,
    )


def _pace_table(rows: list[list[str]]) -> Table:
    return Table(
        caption="How fast the job got on between changes of its nodes; speed is useful hours per "
        "wall hour, and times the throughput of all nodes the mean throughput",
        columns=row_columns("strategy", "from, h", "to, h", "stands still for", "speed"),
        rows=rows,
    )


def _paces(name: str, events: pd.DataFrame) -> list[list[str]]:
    return [
        [name, f"{one.from_h:.2f}", f"{one.to_h:.2f}", hours(one.still_h), f"{one.speed:.3f}"]
        for one in paces(events)
    ]


def _rows(name: str, lane: Lane) -> list[list[str]]:
    back = {setback.at_h: setback for setback in lane.setbacks}
    fresh = [span.start_h for span in lane.spans if span.activity == "useful"]
    rows = []
    for number, at_h in enumerate(lane.failed_at_h, start=1):
        setback = back.get(at_h)
        again_h = next((start_h for start_h in fresh if start_h > at_h), None)
        rows.append(
            [
                name,
                str(number),
                f"{at_h:.2f}",
                "nobody" if setback is None else "failed shards" if setback.shards_only else "all",
                NO_NUMBER if setback is None else f"{setback.back_to_h:.2f}",
                NO_NUMBER if again_h is None else hours(again_h - at_h),
            ]
        )
    return rows


# --------------------------------------------------------------------------- how fast it got on


WORKS = ("useful", "lost", "save")  # a job whose state is whole


class WorkStretch(NamedTuple):
    """Useful work between two changes of a job."""

    from_h: float  # wall time: work stops, as nodes leave or come back
    to_h: float  # it stops next, or ends
    still_h: float  # of these, until it goes on
    useful_h: float  # first-time work that lasts: hours at full speed

    @property
    def speed(self) -> float:
        """Useful hours per wall hour, relative to all nodes that never stop."""
        return self.useful_h / (self.to_h - self.from_h)


def paces(events: pd.DataFrame) -> list[WorkStretch]:
    """The stretches from each stop of a job to the next, in order; useful hours add up to all."""
    at_h = events["at_h"].to_numpy(dtype=float)
    works = np.isin(events["activity"].to_numpy(dtype=object), WORKS)
    progress_h = events["progress_h"].to_numpy(dtype=float)
    frontier_h = np.minimum(np.maximum.accumulate(progress_h), progress_h[-1])
    stops = np.flatnonzero(~works & np.append(True, works[:-1]))
    places = np.unique([0, *stops, len(at_h) - 1])
    still_h = np.where(works[:-1], 0.0, np.diff(at_h))
    return [
        WorkStretch(
            float(at_h[first]),
            float(at_h[last]),
            float(still_h[first:last].sum()),
            float(frontier_h[last] - frontier_h[first]),
        )
        for first, last in pairwise(places.tolist())
        if at_h[last] > at_h[first]
    ]
