"""Cases of logs of jobs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tests.accounts.case import Case
from tests.accounts.cases_costs import GOOGLE

T0_NS = 1_741_000_000 * 10**9
Told = tuple[float, str, dict[str, Any]]


def lines(*events: Told, **of_all: Any) -> str:
    """Events as JSON lines: seconds, name, what else they say."""
    return "".join(
        json.dumps({"time_unix_nano": T0_NS + round(at_s * 1e9), "event": name, **of_all, **said})
        + "\n"
        for at_s, name, said in events
    )


def job(begins_s: float = 0.0, *, step_s: float = 20.0, **start: Any) -> list[Told]:
    """Two attempts of 5,000 s: a save of 40 s at step 100, a failure at 130, the end at 250."""
    first, second = {"attempt": 0}, {"attempt": 1}
    events: list[Told] = [
        (0, "job.start", {**first, **start}),
        (60, "train.resume", {**first, "step": 0}),
        (2060, "progress", {**first, "step": 100}),
        (2060, "save.start", {**first, "step": 100}),
        (2100, "save.commit", {**first, "step": 100}),
        (2700, "failure", {**first, "step": 130}),
        (2730, "failure.detected", first),
        (2730, "reschedule.start", first),
        (2900, "job.start", {**second, **start}),
        (3000, "train.resume", {**second, "step": 100}),
        (5000, "progress", {**second, "step": 200}),
        (6000, "job.end", {**second, "step": 250, "outcome": "finished"}),
    ]
    return [(begins_s + at_s * step_s / 20.0, name, said) for at_s, name, said in events]


def without(events: list[Told], *names: str, fields: tuple[str, ...] = ()) -> list[Told]:
    """Events but those of some names, and what they say but some fields."""
    return [
        (at_s, name, {key: fact for key, fact in said.items() if key not in fields})
        for at_s, name, said in events
        if name not in names
    ]


def crash_loop() -> str:
    """Five hours of work, a failure, 30 more within minutes at step 910, five hours more."""
    events: list[Told] = [(0, "job.start", {"attempt": 0}), (0, "train.resume", {"step": 0})]
    at_s, step = 0.0, 0

    def fails(attempt: int) -> None:
        nonlocal at_s
        events.append((at_s, "failure", {"step": step, "attempt": attempt}))
        events.append((at_s + 30, "failure.detected", {"attempt": attempt}))
        events.append((at_s + 60, "job.start", {"attempt": attempt + 1}))
        at_s += 120
        events.append((at_s, "train.resume", {"step": 900, "attempt": attempt + 1}))

    for _ in range(10):
        at_s, step = at_s + 1800, step + 90
        events.append((at_s, "save.start", {"step": step}))
        at_s += 20
        events.append((at_s, "save.commit", {"step": step}))
    at_s, step = at_s + 1000, 950
    fails(0)
    for attempt in range(1, 31):
        at_s, step = at_s + 200, 910
        fails(attempt)
    for number in range(1, 11):
        at_s, step = at_s + 1800, 900 + 90 * number
        events.append((at_s, "save.start", {"step": step}))
        at_s += 20
        events.append((at_s, "save.commit", {"step": step}))
        if number in (3, 6):
            fails(30 + number)
            events[-1][2]["step"] = step
    events.append((at_s, "job.end", {"step": step, "outcome": "finished"}))
    return lines(*events, job="loop")


def no_failures(n: int = 40, seed: int = 5) -> tuple[str, float]:
    """A log of starts, steps and saves alone, and the hours that its failures lost."""
    rng, events, at_s, lost_s, saved = np.random.default_rng(seed), [], 0.0, 0.0, 0
    for attempt in range(n + 1):
        events += [(at_s, "job.start", {"attempt": attempt, "step_seconds": 5.0})]
        events += [(at_s + 45, "train.resume", {"attempt": attempt, "step": saved})]
        at_s, left_s, step = at_s + 45, float(rng.exponential(5000.0)), saved
        while left_s > 400:
            at_s, left_s, step = at_s + 400, left_s - 400, step + 80
            events += [(at_s, "progress", {"attempt": attempt, "step": step})]
            if step % 240 == 0:
                events += [(at_s, "save.start", {"attempt": attempt, "step": step})]
                at_s, saved = at_s + 25, step
                events += [(at_s, "save.commit", {"attempt": attempt, "step": step})]
        if attempt == n:
            events += [(at_s, "job.end", {"attempt": attempt, "step": step})]
            break
        lost_s += (step - saved) * 5.0 + left_s
        at_s += left_s + float(rng.lognormal(5.0, 0.3))
    return lines(*events), lost_s / 3600


def at_two_paces() -> list[Told]:
    """Steps of 10 s, and after a failure of 25 s; every 100 steps a save of 30 s."""
    events, at_s = list[Told](), 0.0
    for attempt, step_s in enumerate((10.0, 25.0)):
        events.append((at_s, "train.resume", {"attempt": attempt, "step": 500 * attempt}))
        for step in range(500 * attempt + 100, 500 * attempt + 501, 100):
            at_s += 100 * step_s
            events += [(at_s, "save.start", {"step": step}), (at_s + 30, "save.commit", {})]
            at_s += 30
        events.append((at_s, "job.end" if attempt else "failure", {"attempt": attempt}))
    return events


def halves(n_early: int, n_late: int, lost_early: int, lost_late: int) -> list[Told]:
    """Failures 1.6 min long; saves of 10 s every 100 steps of 9 s; steps lost at each failure."""
    events: list[Told] = [(0.0, "train.resume", {"attempt": 0, "step": 0})]
    at_s, step, attempt = 0.0, 0, 0
    for n, lost in ((n_early, lost_early), (n_late, lost_late)):
        for _ in range(n):
            for _ in range(240 // n):
                at_s, step = at_s + 910.0, step + 100
                events += [(at_s - 10, "save.start", {"step": step}), (at_s, "save.commit", {})]
            at_s, attempt = at_s + 9 * lost + attempt * 7 % 5 / 2, attempt + 1
            events += [(at_s, "failure", {"attempt": attempt - 1, "step": step + lost}),
                       (at_s + 96, "train.resume", {"attempt": attempt, "step": step})]  # fmt: skip
            at_s += 96
    return [*events, (at_s + 9, "job.end", {"step": step + 1, "outcome": "finished"})]


LOST, LOST_H = no_failures()[0], no_failures()[1]
SAVES: list[Told] = [
    (220 * k + at_s, f"save.{word}", {"attempt": 0, "step": 10 * k})
    for k in range(1, 10) for at_s, word in ((60, "start"), (80, "commit"))
]  # fmt: skip
BY_EVENTS = {"frames.hours.0.hours": 5000 / 3600, "values.n_failures": 1}
TABLE = "start,end,last_step,last_saved_step,cause\n"
UNREAD = {  # a column that could change the answer, and its cells
    "start_step": (0, 400, 800), "von": (0, 900, 1700), "planned": (1, 0, 0), "ckpt": [*"acde"],
    "cause,planned": ("rack move,yes", "ECC,no", ",no"),
    "status": ("PREEMPTED", "PREEMPTED", "COMPLETED"), "end_reason": ("walltime", "walltime", ""),
}  # fmt: skip
SAVED = TABLE + "0,3700,3700,3000,x\n3800,9000,8200,,\n"
BACKTEST = "backtest a.csv --recovery full --time-unit s --set costs.save=10s"
SACCT = (
    "JobID|State|Start|End|NNodes|NodeList|Elapsed\n"
    "7|FAILED|2026-03-02T08:00:00|2026-03-02T09:00:00|{}|{}|{}\n"
)
CASES: list[Case] = [
    Case("saves-say-no-step", {"e.jsonl": lines(*[
        (at_s, name, {} if name.startswith("save") else said) for at_s, name, said in job()
    ])}, "ledger e.jsonl", refused=("11:41:00 UTC save.start says no step; write `step` (",)),
    Case("an-attempt-fails-and-another-follows", {"e.jsonl": lines(*without(
        job()[:5], "none"), (2700, "job.end", {"attempt": 0, "step": 130, "outcome": "failed"}),
        *job()[8:])}, "ledger e.jsonl", BY_EVENTS | {
            "frames.hours.1.hours": 600 / 3600, "frames.hours.5.hours": 200 / 3600}),
    Case("no-event-says-a-step", {"e.jsonl": lines(*without(
        job(step_seconds=20), "progress", "save.start", "save.commit", fields=("step",)))},
        "ledger e.jsonl", {"values.n_failures": 1, "values.inferred.begins": 1},
        says=("Inferred: 1 steps at which attempts began",)),
    Case("instants-in-s", {"e.jsonl": lines(*job()).replace("000000000, ", ", ")},
        "ledger e.jsonl", refused=("e.jsonl:1: time_unix_nano: 1741000000 ns lies", "like s; ")),
    Case("lines-of-one-instant-in-another-order", {"e.jsonl": lines(
        *job()[:6], job()[7], job()[6], *job()[8:])}, "ledger e.jsonl", BY_EVENTS),
    Case("a-death-by-the-words-of-its-ranks-and-its-agent", {"e.jsonl": lines(*job(), *[
        (2700 + 0.003 * rank, "failure", {"attempt": 0, "rank": rank}) for rank in range(1, 16)],
        (2730.004, "failure", {"attempt": 0, "cause": "exitcode -9"}), *[
        (at_s + 0.002, name, {**said, "rank": 1})
        for at_s, name, said in job()[3:5]])}, "ledger e.jsonl",
        BY_EVENTS | {"values.n_saves": 1, "values.inferred.half_saves": 0}),
    Case("two-jobs-without-names", {"e.jsonl": lines(*job(), *job(700.0))}, "ledger e.jsonl",
        refused=("job 'e': at 2025-03-03", "attempt 0 works or fails after", "`job`")),
    Case("two-jobs-one-after-the-other", {"e.jsonl": lines(*job(), *job(9000.0))},
        "ledger e.jsonl", refused=("begins at step 0, after it had finished at", "`job`")),
    Case("two-ends", {"e.jsonl": lines(*job(), (9000, "job.end", {"attempt": 1, "step": 250}))},
        "ledger e.jsonl", refused=("UTC job.end follows job.end without a job.start between",)),
    Case("work-after-the-end", {"e.jsonl": lines(*job(), (9000, "progress", {"step": 400}))},
        "ledger e.jsonl", refused=("progress follows job.end without a job.start",)),
    Case("an-end-before-the-start", {"e.jsonl": lines(
        *job()[:-1], (-50, "job.end", {"attempt": 0, "outcome": "finished"}))}, "ledger e.jsonl",
        refused=("2025-03-03 11:05:50 UTC job.end lies before all else",)),
    Case("failures-of-a-job-that-tells-no-work", {"e.jsonl": lines(*without(
        job(), "train.resume", "progress", "save.start", "save.commit", "failure.detected",
        "reschedule.start", fields=("step",)))}, "ledger e.jsonl",
        refused=("UTC work begins whose steps tell no pace; write `step` in progress",)),
    Case("logs-of-partial-recovery", {"e.jsonl": lines(*job()[:6], (2700, "revert", {
        "step": 100}))}, "ledger e.jsonl", refused=("11:51:40 UTC revert is of partial recovery",
        "write the events of full recovery")),
    Case("a-part-that-an-event-says", {"e.jsonl": lines(*job()[:5], (2700, "failure", {
        "part": "work"}))}, "ledger e.jsonl", refused=("failure is of partial recovery, or says",)),
    Case("a-rollback-in-the-middle-of-work", {"e.jsonl": lines(*job()[:5], (2700, "rollback", {
        "step": 100}), (2700, "train.resume", {"step": 100}), (5700, "job.end", {"step": 250}))},
        "ledger e.jsonl", {"values.n_failures": 1, "values.inferred.unseen_failures": 1},
        says=("1 failures that nothing but a step back or a rollback shows",)),
    Case("a-preemption-that-may-have-lost-steps", {"e.jsonl": lines(*without(job(), "save.start",
        "save.commit", "failure", "failure.detected", "reschedule.start", "train.resume")[:2], (
            2700, "job.end", {"attempt": 0, "step": 130, "outcome": "PREEMPTED"}), *[
        event for event in job()[8:] if event[1] != "train.resume"])}, "ledger e.jsonl",
        refused=("a preemption lost steps, or none: no event tells; write `step` in",)),
    Case("attempts-of-which-nothing-tells-whether-they-worked", {"e.jsonl": lines(*without(
        job(step_seconds=20), "failure", "train.resume")[:7],
        (3198, "failure.detected", {"attempt": 1}), (3248, "job.start", {"attempt": 2}),
        (6000, "progress", {"step": 200}))},
        "ledger e.jsonl", refused=("an attempt ends of which no event tells whether it worked",)),
    Case("an-attempt-of-10-to-the-21", {"e.jsonl": lines(*job(), (7000, "progress", {
        "attempt": 10**21, "step": 300}))}, "ledger e.jsonl",
        refused=("e.jsonl:13: attempt: 1000000000000000000000 is not the number of an attempt",)),
    Case("step_seconds-that-no-step-takes", {"e.jsonl": lines(*job(step_seconds=0.02))},
        "ledger e.jsonl", BY_EVENTS | {"values.inferred.paces": 1},
        says=("1 job whose step_seconds contradicts its steps",)),
    Case("no-event-of-a-failure", {"e.jsonl": LOST}, "ledger e.jsonl",
        {"values.n_failures": 40}, within={"frames.hours.1.hours": LOST_H}),
    Case("no-event-of-a-failure-calibrated", {"e.jsonl": LOST}, "calibrate e.jsonl",
        says=("reschedule", "40 gaps between failures")),
    Case("steps-that-are-texts", {"e.jsonl": lines(*[(at_s, name, {
        key: str(fact) if key == "step" else fact for key, fact in said.items()
    }) for at_s, name, said in job()])}, "ledger e.jsonl",
        refused=("e.jsonl:2: step: '0' is not a number, without quotes; so in 8 events",)),
    Case("instants-that-are-texts", {"e.jsonl": lines(*[
        (at_s, name, {"time_unix_nano": str(T0_NS)}) for at_s, name, _ in job()])},
        "ledger e.jsonl", refused=("e.jsonl:1: time_unix_nano: '1741000000000000000' is not a",)),
    Case("a-chain-of-jobs-of-a-day", {"e.jsonl": lines(*[
        event for day in range(3) for event in (
            (90_000 * day, "job.start", {"attempt": day}),
            (90_000 * day, "train.resume", {"attempt": day, "step": 8640 * day}),
            (90_000 * day + 86_400, "job.end", {"attempt": day, "step": 8640 * (day + 1),
                "outcome": "finished" if day == 2 else "stopped"}))])}, "ledger e.jsonl",
        {"values.n_failures": 0, "frames.hours.0.hours": 72, "frames.hours.13.hours": 2}),
    Case("ends-by-plan", {"a.csv": TABLE + (
        "2025-02-01T00:00,2025-02-01T12:00,1200,1200,CANCELLED by 1007\n"
        "2025-02-01T12:30,2025-02-02T00:30,2400,2400,Time limit\n"
        "2025-02-02T01:00,2025-02-02T11:00,3400,3300,Xid 79\n"
        "2025-02-02T11:30,2025-02-02T21:30,4300,4300,PREEMPTED\n"
        "2025-02-02T22:00,2025-02-03T08:00,5300,5300,\n")}, "ledger a.csv",
        {"values.n_failures": 1, "frames.hours.0.hours": 53, "frames.hours.1.hours": 1},
        says=("planned, no failures: CANCELLED by 1007 (1), Time limit (1), PREEMPTED (1)",)),
    Case("no-more-is-saved-than-was-lost", {"a.csv": TABLE + (
        "2025-02-01T00:00,2025-02-02T00:00,2400,2400,TIMEOUT\n"
        "2025-02-02T00:00,2025-02-02T09:00,3300,3250,NODE_FAIL\n"
        "2025-02-02T09:00,2025-02-03T09:00,5650,5650,\n")},
        "backtest a.csv --nodes 4 --recovery full --saves-every 30min --set costs.save=3min",
        {"values.saved_h": 0.5}, says=("which is the most that a system can save",)),
    Case("lost-and-never-made-again", {"a.csv": TABLE + (
        "2025-02-01T00:00,2025-02-01T20:00,4000,0,disk full\n"
        "2025-02-01T21:00,2025-02-01T23:00,400,400,\n")}, "ledger a.csv",
        {"frames.hours.0.hours": 2, "frames.hours.1.hours": 20, "frames.incidents.0.lost_h": 20}),
    Case("from-an-older-save", {"a.csv": "start;end;resumed_step;last_step;last_saved_step;cause\n"
        "2025-02-01T00:00;2025-02-01T08:00;0;1600;1600;nan loss\n"
        "2025-02-01T08:00;2025-02-01T15:00;400;1800;1800;\n"}, "ledger a.csv",
        {"frames.hours.0.hours": 9, "frames.hours.1.hours": 6}),
    Case("saved-steps-that-nobody-wrote-down", {"a.csv": "job,start,end,last_step,cause\n"
        "m,2025-02-01T00:00,2025-02-02T00:00,14400,NODE_FAIL\n"
        "m,2025-02-02T00:10,2025-02-03T12:10,35700,NODE_FAIL\n"
        "m,2025-02-03T12:20,2025-02-05T00:20,56900,\n"}, "ledger a.csv",
        {"frames.hours.0.hours": 56900 / 600, "values.n_failures": 2, "values.inferred.begins": 2},
        rel=0.02),
    *(
        Case(name, {"a.csv": f"start,end,last_step,last_saved_step,step_seconds\n{rows}\n"},
             "ledger a.csv --time-unit h", refused=(said,))
        for name, rows, said in (
            ("a-table-that-still-runs", "0,10,1000,900,\n11,,1800,1800,", ": the row has no end"),
            ("steps-that-go-back", "0,10,1000,900,\n11,20,700,650,", "last_step: '700' lies"),
            ("a-step-time-in-ms", "0,10,9,9,1\n10,20,3609,,10000", "'10000' s for each of the"),
            ("a-step-time-in-h", "0,10,9,9,1\n10,20,3609,,.0028", "'.0028' s for each step"),
            ("half-a-step-time", "0,1,1,1,9\n1,4,601,601,9\n4,9,1601,1601,9", "one share of all"),
            ("a-save-of-0-where-none-was", "0,10,1000,900,\n11,20,1700,0,\n21,30,2600,2600,",
             "3: last_saved_step: '0' lies before the step at which its attempt began"),
            ("a-table-without-an-attempt", "0,9,900,900,\n10,20,1900,1900,\n21,41,3900,3900,\n"
             "60,70,7000,7000,", "5: last_step: '7000': over twice the steps an hour"),
        )
    ),
    Case("a-crash-loop-makes-few-steps", {"a.csv":
        "start,end,last_step,last_saved_step\n0,10,1000,950\n"
        "11,11.1,952,950\n12,12.1,953,950\n13,13.1,951,950\n14,24,1950,1950\n"},
        "ledger a.csv --time-unit h", {"frames.hours.0.hours": 19.5}, rel=0.02),
    Case("a-table-whose-last-attempt-runs", {"a.csv": f"{TABLE}0,9,900,900,disk\n"
        "9,20,2000,1900,RUNNING\n"}, "ledger a.csv --time-unit h",
        {"values.n_failures": 1, "frames.hours.1.hours": 0}),
    Case("a-table-without-causes", {"a.csv":
        "start,end,last_step,last_saved_step\n0,10,1000,900\n11,20,1800,1800\n"},
        "ledger a.csv --time-unit h", {"values.n_failures": 1},
        says=("no row of a.csv has a cause: all ends but a job's last count as failures",)),
    Case("steps-that-go-back-in-an-attempt", {"e.jsonl": lines(*job(), (2400, "progress", {
        "attempt": 0, "step": 90}))}, "ledger e.jsonl",
        refused=("11:46:40 UTC the steps go back, as where two jobs alternate; if these are",)),
    Case("starts-of-one-number", {"e.jsonl": lines(*[(at_s, name, {**said, "attempt": 0})
        for at_s, name, said in job()])}, "ledger e.jsonl",
        BY_EVENTS | {"frames.hours.5.hours": 170 / 3600, "frames.hours.6.hours": 100 / 3600}),
    Case("all-that-a-replay-lacks", {"a.csv": SAVED}, "backtest a.csv --recovery gemini "
        "--time-unit s", refused=("a: its log does not show the interval between saves: give it",
            "; times no save: give it, as in --set", "it needs the state of a node: give "
            "`cluster.state` (and to send it `cluster.link`)")),
    Case("a-table-calibrated", {"a.csv": "start,end,last_step\n" + "".join(
        f"{11 * n},{11 * n + 10},{1000 + 900 * n}\n" for n in range(4))},
        "calibrate a.csv --time-unit h --saves-every 60min",
        says=("3 gaps between failures", "the logs time no save (0 s here)")),
    Case("saves-as-often-as-no-time", {"a.csv": SAVED}, f"{BACKTEST} --saves-every 0s",
        refused=("--saves-every: must be positive, not '0s'",)),
    Case("a-crash-loop", {"e.jsonl": crash_loop()}, "ledger e.jsonl", {"values.n_failures": 33}),
    Case("a-crash-loop-calibrated", {"e.jsonl": crash_loop()}, "calibrate e.jsonl --nodes 4",
        says=("3 gaps between failures", "a crash loop is one failure: 30 of 33")),
    Case("a-crash-loop-replayed", {"e.jsonl": crash_loop()},
        "backtest e.jsonl --nodes 4 --recovery full",
        says=("a crash loop is one failure: 30 of 33 failures", "They leave out chance: a job like "
            "these, with 3 failures here, may have 0 to 6")),
    Case("four-times-the-failures", {"e.jsonl": lines(*halves(12, 48, 50, 50))},
         "calibrate e.jsonl",
         says=("outside the interval: what moved most is the failures a day, 4.",)),
    Case("twice-the-work-lost", {"e.jsonl": lines(*halves(40, 40, 5, 95))}, "calibrate e.jsonl",
         says=("what moved most is the work lost at each failure [h], 0.02",)),
    Case("fewer-failures-explain-no-loss", {"e.jsonl": lines(*halves(20, 16, 99, 99))},
         "calibrate e.jsonl", says=("what moved most is the share of time that no failure",)),
    Case("failures-at-equal-distances", {"e.jsonl": lines(*halves(20, 20, 50, 50))},
         "calibrate e.jsonl", {"values.is_inside": True},
         says=("the gaps between failures have the shape", "; a scenario takes 100")),
    Case("a-failure-in-s-where-others-are-in-ns", {"e.jsonl": "".join(
        line.replace("000000000, ", ", ") if '"failure"' in line else line
        for line in lines(*job()).splitlines(keepends=True))}, "ledger e.jsonl",
        refused=("e.jsonl:6: time_unix_nano: 1741002700 ns lies in 1970: it looks like s",)),
    Case("a-file-of-another-clock", {"a.jsonl": lines(*job(), job="j"), "b.jsonl": lines(
        (3e7 - T0_NS / 1e9, "failure", {}), job="j")}, "ledger a.jsonl b.jsonl",
        refused=("UTC a log of today begins; write all in ns since 1970",)),
    *(Case(f"a-column-{name}-that-is-not-read", {"a.csv": f"start,end,last_step,{name}\n" + "".join(
        f"{10 * k},{10 * k + 10},{1000 * (k + 1)},{cell}\n" for k, cell in enumerate(cells))},
        "ledger a.csv --time-unit h",
        refused=("a.csv:1: columns: '", f"{name[-4:]}' (", "could change the answer: call"))
      for name, cells in UNREAD.items()),
    Case("columns-that-do-not-matter", {"a.csv":
        "start,end,last_step,last_saved_step,cause,state,user,try,gpus\n"
        "0,10,1000,900,Xid 79,FAILED,ann,1,8\n10,20,1900,1900,,COMPLETED,ann,2,16\n"},
        "ledger a.csv --time-unit h", {"frames.hours.0.hours": 19, "values.n_failures": 1}),
    Case("from-scratch-at-twice-the-pace", {"a.csv":
        "start,end,first_step,last_step,cause\n0,24,0,24000,diverged\n25,37,0,24000,\n"},
        "ledger a.csv --time-unit h", {"frames.hours.0.hours": 12, "frames.hours.1.hours": 24}),
    Case("made-again-at-twice-the-pace", {"a.csv":
        f"{TABLE}0,24,24000,12000,disk\n25,37,36000,36000,\n"}, "ledger a.csv --time-unit h",
        {"frames.hours.0.hours": 24, "frames.incidents.0.lost_h": 12}),
    Case("steps-that-take-twice-as-long-as-said", {"e.jsonl": lines(*job(step_seconds=10))},
        "ledger e.jsonl", BY_EVENTS | {"frames.hours.2.hours": 40 / 3600,
            "values.inferred.paces": 1}),
    Case("a-pace-that-changes", {"e.jsonl": lines(*at_two_paces())}, "ledger e.jsonl", {
        "frames.hours.0.hours": 17500 / 3600, "frames.hours.2.hours": 300 / 3600}),
    Case("a-step-time-of-each-attempt", {"a.csv":
        "start,end,last_step,last_saved_step,step_seconds,cause\n"
        "0,10,3600,3500,10,disk\n10,20,12500,12500,4,\n"}, "ledger a.csv --time-unit h",
        {"frames.hours.0.hours": 20 - 1000 / 3600, "frames.hours.1.hours": 1000 / 3600}),
    Case("an-end-that-lost-nothing", {"a.csv": f"{TABLE}0,9,900,900,abort\n9,20,2000,2000,\n"},
        "ledger a.csv --time-unit h", {"values.n_failures": 1},
        says=("count as failures: abort (1); 1 of these lost no work: if planned, write",)),
    Case("ends-that-contradict", {"e.jsonl": lines(*job(), (6001, "job.end", {
        "attempt": 1, "outcome": "failed"}))}, "ledger e.jsonl",
        refused=("UTC a second job.end differs: 'failed'; if these are two jobs",)),
    Case("a-failure-told-after-the-end-of-its-attempt", {"e.jsonl": lines(*job()[:5],
        (2700, "job.end", {"attempt": 0, "outcome": "failed"}),
        (2790, "failure", {"attempt": 0, "step": 130}), *job()[8:])}, "ledger e.jsonl",
        {"frames.hours.1.hours": 600 / 3600, "values.inferred.instants": 0}),
    Case("steps-counted-anew-in-each-attempt", {"a.csv":
        "start,end,last_step,cause\n0,10,1000,disk\n11,31,1980,disk\n32,37,490,\n"},
        "ledger a.csv --time-unit h",
        refused=("a.csv:3: last_step: '1980': counted from step 0 again in each",)),
    Case("one-death-said-by-ranks-without-attempts", {"e.jsonl": lines(*without([
        *((at_s, name, {**said, "rank": 0}) for at_s, name, said in job()),
        *((2700 + 90 * rank, "failure", {"step": 130, "rank": rank}) for rank in range(1, 5))],
        "job.start", fields=("attempt",)))}, "ledger e.jsonl",
        {"values.n_failures": 1}),
    Case("a-table-that-psql-printed", {"a.txt":
        "        start        | end | last_step\n---------------------+-----+-----------\n"
        " 2026-03-02 00:00:00 | 9   |      1000\n(1 row)\n"}, "ledger a.txt",
        refused=("a.txt: is a table that psql, MySQL or Markdown prints: `psql --csv`",)),
    Case("nothing-but-starts-and-progress", {"e.jsonl": lines(
        (0, "job.start", {"attempt": 0}), (9000, "job.start", {"attempt": 1}), *[
            (500 * n + 60 * (n // 2) + 5000 * (n > 8), "progress", {"step": 50 * n})
            for n in range(20)])}, "ledger e.jsonl",
        says=("At most", "save unknown", "1 job whose log times no save")),
    Case("nothing-but-starts-of-saves", {"e.jsonl": lines(*[
        (1000 * n, "save.start", {"step": 10 * n}) for n in range(9)])}, "ledger e.jsonl",
        {"values.n_saves": 8}, says=("At most", "save unknown")),
    Case("no-event-of-a-save", {"e.jsonl": lines(*without(job(), "save.start", "save.commit"))},
        "ledger e.jsonl", {"values.inferred.untold_saves": 1}, says=("save unknown",)),
    Case("a-pause-where-a-save-was-due", {"e.jsonl": lines(*[
        (at_s + 500 * (at_s > 2060), *said) for at_s, *said in at_two_paces()[:11]])},
        "ledger e.jsonl", {"values.inferred.delays": 1}, says=("1 delays that no event explains",)),
    Case("saves-without-their-time", {"g.log": GOOGLE}, "calibrate g.log",
        says=("time no save (0 s here): `cprsim run --set costs.save='30 s'` gives it",)),
    Case("events-in-an-array", {"e.jsonl": f"[{lines(*job()).replace('}', '},')}]"},
        "ledger e.jsonl", refused=("e.jsonl:1: no line is an event", "`jq -c '.[]'`")),
    Case("dates-of-another-form", {"a.csv": f"{TABLE}02.03.2026 08:00,02.03.2026 09:00,10,10,\n"},
        "ledger a.csv", refused=("is no ISO 8601 time stamp", "write it so (`cprsim fit` reads",)),
    Case("a-save-cost-that-no-log-tells", {"a.csv": SAVED},
        BACKTEST.partition(" --set")[0] + " --saves-every 20min --set name=costs.save",
        refused=("a: its log times no save: give it, as in --set costs.save='20 s'",)),
    Case("one-death-said-by-agents-without-attempts", {"e.jsonl": lines(*without([
        *job(), (2705, "failure", {}), (2709, "failure", {"step": 129, "rank": 3}),
        (2800, "failure.detected", {})], fields=("attempt",)))}, "ledger e.jsonl",
        {"values.n_failures": 1, "frames.hours.1.hours": 600 / 3600}),
    Case("one-death-said-by-an-agent-and-later-by-its-ranks", {"e.jsonl": lines(*without([
        *job(), *((2950, "failure", {"step": 130, "rank": rank}) for rank in range(3))],
        fields=("attempt",)))}, "ledger e.jsonl", {"values.n_failures": 1}),
    Case("a-time-out-that-slurm-did-not-plan", {"a.csv": f"{TABLE}0,9,900,900,Timeout: NCCL\n"
        "9,20,2000,2000,TIME LIMIT 11:00:00\n20,30,3000,3000,planned upgrade\n"
        "30,40,4000,4000,scale-in\n40,50,5000,5000,\n"}, "ledger a.csv --time-unit h",
        {"values.n_failures": 1}, says=("that count as failures: Timeout: NCCL (1)",)),
    Case("an-end-that-another-attempt-follows", {"e.jsonl": lines(*job()[:5],
        (2700, "job.end", {"attempt": 0, "step": 130, "outcome": "finished"}), *job()[8:])},
        "ledger e.jsonl", {"values.n_failures": 0, "frames.hours.1.hours": 600 / 3600},
        says=("planned, no failures: finished (1)",)),
    Case("a-name-of-each-attempt", {"e.jsonl": lines(*job()[:8], job="71") + lines(
        *job()[8:], job="72")}, "ledger e.jsonl", says=("72: no first attempts?",)),
    Case("a-log-and-a-copy-with-other-ends-of-lines", {"a.jsonl": lines(*job()), "b.jsonl": lines(
        *job()).replace("\n", "\r\n")}, "ledger a.jsonl b.jsonl", BY_EVENTS | {"values.n_jobs": 1}),
    Case("a-rotated-log-with-lines-of-both", {"a.log.1": lines(*job()[:9]), "a.log": lines(
        *job()[4:]), "old": lines(*job()[:3])}, "ledger old a.log a.log.1",
        BY_EVENTS | {"values.n_jobs": 1}),
    Case("a-save-that-two-rotated-logs-tell", {
        "a.log.1": lines(*job()[:2], *SAVES[:12]), "a.log": lines(*SAVES[10:], *job()[5:])},
        "ledger a.log a.log.1", {"values.n_saves": 9, "values.n_failures": 1}),
    Case("a-log-cut-in-the-middle-of-a-recovery", {"a.log.1": lines(*job()[:7]), "a.log": lines(
        *job()[7:9]), "b.log": lines(*job()[9:])}, "ledger a.log a.log.1 b.log",
        BY_EVENTS | {"values.n_jobs": 1}, says=("goes on where a.log ends: one log",)),
    Case("parts-of-two-logs-without-numbers", {f"{name}.log{part}": lines(*without(
        [event for event in job(at_s)[:6] + job(at_s)[8:] if (event[0] > at_s + 2e3) != bool(part)],
        fields=("attempt",))) for name, at_s in (("a", 0.0), ("b", 9.0)) for part in ("", ".1")},
        "ledger a.log b.log a.log.1 b.log.1", {"values.n_jobs": 4},
        says=("a, b: no first attempts?",)),
    Case("a-launch-of-each-log-counts-anew", {name: lines(*events, attempt=0) for name, events in (
        ("a.log", without(job()[:6], fields=("attempt",))),
        ("b.log", without(job()[8:], fields=("attempt",))))}, "ledger b.log a.log",
        BY_EVENTS | {"values.n_jobs": 1}, says=("b goes on where a ends: one log",)),
    Case("a-planned-end-detects-no-failure", {"e.jsonl": lines(
        *without(job()[:-1], "failure.detected", "reschedule.start"),
        (6000, "job.end", {"attempt": 1, "outcome": "stopped"}),
        (6100, "job.start", {"attempt": 2}), (6200, "train.resume", {"step": 250}),
        (8200, "job.end", {"step": 350}))},
        "ledger e.jsonl",
        {"frames.hours.5.hours": 200 / 3600, "frames.hours.13.hours": 100 / 3600}),
    Case("a-save-before-the-first-step", {"e.jsonl": lines(job()[0], (30, "save.start", {
        "step": 0}), (50, "save.commit", {}), *job()[1:])}, "ledger e.jsonl",
        {"values.n_failures": 1}),
    Case("a-log-whose-first-attempts-are-missing", {"a.log": lines(*without(job(), "train.resume")[
        7:])}, "ledger a.log", says=("1 attempts that begin beyond every step that the log",)),
    Case("tables-with-rows-in-common", {name: "\n".join(("start,end,last_step", *rows)) for
        name, rows in (("a.csv", ("0,10,1000", "11,21,1950")), ("b.csv", ("11,21,1950",
            "22,32,2900")))}, "ledger a.csv b.csv --time-unit h",
        {"values.n_jobs": 1, "values.n_failures": 2}),
    Case("many-events-in-other-words", {"e.jsonl": lines(*job()).replace("failure", "crash")},
        "ledger e.jsonl", {"values.n_failures": 1}, says=(
            "2 events 'crash', 'crash.detected' left out: no event of docs/events.md 83.",)),
    Case("nodes-in-lists", {"e.jsonl": lines(*job(), node=["n1", "n2"])}, "ledger e.jsonl",
        refused=("e.jsonl:1: node: ['n1', 'n2'] is not a text; so in 12 events",)),
    Case("events-with-other-signs", {"e.jsonl": lines(*job()).replace("save.", "save_")},
        "ledger e.jsonl", refused=("e.jsonl: 'save_start' is no event: write save.start",)),
    Case("lines-that-name-no-job", {"e.jsonl": lines(*job(), job="j") + lines(
        (6100, "failure", {}))}, "ledger e.jsonl",
        refused=("e.jsonl: job: 1 events name no job, where others do",)),
    Case("instants-in-ms-since-the-start", {"e.jsonl": "".join(
        json.dumps({"time_unix_nano": round(1000 * at_s), "event": name, **said}) + "\n"
        for at_s, name, said in job())}, "ledger e.jsonl",
        refused=("UTC a log of several instants a second begins; write all in ns since 1970",)),
    Case("a-last-step-that-nobody-wrote-down", {"a.csv":
        "start,end,last_step,last_saved_step,step_seconds,cause\n0,10,3600,3600,10,disk\n"
        "10,20,,5400,10,disk\n20,30,9000,9000,10,\n"}, "ledger a.csv --time-unit h",
        {"frames.hours.0.hours": 25, "frames.hours.1.hours": 5}),
    Case("steps-counted-from-0-after-saves", {"a.csv":
        "start,end,first_step,last_step,last_saved_step\n0,10,0,1000,900\n11,20,0,900,900\n"},
        "ledger a.csv --time-unit h",
        says=("1 row of a.csv with step 0 after saves", "attempt counts its own steps")),
    Case("events-counted-from-0-after-saves", {"e.jsonl": lines(*job()[:9], (3000, "train.resume", {
        "attempt": 1, "step": 0}), (5000, "job.end", {"attempt": 1, "step": 100}))},
        "ledger e.jsonl", says=("1 attempt lost nearly all steps, though saved: if each",)),
    Case("a-column-of-dates", {"a.csv": "start,end,last_step,last_saved_step,exit\n"
        "0,10,1000,900,2026-03-02\n11,20,1800,1800,2026-03-02\n21,30,2700,2700,2026-03-03\n"
        "31,40,3600,3600,2026-03-03\n41,50,4500,4500,2026-03-04\n"}, "ledger a.csv --time-unit h",
        {"values.n_failures": 4}),
    Case("a-job-of-which-steps-alone-are-told", {"s.txt": SACCT.format("2", "n[1-2]", "01:00:00")
        .replace("7|", "7.batch|")}, "ledger s.txt", refused=("job 7 has rows of steps alone",)),
    Case("a-job-that-ran-on-no-node", {"s.txt": SACCT.format("0", "", "01:00:00")}, "ledger s.txt",
        refused=("s.txt:2: nodelist: on how many nodes?",)),
    Case("a-job-that-ran-beyond-its-end", {"s.txt": SACCT.format("2", "n[1-2]", "03:00:00")},
        "ledger s.txt", refused=("s.txt:2: elapsed: '03:00:00' lasts beyond the end",)),
    Case("a-job-that-was-suspended", {"s.txt": SACCT.format("2", "n[1-2]", "00:30:00")},
        "-v ledger s.txt", {"values.node_h": 1},
        says=("1 attempt counted by Elapsed, shorter than from start to",)),
]  # fmt: skip
