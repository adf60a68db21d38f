"""Cases of logs of costs, replays, tables of jobs."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from tests.accounts.case import Case

BEGIN = datetime(2025, 6, 1)


def _saves(durations_s: list[float], **columns: list[object]) -> list[dict[str, object]]:
    """Saves, an hour apart."""
    rows = []
    for number, duration_s in enumerate(durations_s):
        start = BEGIN + timedelta(hours=number)
        end = start + timedelta(seconds=duration_s)
        more = {name: values[number] for name, values in columns.items()}
        rows.append({"kind": "save", "start": start.isoformat(), "end": end.isoformat(), **more})
    return rows


def _table(rows: list[dict[str, object]], separator: str = ",") -> str:
    lines = [separator.join(rows[0]), *(separator.join(map(str, row.values())) for row in rows)]
    return "\n".join(lines) + "\n"


def _lasting(unit: str, factor: float, durations_s: list[float]) -> str:
    rows = _saves(durations_s)
    for row, duration_s in zip(rows, durations_s, strict=True):
        del row["end"]
        row[unit] = round(duration_s * factor, 3)
    return _table(rows)


STEADY = [28.0, 31.0, 30.0, 29.0, 32.0, 30.0, 27.0, 33.0, 30.0, 31.0, 29.0, 30.0]  # mean 30
GROWING = [20 + 0.8 * number for number in range(100)]  # tenths: 23.6 to 95.6
HUMP = [50.0] * 30 + [140.0] * 30 + [50.0] * 30
STEPPED = [(40.0 if number < 60 else 90.0) + number % 3 for number in range(80)]
FIT = "fit saves.csv --bootstrap 0"
IN_GB = _table(_saves(STEADY, bytes=[f"{17 + number / 10:.1f}" for number in range(12)]))
IN_POINTS = _table(_saves(STEADY, bytes=["17.179.869.184"] * 12))
UNSURE = _table(_saves(STEADY, bytes=["950 MB", *["1.050 MB"] * 11]))
WITH_UNIT = IN_GB.replace("\n", " GB\n").replace("bytes GB", "bytes")
MEAN_30 = {"frames.times.0.mean_h": 30 / 3600, "frames.times.0.n_observed": 12}
COSTS = [
    Case("bare bytes that are gigabytes", {"saves.csv": IN_GB}, FIT,
         refused=("saves.csv:2: bytes: '17.0' bytes, at less than 1 MB/s?", "Write the unit")),
    Case("the same with a unit", {"saves.csv": WITH_UNIT}, FIT,
         MEAN_30 | {"frames.times.0.mean_bytes": 17.55e9}),
    Case("bytes with points between thousands", {"saves.csv": IN_POINTS}, FIT,
         refused=("saves.csv:2: bytes: '17.179.869.184'", "no sign between thousands")),
    Case("a point that may stand between thousands", {"saves.csv": UNSURE}, FIT,
         refused=("saves.csv:3: bytes: '1.050", "a decimal point, or one between thousands?")),
    Case("saves that grow", {"saves.csv": _table(_saves(GROWING))}, FIT,
         {"frames.times.0.drift_first_h": 23.6 / 3600, "frames.times.0.drift_last_h": 95.6 / 3600},
         says=("The saves grew from 23.6 s (first tenth of them) to 95.6 s (last tenth)",
               "for the next job use 95.6 s, not the mean of 59.8")),
    Case("saves after a step", {"saves.csv": _table(_saves(STEPPED))}, FIT,
         {"frames.times.0.drift_first_h": 40.875 / 3600,
          "frames.times.0.drift_last_h": 90.875 / 3600},
         says=("The saves grew from 40.87 s (first tenth of them) to 90.87 s (last tenth)",)),
    Case("saves that fall, in any order of rows",
         {"saves.csv": _table(_saves(GROWING[::-1])[::-1])}, FIT,
         says=("The saves fell from 95.6",)),
    Case("saves that all take as long", {"saves.csv": _table(_saves([30.0] * 12))}, f"-v {FIT}",
         MEAN_30, says=("costs: save: {stall: 30 s}",)),
    Case("saves that are slow at the end alone", {"saves.csv": _table(_saves(
        [40.0 + number * 7 % 13 + 50 * (number > 53) for number in range(60)]))}, FIT,
         says=("The saves grew from 44",)),
    Case("bytes of which some are gigabytes",
         {"saves.csv": _table(_saves(STEADY, bytes=[17.5, *[17500000000] * 11]))}, FIT,
         refused=("saves.csv:2: bytes: '17.5' bytes, at less than 1 MB/s?",)),
    Case("dates in a form that is said", {"saves.csv": _table([
        {key: str(of).replace("2025-06-01T", "01.06.2025_") for key, of in row.items()}
        for row in _saves(STEADY)])}, f"{FIT} --date-format %d.%m.%Y_%H:%M:%S", MEAN_30),
    Case("semicolons", {"saves.csv": _table(_saves(STEADY), ";")}, FIT, MEAN_30),
    Case("tabs", {"saves.csv": _table(_saves(STEADY), "\t")}, FIT, MEAN_30),
    Case("JSON lines", {"saves.csv": "\n".join(map(json.dumps, _saves(STEADY)))}, FIT, MEAN_30),
    Case("a JSON array", {"saves.csv": json.dumps(_saves(STEADY), indent=1)}, FIT, MEAN_30),
    Case("lengths in seconds", {"saves.csv": _lasting("duration_s", 1, STEADY)}, FIT, MEAN_30),
    Case("lengths in ms", {"saves.csv": _lasting("elapsed (ms)", 1e3, STEADY)}, FIT, MEAN_30),
    Case("lengths in another column", {"saves.csv": _lasting("took", 1 / 60, STEADY)},
         f"{FIT} --column duration=took --time-unit min", MEAN_30),
    Case("lengths without a unit", {"saves.csv": _lasting("duration", 1, STEADY)}, FIT,
         refused=("saves.csv:2: duration: '28.0': in which unit? Say --time-unit (beside",)),
    Case("lengths beside empty ends",
         {"saves.csv": "kind,start,end,duration_s\n" + "".join(
             f"save,{row['start']},{row['end'] if number % 3 else ''},{seconds}\n"
             for number, (row, seconds) in enumerate(zip(_saves(STEADY), STEADY, strict=True)))},
         FIT, MEAN_30),
    Case("a log of saves in other words",
         {"saves.csv": _table(_saves(STEADY)).replace("kind,start,end", "what,from,to")}, FIT,
         refused=("saves.csv:1: kind: there is no column 'kind'", "--column kind=NAME")),
    Case("the same with its columns named",
         {"saves.csv": _table(_saves(STEADY)).replace("kind,start,end", "what,from,to")},
         f"{FIT} --column kind=what --column start=from --column end=to", MEAN_30),
    Case("JSON with keys within keys",
         {"saves.csv": "\n".join(json.dumps({"save": row, "type": "save"})
                                 for row in _saves(STEADY))},
         f"{FIT} --format costs --column kind=type --column start=save.start "
         "--column end=save.end", MEAN_30),
    Case("saves that are slow for a while", {"saves.csv": _table(_saves(HUMP))}, FIT,
         {"frames.times.0.drift_fastest_h": 50 / 3600, "frames.times.0.drift_last_h": 50 / 3600,
          "frames.times.0.drift_slowest_h": 140 / 3600},
         says=("The saves changed with time: 50 s in the fastest tenth of the log, 140 s in",)),
    Case("saves that are slow for a tenth of the log", {"saves.csv": _table(_saves(
        [50.0 + number % 7 + 60 * (number in range(21, 25)) for number in range(40)]))}, FIT,
         says=("The saves changed with time: 51.5 s in the fastest tenth of the log, 97.25 s in",)),
    Case("two lengths", {"saves.csv": _lasting("duration_s", 1, STEADY).replace(
        "duration_s", "duration_s,duration_blocking_s").replace(".0\n", ".0,9.0\n")}, FIT,
         refused=("duration_s, duration_blocking_s: each tells how long it took: --column dur",)),
    Case("lengths in JSON", {"saves.csv": json.dumps([
        {"kind": "save", "start": row["start"], "duration_s": duration_s}
        for row, duration_s in zip(_saves(STEADY), STEADY, strict=True)])}, FIT, MEAN_30),
    Case("lengths that contradict ends",
         {"saves.csv": _table(_saves(STEADY, duration_s=[2 * one for one in STEADY]))}, FIT,
         refused=("saves.csv:2: duration_s: '56.0' is not the time from start to end: --ignore",)),
    Case("lengths finer than ends",
         {"saves.csv": _table(_saves(STEADY, took_ms=[1e3 * one + 400 for one in STEADY]))},
         f"{FIT} --column duration=took_ms", {"frames.times.0.mean_h": 30.4 / 3600}),
    *(Case(f"a column {name} that may tell which rows count", {"saves.csv": _table(
        _saves(STEADY, **{name: [*words, words[0]] * 4}))}, FIT,
        refused=(f"saves.csv:1: {name}: not read, but could tell which rows count", "--ignore"))
      for name, words in {"status": ("ok", "failed"), "ok": (1, 0), "done": ("yes", "no")}.items()),
    Case("failed saves left out",
         {"saves.csv": _table(_saves([*STEADY, 1.0, 2.0], status=["ok"] * 12 + ["failed"] * 2))},
         f"{FIT} --ignore status=failed", MEAN_30,
         says=("2 rows left out by --ignore status=failed",)),
]  # fmt: skip

SIX = [f"node{number}" for number in range(1, 7)]
JOB = """name: replay
job: {useful: 300 h, step: 1 s}
cluster: {workers: 3, replicas: 3, state: 1 GB, link: 100 Gbit/s}
costs: {save: 1 s, load: 1 s, detect: 1 s, reschedule: 1 s}
recovery: [full]
simulation: {seed: 1, replications: 2}
failures: """
STARTS = [BEGIN + timedelta(hours=31 * number) for number in range(20)]
OUTAGES = "node,start,end\n" + "".join(
    f"{SIX[number % 3]},{start.isoformat()}Z,{(start + timedelta(hours=2)).isoformat()}Z\n"
    for number, start in enumerate(STARTS)
)
LENGTHS = "node,start,duration\n" + "".join(
    f"{SIX[number % 3]},{start.isoformat()}Z,120\n" for number, start in enumerate(STARTS)
)
JOINED = "node,entry\n" + "".join(f"{node},2025-05-01\n" for node in SIX)
JUNE = "period: {from: 2025-06-01, to: 2025-07-01}"
REPLAYED = ("20 node failures of 6 nodes in 720 h from 2025-06-01T00:00:00+00:00 on",)
RUN = "run r.yaml --out results"
REPLAYS = [
    Case("a replay with a table of nodes",
         {"log.csv": OUTAGES, "nodes.csv": JOINED,
          "r.yaml": f"{JOB}{{kind: trace, file: log.csv, nodes: nodes.csv, {JUNE}}}\n"},
         RUN, says=REPLAYED),
    Case("a replay with a table of nodes that is not there",
         {"log.csv": OUTAGES,
          "r.yaml": f"{JOB}{{kind: trace, file: log.csv, nodes: nods.csv, {JUNE}}}\n"},
         RUN, refused=("r.yaml:7: failures.nodes: `nods.csv` is not there", "their number")),
    Case("a replay of dates and lengths in a unit",
         {"log.csv": LENGTHS,
          "r.yaml": f"{JOB}{{kind: trace, file: log.csv, nodes: 6, time_unit: min, {JUNE}}}\n"},
         RUN, says=REPLAYED),
    Case("a replay of a period that is none",
         {"log.csv": OUTAGES,
          "r.yaml": f"{JOB}{{kind: trace, file: log.csv, nodes: 6, period: {{from: June}}}}\n"},
         RUN, refused=("r.yaml:7: failures.period.from: `June` is no instant: write a day",)),
]  # fmt: skip

HEAD = "JobID|State|Start|End|NNodes|NodeList\n"
SACCT = (
    HEAD
    + """\
501|NODE_FAIL|2025-01-30T00:00:00|2025-02-01T06:00:00|8|c[01-08]
501|COMPLETED|2025-02-01T07:00:00|2025-02-03T07:00:00|8|c[02-09]
501.batch|COMPLETED|2025-02-01T07:00:00|2025-02-03T07:00:00|1|c02
502|FAILED|2025-02-04T00:00:00|2025-02-04T10:00:00|2|c[08-09]
503|NODE_FAIL|2025-04-02T00:00:00|2025-04-02T20:00:00|1|c08
504|TIMEOUT|2025-04-03T00:00:00|2025-04-04T00:00:00|4|c[01-04]
505|CANCELLED by 1000|2025-04-05T00:00:00|2025-04-05T12:00:00|4|c[01-04]
506|PENDING|Unknown|Unknown|4|None assigned
"""
)
# node-hours: 501 54 x 8 = 432 (failed) and 48 x 8 = 384; 502 20 (failed); 503 20 (failed);
# 504 96; 505 48: 1000 in all, 472 of failed attempts, 452 of those that a node ended
LEDGER = "ledger sacct.txt"
SLURM = [
    Case("a dump of sacct", {"sacct.txt": SACCT}, LEDGER,
         {"values.node_h": 1000, "values.failed_node_h": 472, "values.node_failed_node_h": 452,
          "values.n_jobs": 5, "values.n_attempts": 6, "values.n_failed": 3,
          "values.n_node_failures": 2, "frames.months.0.failed_node_h": 452,
          "frames.months.1.failed_node_h": 20, "frames.quarters.0.failed_node_h": 452,
          "frames.quarters.1.failed_node_h": 20, "frames.nodes.0.n_failed": 1 + 1 / 8 + 1 / 2,
          "frames.nodes.0.failed_node_h": 20 + 54 + 10},
         says=("Failed jobs held 472 node-hours, 47.2 % of 1,000: at most that was lost.",
               "by their share of the attempts that failed by a node: c08 1.12, c01 0.12",
               "sacct records no saves")),
    Case("a dump of sacct with a price", {"sacct.txt": SACCT}, f"{LEDGER} --node-hour 2.50EUR",
         {"frames.months.0.failed_cost": 1130, "frames.nodes.0.failed_cost": 210},
         says=("472 node-hours, 1,180.00 EUR, 47.2 % of 1,000",)),
    Case("a dump of sacct with the node that failed",
         {"sacct.txt": SACCT.replace("NodeList", "NodeList|FailedNode").replace(
             "|c[01-08]", "|c[01-08]|c05").replace("]\n", "]|\n").replace(
             "c02\n", "c02|\n").replace("c08\n", "c08|c08\n").replace("ed\n", "ed|\n")},
         LEDGER, {"frames.nodes.0.failed_node_h": 30, "frames.nodes.1.failed_node_h": 432,
                  "frames.nodes.0.node_h": 132, "frames.nodes.1.node_h": 102},
         says=("failed by a node: c08 1.00, c05 1.00.",)),
    Case("a running job, and the same in a later dump",
         {"sacct.txt": f"{HEAD}7|RUNNING|2025-01-01T00:00:00|Unknown|2|c[1-2]\n"
                       "8|COMPLETED|2025-01-01T00:00:00|2025-01-03T00:00:00|1|c3\n",
          "later.txt": f"{HEAD}7|NODE_FAIL|2025-01-01T00:00:00|2025-01-11T00:00:00|2|c[1-2]\n"},
         f"{LEDGER} later.txt", {"values.failed_node_h": 480, "values.node_h": 528}),
    Case("a running job counts to the last instant",
         {"sacct.txt": f"{HEAD}7|RUNNING|2025-01-01T00:00:00|Unknown|2|c[1-2]\n"
                       "8|COMPLETED|2025-01-01T00:00:00|2025-01-03T00:00:00|1|c3\n"},
         LEDGER, {"values.node_h": 144, "values.failed_node_h": 0},
         says=("1 attempt without an end counted to Elapsed, or to the last instant",)),
    Case("failed jobs alone",
         {"sacct.txt": HEAD + "".join(line for line in SACCT.splitlines(keepends=True)
                                      if "NODE_FAIL" in line)},
         LEDGER, {"values.failed_node_h": 452, "values.node_h": 452},
         says=("Every attempt of the table failed", "which share of all node-hours that is")),
    Case("summer time: what Slurm counts is right",
         {"sacct.txt": "JobID|State|Start|End|Elapsed|NNodes\n"
                       "7|FAILED|2025-03-29T20:00:00|2025-03-30T06:00:00|09:00:00|2\n"
                       "8|TIMEOUT|2025-03-28T20:00:00|2025-03-29T20:00:00|1-00:00:00|1\n"},
         LEDGER, {"values.failed_node_h": 18, "values.node_h": 42},
         says=("No node is named by a failed attempt",)),
    Case("jobs that share nodes",
         {"sacct.txt": f"{HEAD}7|COMPLETED|2025-01-01T00:00:00|2025-01-03T00:00:00|1|c3\n"
                       "8|FAILED|2025-01-02T00:00:00|2025-01-03T00:00:00|1|c3\n"},
         LEDGER, {"values.node_h": 72}, says=("1 attempt began on a node that another one held",)),
    Case("requeued without a cause",
         {"sacct.txt": f"{HEAD}7|REQUEUED|2025-01-01T00:00:00|2025-01-03T00:00:00|1|c3\n"
                       "7|COMPLETED|2025-01-04T00:00:00|2025-01-05T00:00:00|1|c3\n"},
         LEDGER, {"values.unknown_node_h": 48, "values.n_jobs": 1, "values.failed_node_h": 0},
         says=("Requeued without a cause: 48.0 node-hours, not in these.",)),
    Case("a state that is cut off",
         {"sacct.txt": f"{HEAD}7|OUT_OF_ME+|2025-01-01T00:00:00|2025-01-03T00:00:00|1|c3\n"},
         LEDGER, refused=("sacct.txt:2: state: 'OUT_OF_ME+' is none of COMPLETED",)),
    Case("no number of nodes",
         {"sacct.txt": "JobID|State|Start|End\n"
                       "7|FAILED|2025-01-01T00:00:00|2025-01-03T00:00:00\n"},
         LEDGER, refused=("sacct.txt:2: nodelist: on how many nodes?", "NNodes,NodeList")),
    Case("two clusters", {"sacct.txt": SACCT + SACCT.replace("-30T00", "-31T00")}, LEDGER,
         refused=("job 501 runs twice at one time", "the column Cluster")),
    Case("two rows of one start that end otherwise",
         {"sacct.txt": f"{HEAD}7|FAILED|2025-01-01T00:00:00|2025-01-03T00:00:00|1|c3\n"
                       "7|COMPLETED|2025-01-01T00:00:00|2025-01-02T00:00:00|1|c4\n"}, LEDGER,
         refused=("job 7 runs twice at one time",)),
    Case("an end before the start",
         {"sacct.txt": f"{HEAD}7|FAILED|2025-01-04T00:00:00|2025-01-03T00:00:00|1|c3\n"}, LEDGER,
         refused=("sacct.txt:2: end: '2025-01-03T00:00:00' lies before the start",)),
    Case("a table without bars",
         {"sacct.txt": "JobID      State               Start\n---------- ----------\n"}, LEDGER,
         refused=("sacct.txt: is a table of sacct", "-P -o JobID,State,Start,End")),
    Case("calibrate with sacct", {"sacct.txt": SACCT}, "calibrate sacct.txt --nodes 8",
         refused=("without steps and saves: `cprsim ledger` books the node-hours",)),
    Case("a price of other logs",
         {"a.csv": "start,end,last_step\n2025-01-01,2025-01-02,50\n"}, "ledger a.csv --node-hour 2",
         refused=("--node-hour: these logs do not say on how many nodes they ran",)),
    Case("no price", {"sacct.txt": SACCT}, f"{LEDGER} --node-hour cheap",
         refused=("--node-hour: 'cheap' is not a price: write for example 2.50 USD",)),
]  # fmt: skip


def _google(rows: list[tuple[float, str, float | None]], n_nodes: int = 3) -> str:
    """A log: seconds, what happened, step; each node says that it starts, and when it is ended."""
    lines = []
    for at_s, name, step in rows:
        at = (BEGIN + timedelta(seconds=at_s)).isoformat(timespec="microseconds")
        said = {"event_type": name, "timestamp": at, "job_name": "llama"}
        if step is not None:
            lines.append({**said, "step": step})
        else:
            lines += [{**said, "node_rank": float(rank)} for rank in range(n_nodes)]
    return "\n".join(map(json.dumps, lines)) + "\n"


def _attempt(begin_s: float, loaded: float, n_saves: int) -> list[tuple[float, str, float | None]]:
    """100 s until the load, 150 s until work begins, then 5 steps of 6 s from save to save."""
    saves = [
        (begin_s + 250 + 30 * number, "checkpoint_saved", loaded + 5 * number)
        for number in range(1, n_saves + 1)
    ]
    start: tuple[float, str, float | None] = (begin_s, "job_started", None)
    return [start, (begin_s + 100, "checkpoint_loaded", loaded), *saves]


GOOGLE = _google([
    *_attempt(0, 10, 20), *_attempt(900, 110, 0), *_attempt(1100, 110, 30),
    *_attempt(2400, 260, 10), (2960, "job_terminated", None),
])  # fmt: skip
RESILIENCY = [  # steps 10 to 310, of 6 s each, in 2960 s
    Case("the log of Google's resiliency library", {"events.log": GOOGLE}, "ledger events.log",
         {"frames.jobs.0.ettr": 1800 / 2960, "frames.jobs.0.wall_h": 2960 / 3600,
          "values.n_failures": 3, "values.n_saves": 60, "frames.jobs.0.step_s": 6.0}, rel=0.01),
    Case("the same, with its lines in any order",
         {"events.log": "".join(sorted(GOOGLE.splitlines(keepends=True)))}, "ledger events.log",
         {"frames.jobs.0.ettr": 1800 / 2960, "values.n_failures": 3}, rel=0.01),
]  # fmt: skip

CASES: list[Case] = [*COSTS, *REPLAYS, *SLURM, *RESILIENCY]
