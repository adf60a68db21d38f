"""The cheapest system with 1, 2, ... contents kept, against silent errors."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan, nan

import numpy as np

from cprsim.estimate import Estimate
from cprsim.experiments.assemble import Experiment
from cprsim.experiments.pipeline import simulate
from cprsim.records import Floats
from cprsim.recovery.legal import MOST_GENERATIONS
from cprsim.recovery.policy import Medium, Policy
from cprsim.systems_compared.after import content_every_h
from cprsim.systems_compared.comparison import Contents

N_DRAWN = 1_000_000


def contents_kept(experiment: Experiment, policy: Policy) -> tuple[Contents, ...]:
    """A policy with each number of contents outside, on the same failures; none if it has none."""
    outside = [tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE]
    saves = [one for one in policy.captures if one.tier in outside]
    if not saves:
        return ()
    stalls_h = [0.0 if one.stall is None else one.stall.mean_h for one in saves]
    every_h = [content_every_h(policy, one, experiment.useful_h) for one in saves]
    saved_every_h = min(map(sum, zip(every_h, stalls_h, strict=True)))
    policies = []
    for n in range(1, MOST_GENERATIONS + 1):
        tiers = tuple(
            replace(tier, generations=n) if tier.name in outside else tier for tier in policy.tiers
        )
        policies.append(replace(policy, name=f"{n} kept", tiers=tiers))
    outcome = simulate(replace(experiment, policies=tuple(policies)))
    overheads = [
        np.where(one.costs.finished, one.costs.wall_h / one.costs.useful_h - 1.0, nan)
        for one in outcome.strategies
    ]
    n_bad = _noticed_h(experiment) / saved_every_h  # contents, if the error struck at a save
    found = []
    for n, overhead in enumerate(overheads):
        mean = Estimate.of_mean(overhead)
        same = [one for one in overheads[n + 1 :] if len(one) == len(overhead)]
        more = isnan(mean.mean) or any(Estimate.of_mean(overhead - one).low > 0 for one in same)
        found.append(Contents(n + 1, mean, more, float(np.clip(n_bad - n, 0.0, 1.0).mean())))
    return tuple(found)


def _noticed_h(experiment: Experiment) -> Floats:
    """Hours from an error until it is noticed, while the job works."""
    rng, check = np.random.default_rng(0), experiment.check
    latency = next(scope.latency for scope in experiment.scopes if scope.silent)
    hours = np.full(N_DRAWN, inf) if latency is None else latency.sample(rng, N_DRAWN)
    if check is None:
        return hours
    return np.minimum(hours, rng.uniform(0.0, check.every_h or 0.0, N_DRAWN))
