"""Restart costs beyond one successful attempt: warm-up and failed attempts; planned stops."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from cprsim.job.distributions import Constant
from cprsim.job.policy import (
    STOP,
    Capture,
    Medium,
    Policy,
    Reverts,
    Rule,
    Stage,
    StageKind,
    To,
)
from cprsim.job.records import Costs, Duration


def with_restarts(policy: Policy, costs: Costs) -> Policy:
    """The policy with the warm-up and the failed attempts of the rules that start processes again.

    Those rules reschedule. A stage that a rule names itself stays as it is.
    """
    rules = tuple(replace(rule, stages=_restarting(rule.stages, costs)) for rule in policy.rules)
    return replace(policy, rules=rules)


def _restarting(stages: tuple[Stage, ...], costs: Costs) -> tuple[Stage, ...]:
    """Stages with a warm-up behind each reschedule and its load, and behind the first a retry."""
    kinds, attempts = [stage.kind for stage in stages], costs.restart
    begin = [n for n, kind in enumerate(kinds) if kind is StageKind.RESCHEDULE]
    made = [*stages[: begin[0] if begin else len(stages)]]
    for first, after in pairwise([*begin, len(stages)]):
        restart = stages[first:after]
        if costs.warmup is not None and StageKind.WARM_UP not in kinds:
            restart = _behind(restart, Stage(StageKind.WARM_UP, costs.warmup))
        is_tried = first == begin[0] and StageKind.RETRY not in kinds
        if attempts is not None and attempts.p_fail > 0.0 and is_tried:
            retry = Stage(
                StageKind.RETRY, attempts.retry, p_fail=attempts.p_fail,
                gives_up_after=attempts.gives_up_after, operator=attempts.operator,
            )  # fmt: skip
            restart = _behind(restart, retry)
        made += restart
    warmup = costs.warmup or Constant(0.0)
    return tuple(
        replace(stage, cost=stage.cost or warmup) if stage.kind is StageKind.WARM_UP else stage
        for stage in made
    )


RESTART_STAGES = {StageKind.RESCHEDULE, StageKind.LOAD, StageKind.WARM_UP}


def _behind(stages: tuple[Stage, ...], more: Stage) -> tuple[Stage, ...]:
    """Stages with one more behind the last of a restart; it blocks the job if that does."""
    last = max(n for n, stage in enumerate(stages) if stage.kind in RESTART_STAGES)
    more = replace(more, blocks=stages[last].blocks)
    return (*stages[: last + 1], more, *stages[last + 1 :])


def with_stops(policy: Policy, length: Duration, save: Capture) -> Policy:
    """Return the policy with planned stops: all slots stop for `length`, then restart.

    They roll back by the last rule, to remote contents or to the start; if no capture makes
    such contents, `save` is added.
    """
    last, stops = policy.rules[-1], (STOP,)
    restart = [
        replace(stage, blocks=True, each=False, copies_again=False)
        for stage in last.stages
        if stage.kind in RESTART_STAGES | {StageKind.WAIT, StageKind.RETRY, StageKind.REGROUP}
        and stage.grows_h is None
    ]
    sources = tuple(name for name in last.sources if policy.tier(name).medium is Medium.REMOTE)
    stop = Stage(StageKind.PLANNED, length)
    anew = (stop, *(stage for stage in restart if stage.kind is not StageKind.LOAD))
    rules = [Rule(Reverts.ALL, anew, To.START, scopes=stops), *policy.rules]
    if sources:
        rules.insert(0, Rule(Reverts.ALL, (stop, *restart), scopes=stops, sources=sources))
    if sources and policy.written.isdisjoint(sources):
        policy = replace(policy, captures=(*policy.captures, replace(save, tier=sources[0])))
    return replace(policy, rules=tuple(rules))
