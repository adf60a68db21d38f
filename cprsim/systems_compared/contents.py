"""The cheapest system with 1, 2, ... contents kept, against silent errors."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np

from cprsim.estimate import Estimate
from cprsim.experiments.assemble import Experiment
from cprsim.experiments.pipeline import simulate
from cprsim.records import CostBreakdown, Floats, RecoveryPolicy
from cprsim.recovery.classic import as_system
from cprsim.recovery.legal import MOST_GENERATIONS
from cprsim.recovery.policy import Medium, Policy
from cprsim.systems_compared.after import content_every_h
from cprsim.systems_compared.comparison import Contents

N_DRAWN = 1_000_000


def contents_kept(experiment: Experiment, recovery: RecoveryPolicy) -> tuple[Contents, ...]:
    """A policy with each number of contents outside, on the same failures; none if it has none."""
    policy = recovery.system or as_system(recovery, experiment.costs, experiment.cluster)
    outside = [tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE]
    saves = [capture for capture in policy.captures if capture.tier in outside]
    if not saves:
        return ()
    policies = tuple(_keeping(recovery, policy, n) for n in range(1, MOST_GENERATIONS + 1))
    costs = [one.costs for one in simulate(replace(experiment, policies=policies)).strategies]
    saved_every_h = min(
        content_every_h(policy, one, experiment.useful_h) + (one.stall.mean_h if one.stall else 0.0)
        for one in saves
    )
    bad = _noticed_h(experiment) / saved_every_h  # contents, of a strike at a uniform instant
    return tuple(
        Contents(
            n + 1,
            Estimate.of_mean(_overhead(one)),
            not one.finished.all() or any(_is_less(more, one) for more in costs[n + 1 :]),
            float(np.clip(bad - n, 0.0, 1.0).mean()),
        )
        for n, one in enumerate(costs)
    )


def _keeping(recovery: RecoveryPolicy, policy: Policy, n: int) -> RecoveryPolicy:
    tiers = tuple(
        replace(tier, generations=n) if tier.medium is Medium.REMOTE else tier
        for tier in policy.tiers
    )
    return replace(recovery, name=f"{n} kept", system=replace(policy, tiers=tiers))


def _overhead(costs: CostBreakdown) -> Floats:
    """Of each job; NaN where it does not finish."""
    return np.where(costs.finished, costs.wall_h / costs.useful_h - 1.0, nan)


def _is_less(one: CostBreakdown, other: CostBreakdown) -> bool:
    """Whether all jobs finish, and one surely costs less than the other."""
    return bool(one.finished.all()) and Estimate.of_mean(_overhead(one) - _overhead(other)).high < 0


def _noticed_h(experiment: Experiment) -> Floats:
    """Hours from an error until it is noticed, while the job works."""
    rng, check = np.random.default_rng(0), experiment.check
    latency = next(scope.latency for scope in experiment.scopes if scope.silent)
    hours = np.full(N_DRAWN, inf) if latency is None else latency.sample(rng, N_DRAWN)
    if check is None:
        return hours
    return np.minimum(hours, rng.uniform(0.0, check.every_h or 0.0, N_DRAWN))
