"""How many contents the storage keeps, so that one of them is older than a silent error."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from math import inf

import numpy as np

from cprsim.commands.select.deciding import Decided, choice
from cprsim.commands.select.pricing import CandidateEvaluator
from cprsim.commands.select.search import WORTH_A_SAVE
from cprsim.job.policy import MOST_GENERATIONS, Medium, Policy
from cprsim.job.records import Floats
from cprsim.results.words import count, percent
from cprsim.scenario.assemble import Experiment

N_DRAWN = 1_000_000  # latencies of silent errors
LOST_OF_JOB = 0.5  # of the work, by an error that is in all contents: it may strike at any time


def with_fewest_contents(
    evaluator: CandidateEvaluator, decided: Decided
) -> tuple[CandidateEvaluator, Decided]:
    """Each at its interval with the fewest contents that cost hardly more, if errors are silent.

    The intervals were found as if the most contents were kept.
    """
    experiment, best = evaluator.experiment, decided.of_each
    if experiment.scenario.silent is None:
        return evaluator, decided
    options = {
        name: option.keeping(
            enough_contents(best[name].policy, experiment, best[name].mean_overhead), experiment
        ) if name in best else option
        for name, option in evaluator.options.items()
    }  # fmt: skip
    fewest = replace(evaluator, options=options)
    again = {
        name: fewest.price(name, [priced.policy.interval_h])[0] for name, priced in best.items()
    }
    return fewest, choice(again, decided.best, evaluator.limit)


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

    most, numbers = (
        lost(MOST_GENERATIONS) + (WORTH_A_SAVE - 1.0) * overhead,
        range(1, MOST_GENERATIONS),
    )
    return 1 + bisect_left(numbers, True, key=lambda n: lost(n) <= most)


def none_clean_of(experiment: Experiment, policy: Policy) -> float | None:
    """The share of errors that are in all contents as they are noticed; None: nothing is kept."""
    every_h = content_times_h(policy, experiment.useful_h)
    if not every_h or experiment.scenario.silent is None:
        return None
    return _none_clean(n_contents(policy), min(every_h), _noticed_h(experiment))


def n_contents(policy: Policy) -> int:
    """How many contents are kept outside."""
    return max(tier.generations for tier in policy.tiers)


def content_times_h(policy: Policy, useful_h: float) -> list[float]:
    """Hours between two contents of each capture that saves outside."""
    outside = {tier.name for tier in policy.tiers if tier.medium is Medium.REMOTE}
    every_h = (
        policy.content_every_h(capture, useful_h) + (capture.stall.mean_h if capture.stall else 0.0)
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


def kept_sentence(name: str, policy: Policy, none_clean: float) -> str:
    """How often the contents that a policy keeps are all bad, with silent errors."""
    return (
        f"{name} keeps {count(n_contents(policy), 'content')} ('costs.save.kept'): "
        f"{percent(none_clean)} of silent errors are noticed with no clean content left (derived)."
    )
