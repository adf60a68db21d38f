"""How often all contents that the storage keeps are bad, as a silent error is noticed."""

from __future__ import annotations

from math import inf

import numpy as np

from cprsim.files.units import SIZE
from cprsim.job.policy import Medium, Policy
from cprsim.job.records import Floats
from cprsim.results.money import state_bytes_of
from cprsim.results.words import count, percent
from cprsim.scenario.assemble import Experiment
from cprsim.scenario.prices import GB, shown

N_DRAWN = 1_000_000  # latencies of silent errors


def kept_every_h(policy: Policy, useful_h: float) -> float:
    """Hours between two contents outside, of the capture that saves most often; infinite: none."""
    outside = {tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE}
    return min(
        (
            policy.content_every_h(saves, useful_h) + (saves.stall.mean_h if saves.stall else 0.0)
            for saves in policy.captures
            if saves.tier in outside
        ),
        default=inf,
    )


def none_clean(n_kept: int, every_h: float, hours: Floats) -> float:
    """The share of errors that are in all of some contents, `every_h` apart, as one is noticed."""
    n_bad = hours / every_h  # if the error struck at a save
    return float(np.clip(n_bad - (n_kept - 1), 0.0, 1.0).mean())


def noticed_h(experiment: Experiment) -> Floats:
    """Hours from an error until it is noticed, while the job works."""
    rng, check = np.random.default_rng(0), experiment.check
    latency = next(scope.latency for scope in experiment.scopes if scope.silent)
    hours = np.full(N_DRAWN, inf) if latency is None else latency.sample(rng, N_DRAWN)
    if check is None:
        return hours
    return np.minimum(hours, rng.uniform(0.0, check.every_h or 0.0, N_DRAWN))


def kept_sentence(experiment: Experiment, policy: Policy) -> str:
    """The contents that a policy keeps, and how often all are bad; empty if errors are loud."""
    every_h, scenario = kept_every_h(policy, experiment.useful_h), experiment.scenario
    if every_h == inf or scenario.silent is None:
        return ""
    n = max(tier.generations for tier in policy.tiers)
    bad = none_clean(n, every_h, noticed_h(experiment))
    takes, kept_bytes = count(n, "content"), n * state_bytes_of(scenario.cluster)
    if kept_bytes:
        takes += f" of {SIZE.format(float(f'{kept_bytes:.3g}'))} in all"
    if kept_bytes and scenario.prices is not None and scenario.prices.storage_month is not None:
        cents = 100 * kept_bytes / GB * float(scenario.prices.storage_month)
        takes += f", {shown(cents, scenario.prices.label)} a month"
    return (
        f"{policy.name} keeps {takes} ('costs.save.kept'): "
        f"{percent(bad)} of silent errors are noticed with no clean content left (derived)."
    )
