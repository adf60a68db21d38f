"""How many contents the storage keeps, so that one of them is older than a silent error."""

from __future__ import annotations

from bisect import bisect_left
from math import inf

import numpy as np

from cprsim.commands.select.pricing import PricedEntry
from cprsim.commands.select.search import WORTH_A_SAVE
from cprsim.commands.systems.after import content_every_h
from cprsim.job.policy import Medium, Policy
from cprsim.job.records import Floats
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.cluster import OwnCosts

MOST_CONTENTS = 48  # a day of saves each 30 min: the time of a simulation grows with their square
N_DRAWN = 1_000_000  # latencies of silent errors
LOST_OF_JOB = 0.5  # of the work, by an error that is in all contents: it may strike at any time


def with_contents(option: PricedEntry, n_kept: int, experiment: Experiment) -> PricedEntry:
    """The option with another number of contents on the remote storage."""
    costs = option.entry.costs or OwnCosts.model_construct(_fields_set=set())
    save = (costs.save or experiment.scenario.costs.save).model_copy(update={"kept": n_kept})
    own_costs = costs.model_copy(update={"save": save})
    return PricedEntry(option.entry.model_copy(update={"costs": own_costs}))


def enough_contents(policy: Policy, experiment: Experiment, overhead: float) -> int:
    """The fewest contents that cost hardly more than the most, at an overhead with these.

    To first order: of the silent errors of a job, those in all contents cost half of its work.
    """
    every_h, silent = content_times_h(policy, experiment.useful_h), experiment.scenario.silent
    if not every_h or silent is None:
        return 1
    noticed_h, n_errors = _noticed_h(experiment), experiment.useful_h / silent.mtbf_h

    def lost(n: int) -> float:
        return n_errors * LOST_OF_JOB * _none_clean(n, min(every_h), noticed_h)

    most, numbers = lost(MOST_CONTENTS) + (WORTH_A_SAVE - 1.0) * overhead, range(1, MOST_CONTENTS)
    return 1 + bisect_left(numbers, True, key=lambda n: lost(n) <= most)


def none_clean_of(experiment: Experiment, policy: Policy) -> float | None:
    """The share of errors that are in all contents as they are noticed; None: nothing is kept."""
    every_h = content_times_h(policy, experiment.useful_h)
    if not every_h:
        return None
    return _none_clean(n_contents(policy), min(every_h), _noticed_h(experiment))


def n_contents(policy: Policy) -> int:
    """How many contents are kept outside."""
    return max(tier.generations for tier in policy.tiers)


def content_times_h(policy: Policy, useful_h: float) -> list[float]:
    """Hours between two contents of each capture that saves outside."""
    outside = {tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE}
    every_h = (
        content_every_h(policy, capture, useful_h)
        + (capture.stall.mean_h if capture.stall else 0.0)
        for capture in policy.captures
        if capture.tier in outside
    )
    return [hours for hours in every_h if hours < inf]


def _none_clean(n_kept: int, every_h: float, noticed_h: Floats) -> float:
    """The share of errors that are in all of some contents, `every_h` apart, as one is noticed."""
    n_bad = noticed_h / every_h  # if the error struck at a save
    return float(np.clip(n_bad - (n_kept - 1), 0.0, 1.0).mean())


def _noticed_h(experiment: Experiment) -> Floats:
    """Hours from an error until it is noticed, while the job works."""
    rng, check = np.random.default_rng(0), experiment.check
    latency = next(scope.latency for scope in experiment.scopes if scope.silent)
    hours = np.full(N_DRAWN, inf) if latency is None else latency.sample(rng, N_DRAWN)
    if check is None:
        return hours
    return np.minimum(hours, rng.uniform(0.0, check.every_h or 0.0, N_DRAWN))
