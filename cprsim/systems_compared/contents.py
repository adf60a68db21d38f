"""How many contents to keep against silent errors: the cheapest system with 1, 2, ... of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from cprsim.estimate import Estimate
from cprsim.experiments.assemble import Experiment
from cprsim.experiments.pipeline import simulate
from cprsim.records import Floats
from cprsim.recovery.legal import MOST_GENERATIONS
from cprsim.recovery.policy import Medium, Policy, Scope
from cprsim.systems_compared.after import content_every_h

N_DRAWN = 1_000_000


@dataclass(frozen=True, slots=True)
class Contents:
    """A system that keeps so many contents outside."""

    n_kept: int
    overhead: Estimate
    costs_more: bool  # surely, than with some greater number; or not all jobs finish
    none_clean: float  # share of noticed errors that are in all contents; derived


def contents_kept(experiment: Experiment, policy: Policy) -> tuple[Contents, ...]:
    """A policy with each number of contents, on the same failures; none without silent errors."""
    outside = {tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE}
    saves = [capture for capture in policy.captures if capture.tier in outside]
    silent = next((scope for scope in experiment.scopes if scope.silent), None)
    if silent is None or not saves:
        return ()
    saved_every_h = min(
        content_every_h(policy, one, experiment.useful_h) + (one.stall.mean_h if one.stall else 0.0)
        for one in saves
    )
    per_content = _noticed_h(experiment, silent) / saved_every_h
    policies = tuple(
        replace(
            policy,
            name=f"{n} kept",
            tiers=tuple(
                replace(tier, generations=n) if tier.name in outside else tier
                for tier in policy.tiers
            ),
        )
        for n in range(1, MOST_GENERATIONS + 1)
    )
    ran = [one.costs for one in simulate(replace(experiment, policies=policies)).strategies]
    overheads = [one.wall_h / one.useful_h - 1.0 for one in ran]
    finish = [bool(one.finished.all()) for one in ran]
    return tuple(
        Contents(
            n + 1,
            Estimate.of_mean(overheads[n]) if finish[n] else Estimate(inf),
            not finish[n]
            or any(
                finish[m] and Estimate.of_mean(overheads[n] - overheads[m]).low > 0.0
                for m in range(n + 1, len(ran))
            ),
            float(np.clip(per_content - n, 0.0, 1.0).mean()),
        )
        for n in range(len(ran))
    )


def _noticed_h(experiment: Experiment, silent: Scope) -> Floats:
    """Hours from an error until it is noticed, while the job works."""
    rng, check = np.random.default_rng(0), experiment.check
    hours = np.full(N_DRAWN, inf) if silent.latency is None else silent.latency.sample(rng, N_DRAWN)
    if check is None:
        return hours
    return np.minimum(hours, rng.uniform(0.0, check.every_h or 0.0, N_DRAWN))
