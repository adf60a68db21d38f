"""InfiniteHBD's fault trace: a JSON array with a start and an end event per fault."""

from __future__ import annotations

from os import PathLike

import numpy as np
import pandas as pd

from cprsim.failures.outages import Counted
from cprsim.logs.formats.jsonl import json_pieces
from cprsim.logs.log import LONGEST_WINDOW_H, Log, LogFormat
from cprsim.logs.reading import no_row_where
from cprsim.logs.spec import LogSpec
from cprsim.logs.times import Times

EVENT = ("node_id", "event_time", "event_type", "fault_type")


def read_infinitehbd(log: PathLike[str], spec: LogSpec) -> Log:
    """Outages from a JSON array of events: node_id, event_time [d], event_type, fault_type.

    Each ``fault_start`` is paired with the next ``fault_end`` of the same node and fault type,
    first in, first out. The observation begins at 0 and ends at the last event. The cause is the
    fault's level and class.
    """
    events = pd.concat(json_pieces(log))
    parts = [name for name in events if str(name).split(".")[0] == "fault_type"]
    for name in EVENT:
        cells = events.get(name, events[parts[0]] if parts and name == EVENT[-1] else None)
        absent = pd.Series("", events.index) if cells is None else cells.fillna("")
        no_row_where(absent == "", absent, log, name, "is missing in this event")
    texts = events[parts].fillna("")
    labels = [name for name in ("fault_type.Level", "fault_type.Class") if name in parts] or parts
    events = events.assign(
        cause=texts[labels].agg(" / ".join, axis=1), fault_type=texts.agg("|".join, axis=1)
    )
    days = pd.to_numeric(events["event_time"], errors="coerce").to_numpy(dtype=float)
    right = (days >= 0) & (days <= LONGEST_WINDOW_H / 24)
    no_row_where(~right, events, log, "event_time", "{value} is no number of days")
    odd = ~events["event_type"].isin(["fault_start", "fault_end"])
    no_row_where(odd, events, log, "event_type", "{value} is neither fault_start nor fault_end")
    events = events.assign(at_h=days * 24, ends=events["event_type"] == "fault_end")
    events = events.sort_values(["at_h", "ends"], kind="stable")  # at one tick, starts come first
    faults = events.groupby(["node_id", "fault_type", "ends"], sort=False)
    key = ["node_id", "fault_type", "number"]
    events["number"] = faults.cumcount()
    ends = events[events["ends"]].set_index(key)["at_h"].rename("end")
    rows = events[~events["ends"]].join(ends, on=key)
    begun = events[key].merge(rows[[*key, "at_h"]], "left", key)["at_h"].to_numpy(float)
    early = events["ends"].to_numpy(bool) & ~(begun <= events["at_h"].to_numpy())
    no_row_where(early, events, log, "event_type", "a fault ends that did not begin")
    counted = Counted({("merged", "event(s) that end a fault"): len(events) - len(rows)})
    return Log(
        rows.rename(columns={"node_id": "node", "at_h": "start"}).assign(open=True), counted,
        points=False, n_read=len(events),
        times=Times(np.zeros(0), since_1970=False, unit="d"), records_alone=True,
        watched=(0.0, float(events["at_h"].max())),
        evidence={"begins": "the zero of the file's times"},
    )  # fmt: skip


FORMAT = LogFormat(
    options=frozenset(),
    looks_like=lambda head: (
        "a JSON array with events `fault_start`"
        if head.startswith("[") and "fault_start" in head
        else ""
    ),
    read=read_infinitehbd,
    order=10,
    source="InfiniteHBD's fault trace: StepFun's public repository of that name on GitHub",
)
