"""The fewest saves to keep where silent errors occur."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from math import inf

from cprsim.commands.run.contents import kept_every_h, none_clean, noticed_h
from cprsim.commands.select.decision import StrategyDecision, choose_from
from cprsim.commands.select.evaluation import CandidateEvaluator, with_kept_saves
from cprsim.commands.select.search import EQUALLY_CHEAP
from cprsim.job.policy import MOST_GENERATIONS, Policy
from cprsim.scenario.assemble import Experiment

LOST_OF_JOB = 0.5  # mean share of the work that an error in all kept saves loses


def with_fewest_kept_saves(
    evaluator: CandidateEvaluator, decided: StrategyDecision
) -> tuple[CandidateEvaluator, StrategyDecision]:
    """With silent errors, reduce each candidate to the fewest kept saves that suffice.

    Its interval is unchanged: it was found with the largest number of kept saves.
    """
    experiment, best = evaluator.experiment, decided.at_best
    if experiment.scenario.silent is None:
        return evaluator, decided
    options = {
        name: with_kept_saves(
            option,
            fewest_kept_saves(best[name].policy, experiment, best[name].cost_fraction), experiment
        ) if name in best else option
        for name, option in evaluator.options.items()
    }  # fmt: skip
    reduced = replace(evaluator, options=options)
    by_name = {
        name: reduced.evaluate(name, [one.policy.interval_h])[0] for name, one in best.items()
    }
    return reduced, choose_from(by_name, decided.best, evaluator.limit)


def fewest_kept_saves(policy: Policy, experiment: Experiment, cost_fraction: float) -> int:
    """The fewest kept saves within 2 % of `cost_fraction`, the cost with `MOST_GENERATIONS`.

    To first order: a silent error that is in all kept saves costs half of the job's work.
    """
    every_h, silent = kept_every_h(policy, experiment.useful_h), experiment.scenario.silent
    if every_h == inf or silent is None:
        return 1
    hours, n_errors = noticed_h(experiment), experiment.useful_h / silent.mtbf_h

    def lost_fraction(n: int) -> float:
        return n_errors * LOST_OF_JOB * none_clean(n, every_h, hours)

    most = lost_fraction(MOST_GENERATIONS) + (EQUALLY_CHEAP - 1.0) * cost_fraction
    fewer = range(1, MOST_GENERATIONS)
    return 1 + bisect_left(fewer, True, key=lambda n: lost_fraction(n) <= most)
