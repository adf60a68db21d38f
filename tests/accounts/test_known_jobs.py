"""Known jobs, written in drawn forms with drawn faults: the ledger has their hours, or refuses."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, event, example, given, settings
from hypothesis import strategies as st

import cprsim

T0_MS = 1_750_000_000_000
PLANNED = ("TIMEOUT", "time limit", "CANCELLED", "PREEMPTED", "stopped", "requeued", "maintenance")
DEATHS = ("failure", "failure in a save", "crash loop")
ENDS = (*DEATHS, "failed", "finished", *PLANNED)
LAST = ("finished", "stopped", "cut", "given up", "dead")
SPARE = ("progress", "failure", "failure.detected", "reschedule.start", "train.resume",
         "save.start", "save.commit", "warm-up.start")  # fmt: skip
FIELDS = ("attempt", "step_seconds", "save_id", "step of failure", "step of job.end",
          "step of save.start", "step of save.commit", "step of train.resume")  # fmt: skip
COLUMNS = ("start", "end", "last_step", "job", "first_step", "last_saved_step", "step_seconds",
           "cause")  # fmt: skip
JOBS = ("one", "two named", "two unnamed")
REPORTS = {"ranks": (0, 5), "agent": (10, 90), "late": (100, 400)}  # seconds after a death
TOGETHER = {  # parts of which only the sum is known, where the log has no such events
    ("detect", "wait", "reschedule"): {"failure.detected", "reschedule.start"},
    ("save", "degraded"): {"save.start", "save.commit"},
    ("load", "warm-up"): {"train.resume", "warm-up.start"},
}


@dataclass(frozen=True)
class Plan:
    """What happens to a job."""

    ends: tuple[str, ...] = ("failure",)
    last: str = "finished"
    step_ms: int = 2_000
    save_ms: int = 30_000
    background: bool = False
    older: bool = False  # the first resume is from the save before the last
    first: int = 0  # the step that the job begins with
    warm_s: tuple[int, int] = (0, 0)  # after each restart
    says_warm: bool = False  # by `warm-up.start`, else the first steps are late
    seed: int = 0


@dataclass(frozen=True)
class Form:
    """How what happened is written down, and what is wrong with it."""

    table: bool = False  # of attempts, or events
    dropped: tuple[str, ...] = ()  # names of events
    share: float = 1.0  # of those that are dropped, or of cells that are kept
    silent: tuple[str, ...] = ()  # fields, or steps of an event, or columns that are not there
    order: str = "time"
    repeated: str = ""
    jobs: str = "one"
    times: str = "iso"
    seed: int = 0


@dataclass
class Life:
    """What happened to a job: its events, its attempts, its hours in ms and its failures."""

    plan: Plan
    at: int
    step: float
    saves: list[int]
    events: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    ms: Counter[str] = field(default_factory=Counter)
    n_failures: int = 0
    pending: list[int] = field(default_factory=list)

    def say(self, name: str, **said: Any) -> None:
        one = {"time_unix_nano": (T0_MS + self.at) * 10**6, "event": name}
        self.events.append(one | {"attempt": len(self.attempts)} | said)

    def spend(self, part: str, ms: int) -> None:
        self.ms[part] += ms
        self.at += ms

    def save(self, share: float = 1.0) -> None:
        step = {"step": self.step, "save_id": str(int(self.step))}
        self.say("save.start", **step)
        self.spend("save", round(self.plan.save_ms * share))
        if share == 1.0:
            self.say("save.resume" if self.plan.background else "save.commit", **step)
            (self.pending if self.plan.background else self.saves).append(int(self.step))

    def train(self, until: float) -> None:
        while self.step < until:
            after = min(until, self.step // 40 * 40 + 40)
            self.spend("work", round((after - self.step) * self.plan.step_ms))
            self.step = after
            if after % 40 == 0:
                for step in self.pending:
                    self.say("save.commit", step=step, save_id=str(step))
                self.saves += self.pending
                self.pending.clear()
                self.say("progress", step=after)
                if after % 200 == 0:
                    self.save()


def live(plan: Plan, form: Form, begins: int = 0) -> Life:
    """One job from its start to its end; what its log can't tell takes no time."""
    plan = replace(plan, save_ms=plan.save_ms * (not form.table))
    rng, life = random.Random(plan.seed), Life(plan, begins, plan.first, [plan.first])
    for number, end in enumerate((*plan.ends, plan.last)):
        last, planned = number == len(plan.ends), end in ("finished", "failed", *PLANNED)
        row: dict[str, Any] = {"start": life.at, "first_step": int(life.step), "cause": ""}
        life.say("job.start", step_seconds=plan.step_ms / 1000)
        loads = not (form.table and "step_seconds" in form.silent)
        life.spend("load" if number else "start", rng.randrange(20_000, 120_000) * loads)
        warm_ms = rng.randint(*plan.warm_s) * 1000 * (number > 0 and not form.table)
        if plan.says_warm and warm_ms:
            life.say("warm-up.start")
            life.spend("warm-up", warm_ms)
        row["resumed"] = life.at
        life.say("train.resume", step=life.step)
        if not plan.says_warm:
            life.spend("warm-up", warm_ms)
        length = 15 if end == "crash loop" else rng.randrange(30, 1500)
        life.train(life.step + length + rng.choice((0, 0.25)) * (end in ("failure", "dead")))
        if end == "failure in a save":
            life.save(0.5)
        if end in PLANNED and rng.random() < 0.6 and not plan.background:
            life.save()
        life.pending.clear()
        row |= {"last_step": life.step, "last_saved_step": life.saves[-1], "end": life.at}
        if planned:
            life.say("job.end", step=life.step, outcome=end)
            row["cause"] = "" if last and end == "finished" else end
            life.n_failures += end == "failed"
        elif end == "cut":
            life.say("progress", step=life.step)
        else:
            life.n_failures += 1
            row["cause"] = "ecc"
            life.say("failure", step=life.step, node=f"n{number}", cause="ecc")
            life.spend("detect", rng.randrange(10_000, 90_000) * (not (form.table and last)))
            life.say("failure.detected")
            if end == "given up" and not form.table:
                life.spend("reschedule", 60_000)
                life.say("job.end", outcome="failed")
        if not last:
            life.spend("wait", rng.choice((0, 0, 400_000)) * (not planned))
            if not planned:
                life.say("reschedule.start")
            stood_ms = rng.randrange(30_000, 300_000)
            life.saves = life.saves[: -1 if plan.older and not number else None] or life.saves
            lost = end == "PREEMPTED" and life.step > life.saves[-1]
            is_stop = end in ("finished", *PLANNED) and not lost
            life.spend("planned" if is_stop else "reschedule", stood_ms)
            life.n_failures += lost
            life.step = life.saves[-1]
        life.attempts.append(row)
    final = life.step if plan.last in ("finished", "cut") else life.saves[-1]
    life.ms["useful"] = round((final - plan.first) * plan.step_ms)
    life.ms["lost"] = life.ms.pop("work") - life.ms["useful"]
    if form.table:  # which does not tell what lies between two attempts
        life.ms["reschedule"] += life.ms.pop("detect", 0) + life.ms.pop("wait", 0)
    return life


def of_events(life: Life, form: Form, job: str, rng: random.Random) -> Iterator[dict[str, Any]]:
    """The events of a job's log, thinned and repeated."""
    for number, said in enumerate(life.events):
        name, last = said["event"], number == len(life.events) - 1
        if name in form.dropped and rng.random() < form.share and number > 0 and not last:
            continue
        silent = {*form.silent, "job" if form.jobs == "two unnamed" else ""}
        silent |= {"step"} if f"step of {name}" in silent else set()
        one = {key: value for key, value in (said | {"job": job}).items() if key not in silent}
        yield one
        repeats = form.repeated in REPORTS and said["attempt"] < len(life.attempts) - 1
        for rank in range(3 if name == "failure" and repeats else 0):
            later_ns = round(rng.uniform(*REPORTS[form.repeated]) * 1e9)
            yield one | {"time_unix_nano": one["time_unix_nano"] + later_ns, "rank": rank}


def text_of(lives: list[Life], form: Form) -> str:
    """The log in its form."""
    rng, jobs = random.Random(form.seed), list(zip("ab", lives, strict=False))
    if form.table:
        columns, mark = [one for one in COLUMNS if one not in form.silent], rng.choice(",;\t")
        header, lines = mark.join(columns) + "\n", []
        for job, row in [(job, row) for job, life in jobs for row in life.attempts]:
            said = row | {"job": job, "step_seconds": lives[0].plan.step_ms / 1000}
            for key in ("start", "end"):
                at = pd.Timestamp(T0_MS + row[key], unit="ms")
                numbers = {"s": at.timestamp(), "ms": T0_MS + row[key], "h": row[key] / 3.6e6}
                said[key] = numbers.get(form.times, at)
            said |= {"last_saved_step": ""} if rng.random() >= form.share else {}
            lines.append(mark.join(str(said[column]) for column in columns))
        header = header.replace("first_step", rng.choice(("first_step", "resumed_step")))
    else:
        told = [one for job, life in jobs for one in of_events(life, form, job, rng)]
        told.sort(key=lambda one: (one["time_unix_nano"], rng.random() * (form.order == "ties")))
        header, lines = "", [json.dumps(one) for one in told]
    if form.order == "any":
        rng.shuffle(lines)
    return header + "\n".join(lines * (1 + (form.repeated == "twice"))) + "\n"


def wrong_in(answer: cprsim.Answer, lives: list[Life], form: Form) -> Iterator[str]:
    """What is wrong in an answer."""
    hours: dict[tuple[str, ...], dict[Any, Any]]
    hours = {(row["part"],): row for row in answer.frames["hours"].to_dict("records")}
    together = dict(TOGETHER)
    if isnan(hours["warm-up",]["hours"]):  # not shown: in the load or in slow work, if anywhere
        saves, loads = together["save", "degraded"], together.pop(("load", "warm-up"))
        more = ("load",) if loads & {*form.dropped} else ()
        if saves & {*form.dropped}:  # or in a save that is told in half
            more = ("save", *more)
            del together["save", "degraded"]
        together["degraded", "warm-up", *more] = {*form.dropped}
        hours["warm-up",] |= {"hours": 0.0, "hours_low": 0.0, "hours_high": 0.0}
        is_told = not (form.table or form.dropped or form.silent)
        if is_told and any(life.ms["save"] for life in lives):
            yield "a warm-up that the log shows is unknown"
    if isnan(hours["save",]["hours"]):
        any_h = sum(life.ms["save"] for life in lives) / 3.6e6  # then they count as work, or slow
        hours["save",] |= {"hours": 0.0, "hours_low": 0.0, "hours_high": any_h}
        is_told = not (form.table or {"save.start", "save.commit"} & {*form.dropped})
        if is_told and any(life.ms["save"] for life in lives):
            yield "saves that the log shows are unknown"
    wall_h, total_h = answer.values["wall_h"], sum(row["hours"] for row in hours.values())
    true_h = sum(sum(life.ms.values()) for life in lives) / 3.6e6
    if abs(total_h - wall_h) > 1e-3 or abs(wall_h - true_h) > 1e-6:
        yield f"{total_h:.4f} h in parts of {wall_h:.4f} h, true {true_h:.4f} h"
    if (n := answer.values["n_failures"]) != sum(life.n_failures for life in lives):
        yield f"{n} failures for {sum(life.n_failures for life in lives)}"
    for parts, borders in together.items():
        if borders & {*form.dropped}:
            rows = [hours.pop((part,)) for part in parts]
            hours[parts] = {key: sum(row[key] for row in rows) for key in rows[0] if key != "part"}
    for parts, row in hours.items():
        true_h = sum(life.ms[part] for life in lives for part in parts) / 3.6e6
        low, high = row["hours_low"], row["hours_high"]
        slack = (high - low) + 1e-3 * true_h + 1e-4  # of 95 % intervals some leave the truth out
        if not low - slack <= true_h <= high + slack:
            yield f"{parts} {row['hours']:.4f} ({low:.4f} to {high:.4f}) for {true_h:.4f}"


def lives_of(plan: Plan, form: Form) -> list[Life]:
    """The job, or both."""
    lives = [live(plan, form)]
    if form.jobs != "one":
        lives.append(live(replace(plan, seed=plan.seed + 1), form, begins=form.seed % 3 * 7_000))
    return lives


def read(plan: Plan, form: Form, folder: Path) -> list[str] | None:
    """What is wrong in the answer to a job in a form; None if it is refused."""
    lives = lives_of(plan, form)
    path = folder / ("log.csv" if form.table else "log")
    path.write_text(text_of(lives, form), "utf-8")
    try:
        answer = cprsim.ledger(path, time_unit="h" if form.times == "h" else None)
    except cprsim.CprsimError:
        return None
    return list(wrong_in(answer, lives, form))


def untold(plan: Plan, form: Form) -> bool:
    """Whether a log can't tell what happened: a table, by its own page, or two jobs as one."""
    gone = {*form.silent} if form.table else set()
    fails = {*plan.ends} <= {*DEATHS} and plan.last in ("cut", "finished")
    lives, as_one = lives_of(plan, form), False
    if form.jobs == "two unnamed" and form.seed % 3 == 0:  # they work at once, or in turn
        one, other = sorted((of.attempts[0]["resumed"], of.attempts[0]["end"]) for of in lives)
        as_one = other[0] - one[0] <= 1000 or other[0] >= one[1]
    if form.jobs != "one" and "job" in gone:  # unless attempts overlap that are not the same
        spans = [[(row["start"], row["end"]) for row in of.attempts] for of in lives]
        as_one = all(a[0] >= b[1] or b[0] >= a[1] or a == b for a in spans[0] for b in spans[1])
    return (
        as_one
        or ("cause" in gone and not fails)
        or ("first_step" in gone and plan.older)
        or ({"first_step", "step_seconds"} <= gone and plan.first > 0)
    )


def some(of: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    """At most three kinds at once."""
    return st.lists(st.sampled_from(of), max_size=3, unique=True).map(tuple)


SEEDS = st.integers(0, 9999)
PLANS = st.builds(
    Plan, ends=st.lists(st.sampled_from(ENDS), max_size=4).map(tuple), last=st.sampled_from(LAST),
    step_ms=st.sampled_from((2_000, 500, 20_000)), save_ms=st.sampled_from((30_000, 5_000)),
    background=st.booleans(), older=st.booleans(), first=st.sampled_from((0, 4000)), seed=SEEDS,
    warm_s=st.sampled_from(((0, 0), (130, 130), (60, 400))), says_warm=st.booleans(),
)  # fmt: skip
DRAWN: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "dropped": {"dropped": some(SPARE),
                "share": st.sampled_from((1.0, 0.3))},
    "silent": {"silent": some(FIELDS)},
    "order": {"order": st.sampled_from(("ties", "any")), "jobs": st.sampled_from(JOBS)},
    "repeated": {"repeated": st.sampled_from(("twice", *REPORTS)),
                 "jobs": st.sampled_from(JOBS[:2])},
    "table": {"table": st.just(value=True), "share": st.sampled_from((1.0, 0.7)),
              "silent": some(COLUMNS[3:]),
              "order": st.sampled_from(("time", "any")), "jobs": st.sampled_from(JOBS[:2]),
              "repeated": st.sampled_from(("", "twice")),
              "times": st.sampled_from(("iso", "s", "ms", "h"))},
}  # fmt: skip
FORMS = st.one_of([st.builds(Form, seed=SEEDS, **drawn) for drawn in DRAWN.values()])
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]


def check(plan: Plan, form: Form, folder: Path) -> None:
    assume(not untold(plan, form))
    wrong = read(plan, form, folder)
    event(f"{'table' if form.table else 'events'}: {'refused' if wrong is None else 'answered'}")
    assert not wrong


@pytest.mark.parametrize("n", [60, pytest.param(2000, marks=pytest.mark.long)])
def test_the_ledger_of_a_known_job_is_right_or_refused(tmp_path: Path, n: int) -> None:
    @settings(max_examples=n, derandomize=True, suppress_health_check=QUIET)
    @given(plan=PLANS, form=FORMS)
    @example(  # a job that died in its warm-up, or soon after: no event tells
        plan=Plan(("failure", "failure"), step_ms=500, warm_s=(60, 400), seed=3),
        form=Form(dropped=("progress", "failure")),
    )
    @example(  # saves told in half, and late starts
        plan=Plan(
            ("time limit", "failure", "failure"),
            step_ms=500,
            first=4000,
            warm_s=(60, 400),
            seed=5101,
        ),
        form=Form(dropped=("save.commit", "progress", "failure"), seed=5101),
    )
    @example(  # a death while a save is under way in the background
        plan=Plan(
            ("failure in a save",),
            "dead",
            step_ms=500,
            save_ms=5000,
            background=True,
            first=4000,
            warm_s=(130, 130),
            seed=8211,
        ),
        form=Form(seed=8211),
    )
    @example(  # a death in a save, which no event tells
        plan=Plan(
            ("failure in a save",),
            "given up",
            step_ms=500,
            save_ms=200_000,
            older=True,
            seed=782526,
        ),
        form=Form(dropped=("failure",), order="any", repeated="agent", seed=992499),
    )
    @example(  # without numbers of attempts, processes and the agent report a death late
        plan=Plan(("PREEMPTED", "failure", "TIMEOUT"), "stopped", save_ms=5000, seed=587433),
        form=Form(silent=("attempt",), repeated="agent", seed=7),
    )
    @example(  # progress after the last other event
        plan=Plan(last="cut", warm_s=(130, 130)),
        form=Form(dropped=("failure", "save.start", "save.commit")),
    )
    def read_one(plan: Plan, form: Form) -> None:
        check(plan, form, tmp_path)

    read_one()


@pytest.mark.parametrize(
    "form",
    [Form(), Form(order="any"), Form(repeated="twice"), Form(repeated="ranks"),
     Form(jobs="two named"), Form(dropped=("progress",)), Form(silent=("step_seconds",)),
     Form(dropped=("save.start", "save.commit")), *[Form(table=True, silent=(column,))
     for column in ("", "first_step", "last_saved_step", "step_seconds")]],
    ids=str,
)  # fmt: skip
def test_the_ledger_of_a_usual_form_is_answered(tmp_path: Path, form: Form) -> None:
    for seed in range(8):
        ends = (ENDS[seed % 4], ENDS[seed % 6 + 5])
        plan = Plan(ends, ("cut", "finished")[seed % 2], seed=seed)
        if not untold(plan, form):
            assert read(plan, form, tmp_path) == []
