"""The number of saves to retain, so that one of them is older than a silent error."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from math import inf

from cprsim.commands.run.contents import kept_every_h, none_clean, noticed_h
from cprsim.commands.select.deciding import StrategyDecision, choose_from
from cprsim.commands.select.evaluation import CandidateEvaluator, with_kept_saves
from cprsim.commands.select.search import WORTH_A_SAVE
from cprsim.job.policy import MOST_GENERATIONS, Policy
from cprsim.scenario.assemble import Experiment

LOST_OF_JOB = 0.5  # mean share of the work that an error in all retained saves loses


def with_fewest_kept_saves(
    evaluator: CandidateEvaluator, decided: StrategyDecision
) -> tuple[CandidateEvaluator, StrategyDecision]:
    """If errors are silent, reduce each candidate to the fewest retained saves that suffice.

    Its interval is unchanged: it was found with the largest number of retained saves.
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
    fewest = replace(evaluator, options=options)
    again = {name: fewest.evaluate(name, [one.policy.interval_h])[0] for name, one in best.items()}
    return fewest, choose_from(again, decided.best, evaluator.limit)


def fewest_kept_saves(policy: Policy, experiment: Experiment, overhead: float) -> int:
    """The fewest retained saves whose overhead is at most 2 % above `overhead`, that of the most.

    To first order: a silent error that is in all retained saves costs half of the job's work.
    """
    every_h, silent = kept_every_h(policy, experiment.useful_h), experiment.scenario.silent
    if every_h == inf or silent is None:
        return 1
    hours, n_errors = noticed_h(experiment), experiment.useful_h / silent.mtbf_h

    def lost(n: int) -> float:
        return n_errors * LOST_OF_JOB * none_clean(n, every_h, hours)

    most, fewer = lost(MOST_GENERATIONS) + (WORTH_A_SAVE - 1.0) * overhead, MOST_GENERATIONS - 1
    return 1 + bisect_left(range(1, fewer + 1), True, key=lambda n: lost(n) <= most)
