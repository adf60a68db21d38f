"""Cases of logs of failures: columns, words, names, instants, metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random

from tests.accounts.case import Case

# Of 3 nodes in April 2025 (720 h): 12 outages, of which each lasts 3 h: a failure every 60 h.
BEGINS = datetime(2025, 4, 1)
OUTAGES = sorted(
    (BEGINS + timedelta(hours=20 + 53 * k + 7 * (k % 3)), f"srv{k % 3 + 1:02d}") for k in range(12)
)
LASTS = timedelta(hours=3)
APRIL = "--period 2025-04-01..2025-05-01 --bootstrap 0"
OF_3 = f"fit log.csv --nodes 3 {APRIL}"
ZERO = "--bootstrap 0"
RIGHT = {"values.mtbf_h.mean": 60.0, "values.n_failures": 12}


def table(header: str, rows: Iterable[Iterable[object]]) -> str:
    """A CSV."""
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def spans(header: str = "node,start,end", *more: str) -> str:
    """A row per outage, with further cells that take turns."""
    rows = [
        (
            node,
            at.isoformat(),
            (at + LASTS).isoformat(),
            *(m.split()[k % len(m.split())] for m in more),
        )
        for k, (at, node) in enumerate(OUTAGES)
    ]
    return table(header, rows)


def changes(column: str, down: str, up: str) -> str:
    """A row where a node goes down, and where it is up again."""
    rows = [(at, node, down) for at, node in OUTAGES]
    rows = sorted([*rows, *((at + LASTS, node, up) for at, node in OUTAGES)])
    return table(f"start,node,{column}", ((at.isoformat(), *row) for at, *row in rows))


def stays(down: str, *up: str) -> str:
    """A row for each stay of a node in a state, with its end."""
    rows, last = list[tuple[object, ...]](), {node: BEGINS for _, node in OUTAGES}
    for k, (at, node) in enumerate(OUTAGES):
        rows.append((node, last[node].isoformat(), at.isoformat(), up[k % len(up)]))
        rows.append((node, at.isoformat(), (at + LASTS).isoformat(), down))
        last[node] = at + LASTS
    return table("node,start,end,state", rows)


def polls(words: dict[bool, str], column: str = "state") -> str:
    """A row for each node and hour."""
    rows = [
        (
            at.isoformat(),
            node,
            words[any(one <= at < one + LASTS for one, of in OUTAGES if of == node)],
        )
        for at in (BEGINS + timedelta(hours=h) for h in range(721))
        for node in ("srv01", "srv02", "srv03", "srv04")  # the last one never fails
    ]
    return table(f"time,node,{column}", rows)


def query(metric: str | None, good: str, bad: str) -> str:
    """Prometheus' answer for a metric."""
    series = []
    for node in ("srv01", "srv02", "srv03"):
        downs = [(at, at + LASTS) for at, of in OUTAGES if of == node]
        hours = (BEGINS + timedelta(hours=h) for h in range(721))
        values = [
            [1743465600 + 3600 * h, bad if any(a <= at < b for a, b in downs) else good]
            for h, at in enumerate(hours)
        ]
        name = {} if metric is None else {"__name__": metric}
        series.append({"metric": {**name, "instance": f"{node}:9100"}, "values": values})
    data = {"resultType": "matrix", "result": series}
    return json.dumps({"status": "success", "data": data})


def drives() -> str:
    """A row per drive and day of 20; two of five are gone after their failure."""
    last = {"d1": 7, "d2": 13}
    rows = [
        (f"2025-04-{day:02d}", f"d{drive}", int(last.get(f"d{drive}") == day))
        for day in range(1, 21)
        for drive in range(5)
        if day <= last.get(f"d{drive}", 20)
    ]
    return table("date,serial,failure", rows)


def of(name: str, text: str, command: str = OF_3, **right: object) -> Case:
    return Case(name, {"log.csv": text}, command, **{"values": RIGHT} | right)  # type: ignore[arg-type]


def refused(name: str, text: str, *says: str, command: str = OF_3) -> Case:
    return Case(name, {"log.csv": text}, command, refused=says)


DATES = table(
    "node,start,end",
    [(node, at.date(), (at + timedelta(days=1)).date()) for at, node in OUTAGES]
    + [("srv03", OUTAGES[0][0].date(), "2025-04-02")],
)
TWO_SOURCES = table(
    "node,start,end",
    [
        (name, (at + timedelta(seconds=s)).isoformat(), (at + LASTS).isoformat())
        for at, node in OUTAGES
        for name, s in ((node, 0), (f"{node.upper()}.site.example:9400", 42))
    ],
)
OTHER_NODE = table(
    "node,start,end",
    [
        ("a1", "2025-04-02T00:00", "2025-04-02T09:00"),
        ("A1", "2025-04-02T04:00", "2025-04-02T12:00"),
    ],
)
LISTS = ("srv01;srv02", "srv01 srv02", "srv01/srv02", "srv01 + srv02", '"[\'srv01\', \'srv02\']"',
         "srv{01..02}", "srv[01:02]", '"srv01 , srv02,"', "srv01-srv02", "srv01|srv02",
         '"srv01,\u00a0srv02"', "srv[01 02]", "srv<01-02>",
         '"srv 01, srv 02"', "srv01；srv02")  # fmt: skip
XID = "2025-04-{:02d}T06:00:00+00:00 {} kernel: {}\n"
KERNEL = "".join(
    XID.format(2 + 3 * k, f"g{k}", text)
    for k, text in enumerate((
        "NVRM: GPU at PCI:0000:3b:00 has fallen off the bus and is not responding",
        "NVRM: Xid (PCI:0000:3b:00): 154, pid=7, GPU recovery action changed from 0x0 (None) to "
        "0x1 (GPU Reset Required)",
        "NVRM: Xid (PCI:0000:3b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x0 0x0)",
        "nvidia-nvswitch2: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "NVRM: Xid (PCI:0000:3b:00): 154, pid=7, GPU recovery action changed from 0x1 (GPU Reset "
        "Required) to 0x0 (None)",
        "NVRM: Xid (PCI:0000:3b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0)",
        "nvidia-nvswitch2: SXid (PCI:0000:c4:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore",
        "usb 1-1: new device",
        "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x24:0xffff:1478)",
    ))
)  # fmt: skip
PSQL = " node | start | end\n------+-------+-----\n a | 2025-04-01 | 2025-04-02\n(1 row)\n"
WIDE = "node    start              end\na       2025-04-01 10:00   2025-04-01 11:00\n"
TITLE = "# outages, April\n" + spans()

STAYS = "\n".join(line.rpartition(",")[0] for line in stays("x", "y").splitlines())
UPTIMES = "node,start,end\n" + "\n".join(
    line.removesuffix(",UP") for line in stays("", "UP").splitlines() if line.endswith("UP")
)
FLAPS = table("node,start,end", [
    ("a", f"2025-04-03T{begin}", f"2025-04-03T{end}")
    for begin, end in (("01:00", "04:00"), ("05:00", "09:00"), ("09:30", "14:00"))
])  # fmt: skip
CELLS = Random(7).sample([(hour, node) for hour in range(720) for node in range(60)], 288)
AT_ONCE = [(hour, node) for hour in (100, 300, 500) for node in range(12)]
OF_60 = f"fit log.csv --nodes 60 {APRIL}"
MONTHS = [(f"n{k % 12}", f"{2023 + k // 30}-{1 + k % 5 + k // 12 % 2 * 6:02d}") for k in range(55)]
MONTHS += MONTHS[:5]
DAYS = [(f"n{k % 7}", BEGINS + timedelta(hours=11 * k, minutes=7)) for k in range(60)]


def hours(cells: list[tuple[int, int]]) -> str:
    """Outages of half an hour that begin at whole hours."""
    return table("node,start,lasts_min", (
        (f"n{node}", (BEGINS + timedelta(hours=hour)).isoformat(), 30) for hour, node in cells
    )).replace("lasts_min", "duration_min")  # fmt: skip


def twice(name: str) -> str:
    """Each outage by two sources, of which one calls the nodes otherwise."""
    return table("node,start,end", [
        (one, (at + timedelta(seconds=s)).isoformat(), (at + LASTS).isoformat())
        for at, node in OUTAGES for one, s in ((node, 0), (name.format(node, int(node[3:])), 40))
    ])  # fmt: skip


def xids(*minutes: int) -> str:
    """Each failure as lines of the kernel, so many minutes after it."""
    lost = "NVRM: Xid (PCI:0000:3b:00): 119, Timeout of the GSP"
    return "".join(
        f"{(at + timedelta(minutes=m)).isoformat()}+00:00 {node} kernel: {lost}\n"
        for at, node in OUTAGES for m in minutes
    )  # fmt: skip


ALERTS = changes("event", "link lost", "link back")
IPMI = table("date,time,host,direction", sorted(
    (when.date(), when.time(), node, word) for at, node in OUTAGES
    for when, word in ((at, "Asserted"), (at + LASTS, "Deasserted"))
))  # fmt: skip
JSON = [dict(zip(("node", "start", "end"), line.split(","), strict=True))
        for line in spans().splitlines()[1:]]  # fmt: skip
STATE = f"{OF_3} --column state=state"
HARD = changes("state", "HARD_DOWN", "ok")
CASES: list[Case] = [
    # --------------------------------------------------------------------------------------- files
    *(of(f"a header below {above!r}", above + spans()) for above in (
        "Outages\n", '"Outages, April",,\n,,\n', "sep=,\n", "# a, b, c\n", "#", "# ",
    )),
    of("the header again", spans() + spans()),
    *(refused(f"JSON around the rows: {key}", json.dumps(answer), key, "jq -c '" + key)
      for key, answer in ((".data", {"data": JSON}), (".hits.hits", {"hits": {"hits": JSON}}))),
    refused("lists of the cells of columns", json.dumps(
        {"node": "srv01", "at": [*range(40)], "value": [0, 1] * 20}),
        "column, .at and .value; jq -c 'range(.at | length) as $k | . + {\"at\": .at[$k], \"v"),
    refused("a column for each node", table("time,a,b", ((k, k % 2, 1) for k in range(9))),
            "a column for each node is not read"),
    *(refused(f"samples dumped: {text}", text + "\n", "dumped samples: ask Prometheus'")
      for text in ('{__name__="up"} 1 1743465600000', "up,host=a value=1 1743465600000000000")),
    refused("JSON of lists", json.dumps([list(row.values()) for row in JSON]), "is no JSON object"),
    refused("blanks between columns", spans().replace(",", " "), "separate columns by commas"),
    of("a date and a time of the day", IPMI, f"{OF_3} --column node=host --column start=date+time "
       "--down Asserted --column state=direction"),
    # ------------------------------------------------------------------------------------- columns
    of("ordinary columns beside an outage",
       spans("node,start,end,cause,rack,closed", "disk fan ecc nic psu", "r1 r2 r3", "closed"),
       says=("Each row: an outage of 'node' from 'start' to 'end'.", ": rack (r1 4, r2 4, r3 4)")),
    refused("two words beside an outage", spans("node,start,end,severity", "major minor"),
            "'severity' (major 6, minor 6: --column state=severity, cause=severity",
            "--ignore severity leaves out"),
    of("two known words", changes("what", "PROBLEM", "RECOVERY")),
    refused("two unknown words", changes("ereignis", "weg", "da"),
            "weg 12, da 12: --column state=ereignis --down WORDS"),
    of("two unknown words, one of which is said to be bad", changes("ereignis", "weg", "da"),
       f"{OF_3} --down weg", says=("by 'ereignis' (down: weg; up: da)",)),
    of("stays in every state", stays("DOWN", "UP")),
    refused("stays in states of 0 and 1", stays("0", "1"), "'state' (1 12, 0 12", "=state"),
    of("stays in states of 0 and 1, said", stays("0", "1"), f"{OF_3} --down 0"),
    refused("stays of nodes that are up", spans("node,start,end,state", "UP"), "'state' (UP 12"),
    refused("a state and a length", spans("node,start,x,state,elapsed", "DOWN UP", "3h"),
            "state, elapsed: both say when an outage ends", command=f"{STATE} --ignore x"),
    refused("instants that may be ends", spans("node,start,until"), "--column end=until"),
    refused("lengths that contradict the ends", spans("node,start,end,elapsed", "9h 8h"),
            "elapsed: '9h' is not from the start to the end"),
    of("lengths that do not", spans("node,start,end,downtime_h", "3")),
    refused("a number of failures", spans("node,start,end,occurrences", "1 4"), "occurrences"),
    refused("dates of nodes",
            spans("node,start,end,bought", "2021-01-01 2022-01-01 2023-01-01"),
            "installed=bought or exit=bought --nodes dates"),
    refused("a flag", spans("node,start,end,scheduled", "yes no no no"),
            "'scheduled' (no 9, yes 3"),
    of("rows of a flag that is left out", spans("node,start,end,scheduled", "yes no no no"),
       f"{OF_3} --ignore scheduled=yes", values={"values.mtbf_h.mean": 80.0}),
    of("a row per node and hour",
       polls({True: "down", False: "idle"}).replace("time", "start", 1),
       f"fit log.csv {APRIL}", values={**RIGHT, "values.n_nodes": 4}),
    refused("a row per node and hour, a number",
            polls({True: "7", False: "3"}, "load").replace("time", "start", 1)
            .replace(",7\n", ",9.5\n"), "load"),
    of("a row per drive and day", drives(),
       "fit log.csv --column node=serial --column start=date --bootstrap 0", rel=0.03,
       values={"values.n_nodes": 5, "values.node_hours": 80 * 24.0 - 48, "values.n_failures": 2}),
    refused("whole numbers", spans("node,start,end,n", "1 2"), "if it counts failures, a row for"),
    refused("days without failures, and with one", drives().replace("failure", "crashes"),
            "'crashes' (0 ", "if 1 is a failure, --down 1)",
            command="fit log.csv --column node=serial --column start=date"),
    refused("planned work beside states",
            changes("state,why", "DOWN,Unplanned", "UP,").replace("Unpl", "Pl", 3),
            "'why' (Unplanned 9, Planned 3: planned work is no failure, --ignore why=Planned"),
    of("a word beside states", changes("state,condition", "DOWN,Ready", "UP,Ready")),
    of("rows of a kind Node", "\n".join(json.dumps({"kind": "Node"} | row) for row in JSON)),
    *(of(f"objects in lists, with {more}", json.dumps(
        [{**row, "node": [{"name": name} for name in (row["node"], *more)]} for row in JSON]),
        f"fit log.csv --nodes 4 {APRIL} --column node=node.name",
        values={"values.n_failures": 12 + 12 * len(more)}) for more in ((), ("srv04",))),
    refused("looks at nodes that are up", table("node,start", (
        (f"n{k % 2}", (BEGINS + timedelta(hours=k)).isoformat()) for k in range(700)
    )), "a node has a row every 2 h", command=f"fit log.csv {APRIL}"),
    # --------------------------------------------------------------------------------------- words
    of("one of several states", changes("state", "IDLE+DRAIN", "IDLE"), f"{OF_3} --down drain"),
    of("states of PBS", changes("state", '"offline,down"', "free"), f"{OF_3} --down down"),
    *(of(f"no planned work: {words}", spans("node,start,end,type", words))
      for words in ("upgrade-failed", "計画外停止")),
    of("words of Slurm", changes("state", "down*", "alloc"), STATE),
    refused("a word that is not known", HARD, "HARD_DOWN 12", "--down WORDS", command=STATE),
    of("nodes without samples while they are down", re.sub(
        ".*srv01,down\n", "", polls({True: "down", False: "up"}).replace("time", "start", 1)),
       f"fit log.csv {ZERO}", values={"values.n_failures": 8}, says=("give no samples while",)),
    of("a row that is missing", re.sub(
        "(srv03,UP(?:\n.*srv0[12].*)*)\n.*DOWN", r"\1", changes("state", "DOWN", "UP"), count=1),
       values={"values.n_failures": 11}, says=("1 row of nodes that were up already",)),
    refused("a word that is not there", changes("state", "DOWN", "UP"), "kaputt",
            command=f"{STATE} --down kaputt"),
    refused("empty cells", changes("state", "DOWN", ""), "in empty cells", command=STATE),
    refused("states that nothing ends", spans("node,start,x,state", "DOWN"),
            "up again: --ignore state takes", command=f"{STATE} --ignore x"),
    # --------------------------------------------------------------------------------------- names
    of("two spellings of two sources", TWO_SOURCES),
    of("two nodes whose names differ by capitals", OTHER_NODE, f"fit log.csv --nodes 2 {APRIL}",
       values={"values.n_failures": 2}),
    *(of(f"a list of nodes: {text}", table("node,start,end", [
        (text, "2025-04-05T01:00", "2025-04-05T02:00"),
        ("srv03", "2025-04-09T01:00", "2025-04-09T02:00"),
    ]), values={"values.n_failures": 3}) for text in LISTS),
    *(refused(f"what may be a list of nodes: {text}",
              table("node,start", [(n, f"2025-04-0{k}") for k, n in enumerate((*known, text), 1)]),
              "is no node, nor a list such as n1,n2")
      for known, text in (
          (("3", "4"), "4+3"), (("4", "8"), "4..8"), (("4", "8"), "4-8"), (("4", "8"), "4 to 8"),
          (("n1", "n2"), "n1 N2.site"), (("n1", "n2"), "n1 +3 more"), (("n1", "n2"), "n1#n2"),
          (("n1", "n2"), "n1_N2"), (("4", "8"), "4*8"), (("n 1", "n 2"), '"n 1, 2"'),
          (("n1", "n2"), "n1至n2"), (("n 1", "n 2"), "n 1/n 2"), (("n1", "n2"), '"n1, n2, ..."'),
          (("3:1", "3:2"), '"3:1, 2"'), (("3:1", "3:2"), "3:1/3:2"),
          (('"a 3, 1"', '"a 3, 2"'), '"a 3, 1, 2"'),
      )),
    refused("a broken list of nodes", spans().replace("srv01", "srv[01-02"), "is no list of nodes"),
    of("rows without a node",
       spans() + "Subtotal 1,2025-04-03T00:00,2025-04-29T00:00\nNULL,2025-04-03,\n"),
    of("a row that sums up the others", spans("node,start,end,n", "1") + "Summe,,,12\n"),
    refused("a list of coordinates", spans() + '"(0,1);(0,2)",2025-04-29\n', "is no node, nor a"),
    of("few rows of a word for no node", spans() + "inconnu,2025-04-29T00:00,2025-04-29T01:00\n",
       f"fit log.csv --nodes 4 {APRIL}", values={"values.n_failures": 13},
       says=("unlike the others: inconnu (--ignore node=inconnu leaves them out",)),
    of("a rack among nodes", spans() + "rack 3,2025-04-29T00:07,2025-04-29T01:00\n",
       f"fit log.csv --nodes 4 {APRIL}", values={"values.n_failures": 13},
       says=("with a blank, unlike the others: rack 3 (--ignore 'node=rack 3' leaves them out",)),
    refused("counts of failures", spans("node,start,end,count", "2"), "a row for each failure"),
    of("columns that name the node together", spans("slot,start,end,rack", "1 1 2 3"),
       f"fit log.csv --column node=rack+slot --nodes 9 {APRIL}",
       values={**RIGHT, "values.n_nodes": 9}),
    refused("one of several columns that name the node", spans("slot,start,end,rack", "1 2 3 4"),
            "node=rack+slot", command=f"{OF_3} --column node=slot"),
    refused("no node", table("start,end", [("2025-04-01", "2025-04-02")]), "--node NAME"),
    refused("days that last no time", table("node,start,downtime_h", [("a", f"2025-04-{d}", d // 29)
            for d in range(10, 30)]), "19 of 20 rows last no time: --ignore downtime_h=0 leaves"),
    refused("intervals as instants", table("gap_interval", [(9,), (17,), (8,)]), "add them up",
            command="fit log.csv --node job --column start=gap_interval --time-unit h"),
    of("one node for all rows",
       table("start,end", [(f"2025-04-{d}T01:00", f"2025-04-{d}T02:00") for d in (10, 13, 22)]),
       f"fit log.csv --node cluster {APRIL}",
       values={"values.n_failures": 3, "values.mtbf_h.mean": 240.0}),
    # ------------------------------------------------------------------------------------ instants
    of("dates without a time", DATES, values={"values.n_instants": 13, "values.n_failures": 13}),
    *(refused("times of the day, across midnight or missing", re.sub(
        r"T([\d:]+),\S+T", r",\1,", spans("node,date,till")).replace(",till", ",from,till")
        .replace(cell, ""), said, command=f"{OF_3} --column start=date+from --column end=date+till")
      for cell, said in (("x", "on the next day?"), ("11:00:00", "--ignore from= leaves"))),
    refused("points between thousands", "node;start\na;150\nb;870\na;1.020\nb;2.410\n",
            "one between thousands?", command="fit log.csv --time-unit h"),
    refused("%H with %p", "node,start\na,04/02/2025 03:00 PM\n", "write %I for hours with %p",
            command="fit log.csv --date-format %m/%d/%YT%H:%M%p"),
    refused("a clock without AM and PM", table("node,start", [
        ("a", f"2025-04-{2 + k:02d} {12 - k % 3}:15") for k in range(12)]), "are 1 to 12 alone"),
    refused("a start of 1970", spans() + "srv01,1970-01-01T00:00:00,1970-01-01T01:00\n",
            "before 1971"),
    of("microseconds", table("node,start,end", [
        (node, *(int((one - datetime(1970, 1, 1)).total_seconds() * 1e6)
                 for one in (at, at + LASTS)))
        for at, node in OUTAGES
    ])),
    of("microseconds of a zero of their own",
       "t,node,code\n0,a,0\n0,b,0\n360000000000,a,1\n"
       "367200000000,a,0\n900000000000,b,1\n903600000000,b,0\n",
       "fit log.csv --column start=t --column state=code --time-unit us --down 1 --nodes 2 "
       "--period 0..1080000000000 --bootstrap 0", values={"values.mtbf_h.mean": 150.0}),
    refused("lines without a year over more than one",
            "Apr  2 10:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, gone\n", "longer than one",
            command="fit log.csv --period 2023-03-01..2024-06-01"),
    # ------------------------------------------------------------------------------ metrics, kernel
    refused("a metric that is not known", query("cordoned", "0", "1"), "`cordoned`", "--down 1",
            command="fit log.csv"),
    of("a metric of which 1 is said to be bad", query("cordoned", "0", "1")
       .replace("instance", "Node_Name"), "fit log.csv --down 1 --bootstrap 0"),
    refused("a metric without a name", query(None, "1", "0"), "a metric without a name", "--down 0",
            command="fit log.csv"),
    of("a metric without a name, of which 0 is said to be bad", query(None, "1", "0"),
       "fit log.csv --down 0 --bootstrap 0"),
    of("GPUs lost in the words of newer drivers", KERNEL, f"fit log.csv --nodes 8 {APRIL}",
       values={"values.mtbf_h.mean": 180.0, "values.n_failures": 4, "values.balance.left_out": 4}),
    # --------------------------------------------------------------------------------------- hints
    refused("a German header", "Rechner;Beginn;Ende\na;2025-04-01;2025-04-02\n",
            "(Rechner, Beginn, Ende); --column node=NAME says which it is"),
    of("an end that is a word", spans() + "srv01,2025-04-29T00:00,laufend\n",
       values={"values.n_failures": 13, "values.mtbf_h.mean": 720 / 13}),
    refused("a table of psql", PSQL, "psql --csv"),
    refused("a table of fixed widths", WIDE, "fixed width"),
    of("a comment above the header", TITLE),
    # ---------------------------------------------------- stays, resolution, what is told twice
    refused("three words beside an outage", spans("node,start,end,verdict", "yes no twice dust"),
            "'verdict' (yes 3, no 3, twice 3", "cause=verdict"),
    of("stays in three states", stays("broken", "in use", "in test"), f"{OF_3} --down broken"),
    refused("stays of which nothing says the state", STAYS, "the rows fill", "--down WORDS"),
    refused("up-times with gaps between", UPTIMES, "are stays in any state, or up-times"),
    of("outages that fill much of a day", FLAPS, values={"values.n_failures": 3}),
    refused("outages that fill much of the log", FLAPS, "--period says", command="fit log.csv"),
    refused("texts that take turns", changes("cause", "link lost", "link back"),
            "'cause' (words that take turns", "--ignore cause=WORDS of one"),
    refused("times of the day", spans("node,start,x,till", "10:15 9:20"),
            "start=start+till, end=DATE+till or duration=till", command=f"{OF_3} --ignore x"),
    *(refused(f"words that take turns, by {way}", ALERTS, "take turns", "--column state=event",
              command=f"{OF_3} --column {way}") for way in ("cause=event", "node=event+node")),
    refused("jobs with their ids", table("job_id,node,start,end", (
        (k, "srv01", f"2025-04-{k:02d}T01:00", f"2025-04-{k:02d}T03:00") for k in range(10, 19)
    )), "each row is a job", "--ignore job_id"),
    refused("a node that does not respond", changes("state", "idle*", "idle"), "idle* 12"),
    of("a node that does not respond, said", changes("state", "idle*", "idle"),
       f"{OF_3} --down idle*"),
    of("nodes planned for a job, with one that completes, in maintenance",
       changes("state", "DOWN", "IDLE+PLANNED").replace("IDLE+PLANNED", "allocated+", 6)
       + "2025-04-29T01:00:00,srv01,drained$\n2025-04-29T09:00:00,srv01,idle\n"),
    of("nodes planned for a job alone", stays("DOWN", "IDLE", "PLANNED")),
    refused("a state of one word", spans("node,start,x,state", "down"), "which nothing ends",
            command=f"{OF_3} --ignore x"),
    refused("looks of which half are missing", "\n".join(
        line for line in polls({True: "down", False: "idle"}).splitlines()
        if not line.startswith("2025-04-1")
    ).replace("time", "start", 1), "holes, 33% of the time", command="fit log.csv"),
    of("events of Slurm", "NodeName|TimeStart|TimeEnd|State\n" + "".join(
        f"{node}|{at.isoformat()}|{(at + LASTS).isoformat()}|{state}\n"
        for (at, node), state in zip(OUTAGES, 3 * ["DOWN", "IDLE*", "IDLE+NOT_RESPONDING", "INVAL"],
                                     strict=True)
    )),
    refused("alerts while they fire", query("ALERTS", "1", "1"), "nothing ends an outage",
            command="fit log.csv --down 1"),
    *(of(f"two sources: {name}", twice(name), f"{OF_3[:-1]}0") for name in (
        "srv{1}", "node/{0}", "http://{0}:9100/metrics", "{0}-bmc", "srv-{1:02d}", "{0}.",
        "{0}.mgmt.example", "srv_{1}", "root@{0}", "'{0}'",
    )),
    of("nodes whose names are within others'", twice("login{1}"),
       f"fit log.csv --nodes 6 {APRIL}", values={"values.n_nodes": 6, "values.n_failures": 24}),
    *(refused(f"a list of numbers: {text}", table("node,start", [
        ("srv01", "2025-04-03"), (f'"{text}"', "2025-04-05")]), "nor a list such as n1,n2")
      for text in ("srv01-03", "srv01..03", "srv01/02/03", "srv01~03", "srv01,02", "host=srv01")),
    *(of(f"no node: {name}", spans() + f"{name},2025-04-03T00:00,2025-04-29T00:00\n")
      for name in ("(unknown)", "???", "<nil>", "unbekannt", "unknown host", "Total", "localhost",
                    "0", "0.0.0.0")),
    refused("dates of which a node has several", table("node,start", MONTHS),
            "5 of 60 rows repeat a node and its date", "--coalesce '0 s' keeps them"),
    of("months of which a node has several, said", table("node,start", MONTHS),
       f"fit log.csv --nodes 12 --period 2023-01-01..2025-01-01 --coalesce 0s {ZERO}",
       values={"values.n_failures": 60, "values.n_instants": 60},
       says=("Begins are known to 672 h alone",)),
    of("dates in no order, a part of which is asked for", table("node,start", MONTHS[::-1]),
       f"fit log.csv --nodes 12 --period 2023-01-01..2024-01-01 --coalesce 0s {ZERO}",
       values={"values.n_failures": sum(at < "2024" for _, at in MONTHS)}),
    *(refused(f"an instant of another time: {odd}", table("node,start", (
        (node, odd if k == 5 else f"{at.timestamp():.0f}") for k, (at, node) in enumerate(OUTAGES)
    )), f":7: start: '{odd}' is no instant", command=f"{OF_3}{unit}")
      for odd in ("3600", "4102444800") for unit in ("", " --time-unit s")),
    of("up that is called down", changes("was", "ALARM", "OK"), f"{OF_3} --down OK",
       values={"values.n_failures": 12}, says=("nodes are down for 87% of the time (is it up",)),
    of("causes that may be planned", spans("node,start,end,cause", "Planned disk gpu"),
       says=("By cause: Planned 4, disk 4, gpu 4 (--not-cause omits planned work).",)),
    refused("a table of planned work", spans("node,start,end,type", "scheduled"),
            "'type' (scheduled 12: planned work is no failure"),
    of("a node of two names that are not alike", spans() + "\n".join(
        f"10.0.0.{node[-1]},{at + timedelta(seconds=40)},{at + LASTS}" for at, node in OUTAGES
    ).replace(" ", "T"), f"fit log.csv --nodes 6 {APRIL}", values={"values.n_failures": 24},
       says=("12 of 24 failures begin up to 5 min after one of another node (is it one",)),
    of("outages of which not all end", "\n".join(
        line for k, line in enumerate(changes("state", "DOWN", "UP").splitlines()) if k % 8 != 2
    ), values={"values.n_failures": 9}, says=("Of 21 rows read 3 are left out: 3 of 12 rows",)),
    refused("states before changes", changes("was", "UP", "DOWN"), "are down for", "--down WORDS"),
    of("an ignored column of ends", spans("node,start,finish"),
       f"{OF_3} --column end=finish --ignore finish"),
    of("outages that come back", table("node,start,end", [
        (node, at.isoformat(), (at + timedelta(hours=1)).isoformat())
        for one, node in OUTAGES for at in (one, one + timedelta(minutes=70))
    ]), values={"values.n_failures": 24},
       says=("12 failures are within an hour of another of the same node (--coalesce '1 h'",)),
    of("outages without ends, days apart", table("node,start,end", [
        (node, at.isoformat(), "" if k % 2 else (at + LASTS).isoformat())
        for k, (at, node) in enumerate(OUTAGES)
    ]), f"{OF_3} --coalesce 1h", values={"values.n_failures": 12}),
    of("a list of one node twice", table("node,start,end", [
        ('"srv02, srv02"' if not k else node, at.isoformat(), (at + LASTS).isoformat())
        for k, (at, node) in enumerate(OUTAGES)
    ]), values={"values.n_failures": 12}),
    of("an outage of all", table("node,start,end", [
        ("all" if not k else node, at.isoformat(), (at + LASTS).isoformat())
        for k, (at, node) in enumerate(OUTAGES)
    ]), f"fit log.csv --nodes 4 {APRIL}", values={"values.n_failures": 12},
       says=("without a number or with a blank",)),
    of("begins known to an hour", hours(CELLS), OF_60, values={"values.mtbf_h.mean": 2.5}),
    of("begins known to an hour, of which some are together", hours(CELLS[:60] + AT_ONCE), OF_60,
       values={"values.n_instants": 63}, says=("up to 12 at once",)),
    of("dates beside instants", table("node,start,end", [
        (node, at.date() if k % 2 else at.isoformat(), at + timedelta(hours=30))
        for k, (node, at) in enumerate(DAYS)
    ]), f"fit log.csv --nodes 7 {APRIL}", values={"values.n_instants": 60}),
    of("repairs within a day", table("node,start,end", [
        (node, at.date(), (at + timedelta(hours=9)).date()) for node, at in DAYS
    ]), f"fit log.csv --nodes 7 {APRIL}", values={"values.n_instants": 60},
       says=("Repairs are not fitted: 38 of 60 failures end when they begin",)),
    refused("Xids that are told again", xids(0, 4, 9), "24 of 36 failures", "--coalesce '1 h'"),
    of("Xids that are told again, said", xids(0, 4, 9), f"{OF_3} --coalesce 10min"),
    *(refused(f"numbers such as {a}", f"node;start\na;{a}\nb;{b}\n", says,
              command="fit log.csv --time-unit h")
      for a, b, says in (("1.050", "2.020", "one between thousands?"),
                         ("5", "1.77E+09", "is rounded"),
                         ("5", "1.772436e+09", "is rounded"),
                         ("93,27", "150,5", "decimal point"), ("93", "1'020", "decimal point"))),
    of("numbers between commas", "node,start\na,5.125\nb,7.125\na,12.125\nb,13.375\n",
       "fit log.csv --time-unit h --period 0..20 --bootstrap 0",
       values={"values.mtbf_h.mean": 5.0}),
    of("numbers in order", "node;start\na;5\nb;7.125\na;12\nb;13.375\n",
       "fit log.csv --time-unit h --period 0..20 --bootstrap 0",
       values={"values.mtbf_h.mean": 5.0}),
    *(refused(f"dates in the form {form}", "node,start\na,01/04/2025T10:00\n", says,
              command=f"fit log.csv --date-format {form}")
      for form, says in (("%d/%m/%YT%H:%m", "stands twice"), ("%s", "is no form of dates"),
                         ("%G-%V", "is no form of dates"), ("%d/%m/%YT%I:%M", "before noon"))),
]  # fmt: skip
