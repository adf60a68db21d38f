"""The naive interpreter of recovery systems: `docs/recovery.md`, event by event and rule by rule.

It shares only the records with `cprsim/simulation`, so that they can be held to it:
no step is jumped over, and nothing is kept that could be looked up again. Numbers in comments are
sections and rules of the page. Where the page is open, the reading chosen is marked "Reading:".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import floor, inf

from cprsim.job import policy as records
from cprsim.job.distributions import Constant
from cprsim.job.policy import Reverts, Rule, SaveSchedule, Scope, Stage, StageKind, Tier, To
from cprsim.job.records import STOPPED_BEYOND, Clock, Duration, Storage
from cprsim.simulation.job import NOTICE, ScopedFailure, SimulatedJob
from tests.recovery.naive_copies import Content, Copies
from tests.recovery.outcome import ReplicationDraws, ReplicationOutcome, StaleShard

# Section 9 of docs/model.md
MAX_FAILURES_WITHOUT_PROGRESS, NO_WORK_H = 1000, 1e-9
HARDLY_AFTER, MAX_SLOWDOWN = 5000, 10.0

ROUNDING = 1e-9  # how far from a whole multiple still counts as one
AT_ONCE = 1e-11  # of the job: instants no further apart are one


def whole_multiples(value_h: float, of_h: float) -> int:
    """How many times `of_h` goes into `value_h`."""
    return floor(value_h / of_h * (1.0 + ROUNDING))


@dataclass(eq=False)
class Save:
    """A save under way, in the stall or in the background."""

    capture: SaveSchedule
    number: int  # how many of the capture began before
    content_h: float
    ends_at_h: float  # the stall, or the background
    due: list[tuple[float, bool]]  # what it stands for: 2.7, `Replication.due`
    on: set[int] = field(default_factory=set)  # of a flush: slots that have what it copies


@dataclass(eq=False)
class Recovery:
    """What is done about one failure (section 6, rules 2 and 3), and how far it has come."""

    number: int  # of the rule
    rule: Rule
    slots: set[int]
    tried_h: float  # loads of corrupt contents
    source: Tier | None = None
    content_h: float = 0.0
    shards: set[int] | None = None  # that it has to load; None: it takes none back
    hours: list[float] = field(default_factory=list)  # of its stages; infinite: over the link
    ends_at_h: float = 0.0  # its stage, but for a wait or a load over the link
    at: int = -1  # the stage that it is in
    n_fail: int = 0  # attempts to restart that fail, in all ...
    n_failed: int = 0  # ... and so far
    operator_h: float = 0.0
    left_bytes: dict[int, float] = field(default_factory=dict)  # of its shards over the link

    @property
    def link(self) -> Storage | None:
        """Over which it loads."""
        load = None if self.source is None else self.source.load
        return load if isinstance(load, Storage) else None

    @property
    def stage(self) -> Stage:
        return self.rule.stages[self.at]

    @property
    def waits(self) -> bool:
        """For nodes."""
        return self.at >= 0 and self.stage.kind is StageKind.WAIT and self.stage.grows_h is None

    @property
    def grows(self) -> bool:
        return self.at >= 0 and self.stage.grows_h is not None

    @property
    def is_on_link(self) -> bool:
        return self.at >= 0 and self.stage.kind is StageKind.LOAD and self.link is not None

    @property
    def has_a_load(self) -> bool:
        """Before it or under way. Reading: a load that takes no time is none."""
        stages = zip(self.rule.stages, self.hours, strict=True)
        loads = [stage.kind is StageKind.LOAD and hours > 0.0 for stage, hours in stages]
        comes_again = self.n_failed < self.n_fail or self.retries
        return any(loads if comes_again else loads[max(self.at, 0) :])

    @property
    def stands(self) -> bool:
        return self.at >= 0 and self.stage.kind is StageKind.PLANNED

    @property
    def retries(self) -> bool:
        return self.at >= 0 and self.stage.kind is StageKind.RETRY


class Replication:
    """The state of one replication, and what changes it."""

    def __init__(
        self, job: SimulatedJob, failures: Sequence[ScopedFailure], draws: ReplicationDraws
    ) -> None:
        self.job, self.policy, self.failures, self.draws = job, job.policy, failures, draws
        self.now_h = self.progress_h = self.frontier_h = 0.0
        self.age_h = 0.0  # on the failures' clock
        self.replay_speed = 1.0
        self.hours = dict.fromkeys(job.policy.parts, 0.0)
        self.stale: list[StaleShard] = []
        self.finished: bool | None = None
        self.copies = Copies(job)
        self.n_begun, self.n_saves = dict.fromkeys(self.copies.tiers, 0), 0
        self.captures = [capture for capture in job.policy.captures if capture.after is None]
        self.next_due_h = {capture.tier: self.on_grid_h(capture) for capture in self.captures}
        # 2.7: the progress at which each became due, and whether it completes a content
        self.due: dict[str, list[tuple[float, bool]]] = {tier: [] for tier in self.next_due_h}
        self.stalling: Save | None = None
        self.background: list[Save] = []
        self.n_seen = self.n_met = self.n_failures = 0  # with notices; with missed ones; neither
        self.frontier_at_failure_h, self.n_without_work = -1.0, 0
        self.errors_h: list[float] = []  # progress at those in the state, 7.1
        self.n_errors, self.noticed_at_h = 0, inf
        self.recoveries: list[Recovery] = []
        stops = [scope for scope in job.scopes if scope.every_h < inf]  # 8
        self.stop = stops[0] if stops else None
        self.stops_at_h, self.n_stops = (self.stop.every_h if self.stop else inf), 0
        self.saves_for_stop = False
        self.n_pooled = job.cluster.n_spares  # None: unlimited
        self.repaired_at_h: list[float] = []
        self.vacant: set[int] = set()  # slots that lost their node and have no other
        self.queue: list[int] = []  # those of them that asked, in that order

    # ----------------------------------------------------------------- the course of events

    def run(self) -> ReplicationOutcome:
        limit_h, horizon_h = STOPPED_BEYOND * self.job.useful_h, self.job.horizon_h
        ends_there = horizon_h is not None and horizon_h <= limit_h
        limit_h = min(limit_h, inf if horizon_h is None else horizon_h)
        fails_now = False
        while True:
            self.end_what_ends()
            if self.is_now(self.stops_at_h):
                self.come_to_stop()
                continue
            if self.is_now(self.noticed_at_h):
                self.notice()
                continue
            if self.finished is None and self.is_now(limit_h):
                self.finished = ends_there and self.progress_h > 0.0  # 4
            if self.finished is None:
                self.let_the_job_go_on()
            if self.finished is not None:
                break
            if self.takes_in():
                continue
            if fails_now:  # docs/model.md, 6: what ends ends before a failure of that instant
                fails_now = False
                if self.clock_runs():
                    self.fail(self.failures[self.n_seen])
                    continue
            works_to_h, work_ends_at_h = self.stretch_of_work()
            fails_at_h = self.next_failure_at_h()
            until_h = min(
                limit_h, work_ends_at_h, fails_at_h, self.noticed_at_h, self.stops_at_h,
                *self.loads_end_at_h(),
                *(at_h for at_h, _ in self.under_way()),
            )  # fmt: skip
            fails_now = fails_at_h <= until_h + self.at_once_h
            is_there = work_ends_at_h <= until_h + self.at_once_h
            self.pass_hours(until_h, works_to_h if is_there else None)
        useful_h = self.progress_h if self.finished else self.frontier_h
        self.book("lost", self.frontier_h - useful_h)  # 1: for good
        return ReplicationOutcome(
            self.finished, self.now_h, useful_h, tuple(self.hours.values()), self.n_failures,
            self.n_saves, tuple(self.stale),
        )  # fmt: skip

    @property
    def at_once_h(self) -> float:
        return AT_ONCE * self.job.useful_h

    def is_now(self, at_h: float) -> bool:
        """Whether an instant has come (docs/model.md, 6)."""
        return at_h <= self.now_h + self.at_once_h

    def under_way(self) -> list[tuple[float, Callable[[], None]]]:
        """When each save, stage and repair ends, and what then happens; in the model's order."""
        stalls = [] if self.stalling is None else [self.stalling]
        return [
            *((save.ends_at_h, partial(self.end_background, save)) for save in self.background),
            *((save.ends_at_h, partial(self.end_stall, save)) for save in stalls),
            *((at_h, partial(self.end_repair, at_h)) for at_h in self.repaired_at_h),
            *((self.stage_ends_at_h(recovery), partial(self.enter_next_stage, recovery))
              for recovery in self.recoveries),
        ]  # fmt: skip

    def end_what_ends(self) -> None:
        """Handle all that ends now, and what ends with it: commits first."""
        while ends := [end for at_h, end in self.under_way() if self.is_now(at_h)]:
            ends[0]()

    def end_repair(self, at_h: float) -> None:
        self.repaired_at_h.remove(at_h)
        self.n_pooled += 1
        self.give_nodes()

    def stage_ends_at_h(self, recovery: Recovery) -> float:
        """A wait ends with the last node, a load over the link with the last byte."""
        if recovery.waits:
            ended = recovery.slots.isdisjoint(self.vacant)
        elif recovery.is_on_link:
            ended = not recovery.left_bytes
        else:
            return recovery.ends_at_h
        return self.now_h if ended else inf

    # ----------------------------------------------------------------- 1. speed and accounts

    def blocking_stages(self) -> list[StageKind]:
        return [recovery.stage.kind for recovery in self.recoveries if recovery.stage.blocks]

    def speed(self) -> float:
        rules = [recovery.rule for recovery in self.recoveries if not recovery.stage.blocks]
        meanwhile = min((rule.speed_meanwhile for rule in rules), default=1.0)
        table = self.policy.elastic.speed if self.policy.elastic else (1.0,)
        n_missing = self.n_units_missing()
        return meanwhile * (table[n_missing] if n_missing < len(table) else 0.0)

    def n_units_missing(self) -> int:
        elastic = self.policy.elastic
        if elastic is None:
            return 0
        recovering = {slot for recovery in self.recoveries for slot in recovery.slots}
        units = enumerate(self.copies.role_slots[elastic.role])
        return len({n // elastic.unit_nodes for n, slot in units if slot in recovering})

    def is_held_up(self) -> bool:
        """2.3 and 2.5. Asked after `let_the_job_go_on`: what could be saved is being saved."""
        waits_for_a_commit = any(self.due.values()) or self.progress_h >= self.job.useful_h
        return self.stalling is not None or self.saves_for_stop or bool(waits_for_a_commit)

    def works(self) -> bool:
        return not self.blocking_stages() and not self.is_held_up() and self.speed() > 0.0

    def progress_per_hour(self) -> float:
        again = self.replay_speed if self.progress_h < self.frontier_h else 1.0
        return self.speed() * again / (1.0 + self.policy.tax.compute)

    def stretch_of_work(self) -> tuple[float, float]:
        """The progress to which the job works on undisturbed, and when it gets there."""
        if not self.works():
            return inf, inf
        to_h = min(self.job.useful_h, *self.next_due_h.values(), inf)
        if self.progress_h < self.frontier_h:
            to_h = min(to_h, self.frontier_h)
        elif self.job.clock is Clock.PROGRESS and self.n_seen < len(self.failures):
            to_h = min(to_h, max(self.failures[self.n_seen].at_h, self.progress_h))
        return to_h, self.now_h + (to_h - self.progress_h) / self.progress_per_hour()

    def next_failure_at_h(self) -> float:
        if self.n_seen == len(self.failures):
            return inf
        at_h = self.failures[self.n_seen].at_h
        if self.job.clock is Clock.WALL:
            return max(self.now_h, at_h)
        if self.job.clock is Clock.UPTIME:
            return inf if self.blocking_stages() else self.now_h + max(0.0, at_h - self.age_h)
        # The clock of progress shows the frontier.
        works_to_h, ends_at_h = self.stretch_of_work()
        strikes = self.progress_h >= self.frontier_h and works_to_h >= at_h
        return ends_at_h if strikes else inf

    def clock_runs(self) -> bool:
        """1: whether failures age; a save or a stage that begins may have stopped them."""
        if self.job.clock is Clock.PROGRESS:
            return self.works() and self.progress_h >= self.frontier_h
        return self.job.clock is Clock.WALL or not self.blocking_stages()

    def pass_hours(self, until_h: float, worked_to_h: float | None) -> None:
        """Book the hours from now on; `worked_to_h`: the stretch of work ends with them."""
        hours, blocking = until_h - self.now_h, self.blocking_stages()
        if blocking:  # 6.7
            self.book(min(blocking, key=records.STAGE_ORDER.index).value, hours)
        elif self.is_held_up():
            self.book("save", hours)
        elif not self.works():
            self.book("wait", hours)
        else:
            self.work(hours, worked_to_h)
        if not blocking:
            self.age_h += hours
        self.move_bytes(until_h)
        self.now_h = until_h

    def work(self, hours: float, worked_to_h: float | None) -> None:
        speed, tax = self.speed(), self.policy.tax.compute
        again = self.progress_h < self.frontier_h
        if again:
            self.book("lost", speed * hours / (1.0 + tax))
        self.book("tax", tax * speed * hours / (1.0 + tax))
        self.book("degraded", (1.0 - speed) * hours)
        if worked_to_h is None:
            worked_to_h = self.progress_h + hours * self.progress_per_hour()
            worked_to_h = min(worked_to_h, self.frontier_h) if again else worked_to_h
        self.progress_h = worked_to_h
        self.frontier_h = max(self.frontier_h, self.progress_h)

    def book(self, part: str, hours: float) -> None:
        if hours > 0.0:
            self.hours[part] += hours

    # ----------------------------------------------------------------- 2. saves

    def on_grid_h(self, capture: SaveSchedule) -> float:
        """2.1: the first whole multiple beyond the progress, up to T; never on notice alone."""
        useful_h, every_h = self.job.useful_h, capture.every_h
        if every_h is None or every_h >= useful_h * (1.0 - ROUNDING):
            return inf
        due_h = (whole_multiples(self.progress_h, every_h) + 1) * every_h
        if due_h > useful_h * (1.0 + ROUNDING):
            return inf
        return useful_h if due_h > useful_h * (1.0 - ROUNDING) else due_h

    def has_reached(self, due_h: float) -> bool:
        """2.1: but for rounding, by which the grids of two tiers differ."""
        if due_h >= self.job.useful_h:
            return self.progress_h >= due_h
        return self.progress_h * (1.0 + ROUNDING) >= due_h

    def captures_due(self) -> list[SaveSchedule]:
        """2.1: in the policy's order, with those that the progress has just reached."""
        for capture in self.captures:
            due_h = self.next_due_h[capture.tier]
            if self.has_reached(due_h):
                completes = round(due_h / capture.every_h) % capture.parts == 0  # 2.2
                self.due[capture.tier].append((due_h, completes))
                self.next_due_h[capture.tier] = self.on_grid_h(capture)
        return [capture for capture in self.captures if self.due[capture.tier]]

    def let_the_job_go_on(self) -> None:
        """Begin the saves that are due and end the job, where nothing is in the way."""
        while not (self.blocking_stages() or self.stalling or self.saves_for_stop):
            if not (due := self.captures_due()):
                last_h = [save.content_h for save in self.background if save.capture.after is None]
                if self.progress_h >= self.job.useful_h > max(last_h, default=0.0):
                    self.finished = True  # 2.5
                return
            capture, has_room = due[0], self.has_room(due[0])
            if not has_room and capture.when_busy is records.WhenBusy.WAIT:
                return  # 2.3. Reading: in its turn
            stands_for, self.due[capture.tier] = self.due[capture.tier], []
            if has_room:  # 2.2: it holds the progress at its start
                save = self.stalling = self.new_save(capture, self.progress_h, stands_for)
                name = f"stall/{capture.tier}"
                save.ends_at_h = self.now_h + self.cost_h(capture.stall, name, save.number)
            self.end_what_ends()

    def has_room(self, capture: SaveSchedule) -> bool:
        return sum(save.capture is capture for save in self.background) < capture.in_flight

    def new_save(
        self, capture: SaveSchedule, content_h: float, due: list[tuple[float, bool]]
    ) -> Save:
        self.n_begun[capture.tier] += 1
        return Save(capture, self.n_begun[capture.tier] - 1, content_h, inf, due)

    def end_stall(self, save: Save) -> None:
        self.stalling = None
        self.go_to_background(save)

    def go_to_background(self, save: Save) -> None:
        name = f"background/{save.capture.tier}"
        save.ends_at_h = self.now_h + self.cost_h(save.capture.background, name, save.number)
        if save.ends_at_h > self.now_h:
            self.background.append(save)
        else:
            self.commit(save)

    def end_background(self, save: Save) -> None:
        self.background.remove(save)
        self.commit(save)

    def commit(self, save: Save) -> None:
        source, tier = save.capture, self.copies.tiers[save.capture.tier]
        if tier.name == records.CHECK and self.errors_h:  # 7.3
            self.noticed_at_h = self.now_h
        if not any(completes for _, completes in save.due):
            return
        u = self.draws.uniform(tier.name, save.number)
        if u < source.p_fail:  # 2.6
            return
        corrupt = u < source.p_fail + (1.0 - source.p_fail) * tier.p_corrupt
        contents = self.copies.kept[tier.name]
        contents.append(Content(save.content_h, corrupt, self.copies.live_copies(tier)))  # 5.2
        del contents[: -tier.generations]  # 5.4. Reading: the newest in order of commit
        self.n_saves += 1
        for capture in self.policy.captures:  # 2.4
            if capture.after == tier.name:
                number = round(save.content_h / source.every_h)
                if number % capture.every_nth == 0 and self.has_room(capture):
                    flush = self.new_save(capture, save.content_h, [(save.content_h, True)])
                    flush.on = self.copies.live_copies(tier)
                    self.go_to_background(flush)

    def cost_h(self, cost: Duration | None, name: str, n: int) -> float:
        if cost is None:
            return 0.0
        return cost.mean_h if isinstance(cost, Constant) else self.draws.hours(name, n)

    # ----------------------------------------------------------------- 6. failures

    def fail(self, failure: ScopedFailure) -> None:
        self.n_seen += 1
        if self.stands() and failure.scope != NOTICE:  # 8
            return
        if failure.scope == NOTICE:
            for capture in self.captures:
                if capture.on_notice:
                    self.due[capture.tier].append((self.progress_h, True))
        elif self.job.scopes[failure.scope].silent:  # 7.1
            latency = self.job.scopes[failure.scope].latency
            hours = inf if latency is None else self.cost_h(latency, "latency", self.n_errors)
            self.n_errors += 1
            self.errors_h.append(self.progress_h)
            self.noticed_at_h = min(self.noticed_at_h, self.now_h + hours)
        else:
            self.meet(failure)

    def notice(self) -> None:
        """7.4"""
        if self.stands():  # 8
            self.noticed_at_h = next(one.ends_at_h for one in self.recoveries if one.stands)
            return
        first_h = min(self.errors_h)  # 7.2: contents beyond it are bad
        self.copies.drop_beyond(first_h)
        self.errors_h, self.noticed_at_h = [], inf
        slots = tuple(slot for some in self.copies.role_slots.values() for slot in some)
        scope = next(n for n, content in enumerate(self.job.scopes) if content.silent)
        self.meet(ScopedFailure(self.now_h, slots, scope, ()))

    def meet(self, failure: ScopedFailure) -> None:
        self.n_met += 1
        if self.n_met > HARDLY_AFTER and self.now_h > MAX_SLOWDOWN * self.frontier_h:
            self.finished = False
            return
        struck = {slot for slot in failure.slots if slot not in self.queue}
        if not struck:  # missed
            return
        if self.frontier_h > self.frontier_at_failure_h + NO_WORK_H:
            self.frontier_at_failure_h = self.frontier_h
            self.n_without_work = 0
        self.n_without_work += 1
        if self.n_without_work > MAX_FAILURES_WITHOUT_PROGRESS:
            self.finished = False
            return
        scope = self.job.scopes[failure.scope]
        if scope.needs_node and self.n_pooled is not None:  # 3: a slot without a node loses none
            for slot, repair_h in zip(failure.slots, failure.repair_h, strict=True):
                if slot in struck - self.vacant:
                    self.vacant.add(slot)
                    self.repaired_at_h.append(self.now_h + repair_h)
        self.take(scope, struck, self.n_failures)
        self.n_failures += 1

    def take(self, scope: Scope, struck: set[int], nth: int) -> None:
        progress_h = self.progress_h
        wiped = self.copies.wipe(scope, struck)  # rule 1
        for flush in (save for save in self.background if save.capture.after in wiped):
            flush.on -= struck
        recovery = self.choose(scope, struck, nth)  # rules 2 and 3
        self.revert(recovery, struck)  # rule 4
        self.abandon_saves(recovery.rule, scope)  # rule 5
        recovery.hours = self.plan(recovery, scope, progress_h, nth)
        self.recover(recovery, struck)  # rule 6

    # ----------------------------------------------------------------- 8. planned stops

    def stands(self) -> bool:
        return any(recovery.stands for recovery in self.recoveries)

    def come_to_stop(self) -> None:
        every_h = self.stop.every_h
        next_h = (whole_multiples(self.now_h, every_h) + 1) * every_h
        if self.stands() or self.progress_h >= self.job.useful_h:
            self.stops_at_h = next_h
            return
        first = next(rule for rule in self.policy.rules if records.STOP in rule.scopes)
        captures = [one for one in self.policy.captures if one.tier in first.sources]
        capture = next(iter(captures), None)
        if not self.stop.saves or (self.blocking_stages() and not self.saves_for_stop):
            capture = None
        if capture is not None and not self.saves_for_stop:
            self.saves_for_stop = True
            self.stops_at_h = self.now_h + self.whole_save_h(capture)
            if self.stops_at_h > self.now_h:
                return
        if capture is not None:
            tier = self.copies.tiers[capture.tier]
            kept = self.copies.kept[tier.name]
            kept.append(Content(self.progress_h, False, self.copies.live_copies(tier)))
            del kept[: -tier.generations]
            self.n_saves += 1
        self.saves_for_stop, self.stops_at_h = False, next_h
        struck = {slot for some in self.copies.role_slots.values() for slot in some}
        self.take(self.stop, struck - {*self.queue}, self.n_stops)
        self.n_stops += 1
        if capture is not None:  # what was due is saved
            for one in self.captures:
                self.due[one.tier], self.next_due_h[one.tier] = [], self.on_grid_h(one)

    def whole_save_h(self, capture: SaveSchedule) -> float:
        hours = 0.0
        while capture is not None:
            tier, n = capture.tier, self.n_begun[capture.tier]
            self.n_begun[tier] += 1
            stall_h = self.cost_h(capture.stall, f"stall/{tier}", n)
            background_h = self.cost_h(capture.background, f"background/{tier}", n)
            hours += capture.parts * (stall_h + background_h)
            capture = self.policy.followed_by(capture)
        return hours

    # ----------------------------------------------------------------- 6. what a failure takes

    def choose(self, scope: Scope, struck: set[int], nth: int) -> Recovery:
        """6.2 and 6.3: the first rule that holds, and what it goes back to."""
        tried_h = 0.0
        for n, rule in enumerate(self.policy.rules):
            of_roles = {slot for role in rule.roles for slot in self.copies.role_slots[role]}
            is_current = rule.needs or (not rule.sources and rule.to is not To.START)
            if (
                (rule.scopes and scope.name not in rule.scopes)
                or (rule.roles and not struck <= of_roles)
                or (scope.silent and is_current)  # 7.4
            ):
                continue
            if all(self.copies.live_survives(name, rule, struck) for name in rule.needs):
                if rule.reverts is Reverts.NOBODY or rule.to is not To.NEWEST:
                    return Recovery(n, rule, {*struck}, tried_h)
                for content, tier in self.copies.surviving(rule, struck):
                    if not content.corrupt:
                        shards = self.copies.needed(rule, tier, struck)
                        back_h = content.content_h
                        return Recovery(n, rule, {*struck}, tried_h, tier, back_h, shards)
                    tried_h += self.cost_h(tier.load, f"load/{tier.name}", nth)
        *others, last = self.policy.rules
        last = replace(last, reverts=Reverts.ALL, to=To.START)
        return Recovery(len(others), last, {*struck}, tried_h)

    def revert(self, recovery: Recovery, struck: set[int]) -> None:
        """6.4"""
        rule = recovery.rule
        if rule.reverts is Reverts.ALL:
            self.roll_back(recovery)
            self.replay_speed = rule.replay_speed
        elif recovery.shards is not None:
            for slot in sorted(recovery.shards):
                # Reading: of `shards` those that are not struck are stale then
                if not (rule.replays and slot in struck):
                    self.stale.append(StaleShard(self.progress_h, slot, recovery.content_h))

    def roll_back(self, recovery: Recovery) -> None:
        step_h = self.policy.step_h
        begun_h = whole_multiples(self.progress_h, step_h) * step_h if step_h else 0.0
        self.progress_h = {
            To.NEWEST: recovery.content_h,
            To.STEP_BEGUN: min(self.progress_h, begun_h),
            To.STEP_BEFORE: max(0.0, self.progress_h - step_h),
            To.START: 0.0,
        }[recovery.rule.to]
        self.errors_h = [error_h for error_h in self.errors_h if error_h < self.progress_h]  # 7.2
        if not self.errors_h:
            self.noticed_at_h = inf
        self.copies.drop_beyond(self.progress_h * (1.0 + ROUNDING))  # 5.5
        for capture in self.captures:  # 2.7
            self.due[capture.tier] = self.not_undone(self.due[capture.tier])
            if not self.has_reached(self.next_due_h[capture.tier]):
                self.next_due_h[capture.tier] = self.on_grid_h(capture)

    def not_undone(self, due: list[tuple[float, bool]]) -> list[tuple[float, bool]]:
        return [(due_h, completes) for due_h, completes in due if self.has_reached(due_h)]

    def abandon_saves(self, rule: Rule, scope: Scope) -> None:
        """6.5 and 2.7"""
        if rule.is_transparent:
            return
        self.saves_for_stop = False
        under_way = [*self.background, *([] if self.stalling is None else [self.stalling])]
        self.stalling = None
        self.background = [
            save for save in self.background if self.outlives(save) and not scope.silent
        ]  # 7.4
        for save in under_way:
            if save not in self.background and save.capture.after is None:
                self.due[save.capture.tier] += self.not_undone(save.due)

    def outlives(self, save: Save) -> bool:
        """6.5: a flush goes on while what it copies is there, on all shards."""
        if save.capture.after is None or save.content_h > self.progress_h:
            return False
        tier = self.copies.tiers[save.capture.after]
        return self.copies.survives(tier, save.on, self.copies.role_slots[tier.role])

    def recover(self, recovery: Recovery, struck: set[int]) -> None:
        """6.6"""
        takes_over = recovery.rule.reverts is Reverts.ALL
        if recovery.shards is not None and not takes_over:
            self.load_no_more(recovery.shards)
        for old in list(self.recoveries):
            if takes_over and old.stage.blocks:
                recovery.slots |= old.slots
                self.recoveries.remove(old)
            elif old.slots & struck:  # Reading: under `all` too, where it does not block
                old.slots -= struck
                goes_on = old.rule.reverts is Reverts.ALL and old.has_a_load
                if not old.slots and not goes_on:
                    self.recoveries.remove(old)
        for old in list(self.recoveries):
            if old.grows:
                self.end_recovery(old)
        recovery.ends_at_h = self.now_h
        self.recoveries.append(recovery)
        self.end_what_ends()

    # ----------------------------------------------------------------- 3. stages

    def plan(self, recovery: Recovery, scope: Scope, progress_h: float, nth: int) -> list[float]:
        """Hours of each stage, as far as they are known before."""
        rule, source, stage_hours = recovery.rule, recovery.source, []
        nobody_goes_back = recovery.shards == set()
        for n, stage in enumerate(rule.stages):
            hours = self.cost_h(stage.cost, f"stage/{recovery.number}/{n}", nth)
            if stage.kind is StageKind.DETECT and stage.cost is None:
                hours = self.cost_h(scope.detect, f"detect/{scope.name}", nth)
            elif stage.kind is StageKind.LOAD:
                hours += recovery.tried_h
                if nobody_goes_back:
                    hours = 0.0
                elif recovery.link is not None:
                    hours = inf if recovery.link.transfer_h(1) > 0.0 else 0.0
                elif source is not None:
                    hours += self.cost_h(source.load, f"load/{source.name}", nth)
            elif stage.kind is StageKind.RETRY:  # 3
                n_fail = self.draws.hours(f"attempts/{recovery.number}", nth)
                recovery.n_fail = int(n_fail)
                name = f"operator/{recovery.number}/{n}"
                recovery.operator_h = self.cost_h(stage.operator, name, nth)
            elif stage.kind is StageKind.REPLAY and stage.cost is None and not nobody_goes_back:
                hours = (progress_h - recovery.content_h) / rule.replay_speed
            stage_hours.append(hours)
        return stage_hours

    def enter_next_stage(self, recovery: Recovery) -> None:
        """Go on to the next stage that takes time, or end."""
        again = recovery.retries  # 3: after a retry the restart begins anew
        while True:
            if recovery.at >= 0 and recovery.stage.copies_again:
                self.copies.left |= recovery.slots
            recovery.at += 1
            if again:
                kinds = [stage.kind for stage in recovery.rule.stages]
                recovery.at, again = kinds.index(StageKind.RESCHEDULE), False
            if recovery.at == len(recovery.rule.stages):
                self.end_recovery(recovery)
                return
            stage, hours = recovery.stage, recovery.hours[recovery.at]
            if recovery.waits:
                self.queue += sorted(recovery.slots & self.vacant - {*self.queue})
                self.give_nodes()
                hours = 0.0 if recovery.slots.isdisjoint(self.vacant) else inf
            elif recovery.retries:
                if recovery.n_failed == recovery.n_fail:
                    continue
                recovery.n_failed += 1
                gives_up = stage.gives_up_after
                if gives_up and recovery.n_failed % gives_up == 0:
                    hours = recovery.operator_h
                again = hours == 0.0
            elif stage.grows_h is not None:
                hours = self.grows_at_h(stage.grows_h) - self.now_h
            elif stage.kind is StageKind.LOAD and recovery.shards == set():
                continue  # others load all that it takes back
            elif recovery.is_on_link and hours > 0.0:
                first, link = self.job.cluster.shard_slots.start, recovery.link
                sizes = link.bytes_of_shards
                recovery.left_bytes = {
                    shard: sizes[shard - first] if sizes else link.shard_bytes
                    for shard in recovery.shards
                }
            elif stage.kind is StageKind.REGROUP and stage.cost is None:
                known_h = self.policy.elastic.regroup_h
                hours = known_h[min(self.n_units_missing(), len(known_h) - 1)]
            if hours > 0.0:
                recovery.ends_at_h = self.now_h + hours
                return

    def end_recovery(self, recovery: Recovery) -> None:
        """Its slots are up: their memory counts from now on."""
        self.recoveries.remove(recovery)
        for slot in recovery.slots:
            self.copies.without.pop(slot, None)
            self.copies.left.discard(slot)

    def grows_at_h(self, every_h: float) -> float:
        """3: when the job takes in the slots that wait for it to grow, if nothing else makes it."""
        if every_h in (0.0, inf):
            return self.now_h + every_h
        n = whole_multiples(self.now_h, every_h)
        is_now = n * every_h >= self.now_h * (1.0 - ROUNDING)
        return self.now_h if is_now else (n + 1) * every_h

    def takes_in(self) -> bool:
        """3: as it would stand still at speed 0 without the slots that wait for it to grow."""
        growing = [recovery for recovery in self.recoveries if recovery.grows]
        stands_still = not self.blocking_stages() and not self.is_held_up() and self.speed() == 0.0
        if self.finished is not None or not stands_still:
            return False
        for recovery in growing:
            self.enter_next_stage(recovery)
        return bool(growing)

    def give_nodes(self) -> None:
        """3: in the order in which slots asked; of a wait for each the others wait on their own."""
        while self.queue and self.n_pooled:
            self.n_pooled -= 1
            self.vacant.remove(self.queue.pop(0))
        for recovery in list(self.recoveries):
            waiting = recovery.slots & self.vacant
            if recovery.waits and recovery.stage.each and waiting not in (set(), recovery.slots):
                recovery.slots -= waiting
                self.recoveries.append(replace(recovery, slots=waiting, ends_at_h=inf))

    # ----------------------------------------------------------------- 3. loads over the link

    def load_no_more(self, shards: set[int]) -> None:
        """3: these are taken back again. What all have gone back to is loaded as a whole."""
        for recovery in self.recoveries:
            if recovery.shards is not None and recovery.rule.reverts is not Reverts.ALL:
                recovery.shards -= shards
                left = recovery.left_bytes.items()
                recovery.left_bytes = {shard: n for shard, n in left if shard not in shards}

    @property
    def loading(self) -> list[Recovery]:
        return [recovery for recovery in self.recoveries if recovery.is_on_link]

    def loads_end_at_h(self) -> list[float]:
        """When each shard is loaded, if no other begins or ends before."""
        per_h = self.bytes_per_hour()
        return [
            self.now_h + left / per_h
            for recovery in self.loading for left in recovery.left_bytes.values()
        ]  # fmt: skip

    def bytes_per_hour(self) -> float:
        """3: of each shard that goes over the one link, of whatever recovery."""
        if not self.loading:
            return 0.0
        n_shards = sum(len(recovery.left_bytes) for recovery in self.loading)
        link = self.loading[0].link
        return min(link.server_bandwidth_bytes_per_h, link.bandwidth_bytes_per_h / n_shards)

    def move_bytes(self, until_h: float) -> None:
        """3: what goes over the link from now on."""
        per_h = self.bytes_per_hour()
        for recovery in self.loading:
            for shard, left in list(recovery.left_bytes.items()):
                if self.now_h + left / per_h <= until_h + self.at_once_h:
                    del recovery.left_bytes[shard]
                else:
                    recovery.left_bytes[shard] = left - per_h * (until_h - self.now_h)
