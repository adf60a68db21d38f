"""Cases of logs of failures: stays, resolution, numbers, and what is told twice."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from tests.accounts.case import Case
from tests.accounts.cases_failures import (
    APRIL,
    BEGINS,
    LASTS,
    OF_3,
    OUTAGES,
    changes,
    of,
    polls,
    query,
    refused,
    spans,
    stays,
    table,
)  # fmt: skip

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


CASES: list[Case] = [
    # --------------------------------------------------------------------------- columns and words
    refused("three words beside an outage", spans("node,start,end,verdict", "yes no twice dust"),
            "'verdict' (yes 3, no 3, twice 3", "cause=verdict"),
    of("stays in three states", stays("broken", "in use", "in test"), f"{OF_3} --down broken"),
    refused("stays of which nothing says the state", STAYS, "the rows fill", "--down WORDS"),
    refused("up-times with gaps between", UPTIMES, "are stays in any state, or up-times"),
    of("outages that fill much of a day", FLAPS, values={"values.n_failures": 3}),
    refused("outages that fill much of the log", FLAPS, "--period says", command="fit log.csv"),
    refused("texts that take turns", changes("cause", "link lost", "link back"),
            "'cause' (words that take turns"),
    refused("times of the day", spans("node,start,x,till", "10:15 9:20"), "'till' (instants",
            command=f"{OF_3} --ignore x"),
    refused("jobs with their ids", table("job_id,node,start,end", (
        (k, "srv01", f"2025-04-{k:02d}T01:00", f"2025-04-{k:02d}T03:00") for k in range(10, 19)
    )), "each row is a job", "--ignore job_id"),
    refused("a node that does not respond", changes("state", "idle*", "idle"), "idle* 12"),
    of("a node that does not respond, said", changes("state", "idle*", "idle"),
       f"{OF_3} --down idle*"),
    of("nodes planned for a job", changes("state", "DOWN", "IDLE+PLANNED")),
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
    refused("words in a column of ends", spans() + "srv01,2025-04-29T00:00,laufend\n",
            "leave an end empty"),
    # -------------------------------------------------------------------------------------- names
    *(of(f"two sources: {name}", twice(name), f"{OF_3[:-1]}0") for name in (
        "srv{1}", "node/{0}", "http://{0}:9100/metrics", "{0}-bmc", "srv-{1:02d}", "{0}.",
        "{0}.mgmt.example",
    )),
    of("nodes whose names are within others'", twice("login{1}"),
       f"fit log.csv --nodes 6 {APRIL}", values={"values.n_nodes": 6, "values.n_failures": 24}),
    *(refused(f"a list of numbers: {text}", table("node,start", [
        ("srv01", "2025-04-03"), (f'"{text}"', "2025-04-05")]), "nor a list such as n1,n2")
      for text in ("srv01-03", "srv01..03", "srv01/02/03", "srv01~03", "srv01,02", "host=srv01")),
    *(of(f"no node: {name}", spans() + f"{name},2025-04-03T00:00,2025-04-29T00:00\n")
      for name in ("(unknown)", "???", "<nil>", "unbekannt", "unknown host", "Total")),
    # ---------------------------------------------------------------------------------- resolution
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
    # --------------------------------------------------------------------------- numbers and dates
    *(refused(f"numbers such as {a}", f"node;start\na;{a}\nb;{b}\n", says,
              command="fit log.csv --time-unit h")
      for a, b, says in (("1.050", "2.020", "one between thousands?"),
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
