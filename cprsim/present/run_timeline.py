"""One replication of a run, along its wall time, and what each failure did."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
