"""A log of three nodes in every format, and samples of programs that were run."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

RUN = Path(__file__).with_name(
    "samples_run"
)  # by Slurm 22.05.8 and Prometheus 2.42, as they wrote it


class Row(NamedTuple):
    """One outage; instants as UTC."""

    node: str
    start: str
    end: str  # empty where there is none
    cause: str


ROWS = tuple(
    Row(f"gpu{node:03d}", f"2024-05-{day:02d}T0{hour}:00:00", end and f"2024-05-{day:02d}T{end}:00",
        cause)
    for node, day, hour, end, cause in (
        (1, 2, 3, "04:30", "disk"), (2, 3, 5, "06:00", "gpu"), (3, 4, 1, "09:15", "gpu"),
        (1, 6, 2, "03:00", "power"), (2, 8, 7, "07:30", "disk"), (3, 11, 4, "10:00", "gpu"),
        (2, 15, 6, "", "gpu"),
    )
)  # fmt: skip
PERIOD = ("2024-05-01", "2024-05-20")


def csv(rows: tuple[Row, ...]) -> bytes:
    return _lines(["node,start,end,cause", *(",".join(row) for row in rows)])


def jsonl(rows: tuple[Row, ...]) -> bytes:
    return _lines([json.dumps({**row._asdict(), "end": row.end or None}) for row in rows])


def parquet(rows: tuple[Row, ...]) -> bytes:
    columns = {name: [getattr(row, name) or None for row in rows] for name in Row._fields}
    file = BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def slurm_events(rows: tuple[Row, ...]) -> bytes:
    head = "Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"
    return _lines([head, *(
        f"demo|{row.node}|{row.start}|{row.end or 'Unknown'}|DOWN*|{row.cause}|root(0)"
        for row in rows
    )])  # fmt: skip


def slurm_jobs(rows: tuple[Row, ...]) -> bytes:
    head = "JobID|State|Start|End|NodeList"
    return _lines([head, *(
        f"{number}|NODE_FAIL|2024-05-01T00:00:00|{row.start}|{row.node}"
        for number, row in enumerate(rows, 1)
    )])  # fmt: skip


def nvidia_xid(rows: tuple[Row, ...]) -> bytes:
    return _lines([
        f"{row.start}+0000 {row.node} kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen"
        " off the bus." for row in rows
    ])  # fmt: skip


def kubernetes(rows: tuple[Row, ...]) -> bytes:
    items = []
    for row in rows:
        items.append(node_event(row.node, "NodeNotReady", row.start))
        if row.end:
            items.append(node_event(row.node, "NodeReady", row.end))
    return json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=1).encode()


def node_event(node: str, reason: str, at: str) -> dict[str, object]:
    return {
        "kind": "Event", "reason": reason, "count": 1, "firstTimestamp": f"{at}Z",
        "lastTimestamp": f"{at}Z", "involvedObject": {"kind": "Node", "name": node},
        "message": f"Node {node} status is now: {reason}",
    }  # fmt: skip


def prometheus(rows: tuple[Row, ...]) -> bytes:
    """Sampled each 15 minutes, as all instants of `ROWS` are multiples of that."""
    first, last, step = (_seconds(at) for at in ("2024-05-01", "2024-05-20", "1970-01-01T00:15"))
    result = []
    for node in sorted({row.node for row in rows} | {"gpu004"}):
        down = [
            (_seconds(row.start), _seconds(row.end) if row.end else last + 1)
            for row in rows if row.node == node
        ]  # fmt: skip
        values = [
            [at, "0" if any(begin <= at < end for begin, end in down) else "1"]
            for at in range(first, last + 1, step)
        ]
        result.append({"metric": {"__name__": "up", "instance": node}, "values": values})
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}
                      ).encode()  # fmt: skip


def _seconds(at: str) -> int:
    from datetime import UTC, datetime

    return int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp())


def _lines(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


WRITERS = {
    "tidy": csv, "jsonl": jsonl, "parquet": parquet, "slurm-events": slurm_events,
    "slurm-jobs": slurm_jobs, "nvidia-xid": nvidia_xid, "kubernetes": kubernetes,
    "prometheus": prometheus,
}  # fmt: skip
POINTS = {"slurm-jobs", "nvidia-xid"}
"""Formats whose failures are instants."""
CAUSES = {"tidy", "jsonl", "parquet"}
"""Formats that take the causes as they stand."""
