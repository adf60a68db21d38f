"""The cheapest system with 1, 2, ... contents kept, against silent errors."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

import numpy as np

from cprsim.experiments.assemble import Experiment
from cprsim.experiments.pipeline import simulate
from cprsim.records import Floats
from cprsim.recovery.legal import MOST_GENERATIONS
from cprsim.recovery.policy import Medium, Policy
from cprsim.results.metrics import spreads, summarise_rows
from cprsim.results.rows import replication_rows
from cprsim.systems_compared.after import content_every_h
from cprsim.systems_compared.comparison import OVERHEAD, Contents, more_than

N_DRAWN = 1_000_000


def contents_kept(experiment: Experiment, policy: Policy) -> tuple[Contents, ...]:
    """A policy with each number of contents outside, on the same failures; none if it has none."""
    outside = [tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE]
    every_h = [
        content_every_h(policy, capture, experiment.useful_h)
        + (capture.stall.mean_h if capture.stall else 0.0)
        for capture in policy.captures
        if capture.tier in outside
    ]
    if not every_h:
        return ()
    policies = {}
    for n in range(1, MOST_GENERATIONS + 1):
        tiers = tuple(
            replace(tier, generations=n) if tier.name in outside else tier for tier in policy.tiers
        )
        policies[n] = replace(policy, name=f"{n} kept", tiers=tiers)
    rows = replication_rows(simulate(replace(experiment, policies=tuple(policies.values()))))
    n_nodes = experiment.cluster.n_nodes
    summary = spreads(summarise_rows(rows, n_nodes))
    n_bad = _noticed_h(experiment) / min(every_h)  # contents, if the error struck at a save
    contents = []
    for n, kept in policies.items():
        overhead, more = summary[kept.name][OVERHEAD], more_than(kept.name, rows, n_nodes)
        costs_more = isnan(overhead.mean) or any(
            more[policies[m].name].high < 0 for m in policies if m > n and policies[m].name in more
        )
        none_clean = float(np.clip(n_bad - (n - 1), 0.0, 1.0).mean())
        contents.append(Contents(n, overhead, costs_more, none_clean))
    return tuple(contents)


def _noticed_h(experiment: Experiment) -> Floats:
    """Hours from an error until it is noticed, while the job works."""
    rng, check = np.random.default_rng(0), experiment.check
    latency = next(scope.latency for scope in experiment.scopes if scope.silent)
    hours = np.full(N_DRAWN, inf) if latency is None else latency.sample(rng, N_DRAWN)
    if check is None:
        return hours
    return np.minimum(hours, rng.uniform(0.0, check.every_h or 0.0, N_DRAWN))
