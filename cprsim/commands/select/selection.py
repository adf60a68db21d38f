"""The selection: checks of the scenario, the candidates, and the complete record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from math import isclose

import numpy as np
from scipy import optimize

from cprsim.accuracy.curve import Response
from cprsim.commands.run.sentences import resources_of
from cprsim.commands.select.decision import StrategyDecision, decide, simplest
from cprsim.commands.select.evaluation import (
    FULL,
    CandidateEvaluator,
    Evaluated,
    choose_replications,
    entry_at,
    evaluator_of,
    leaves_stale,
    options_of,
)
from cprsim.commands.select.record import CandidateSummary, Selection
from cprsim.commands.select.retention import with_fewest_kept_saves
from cprsim.commands.select.search import affordable_writes
from cprsim.errors import ParameterError, Place, ScenarioError, watch
from cprsim.job.losses import WHOLE
from cprsim.job.records import Estimate
from cprsim.recovery.paper import STRATEGIES, cpr_interval_h
from cprsim.results.limit import LIMIT_OPTIONS, NO_LIMIT, limit_of
from cprsim.results.money import cheapest_by_bill, prices_of
from cprsim.results.run import warnings_of
from cprsim.results.unknown import break_evens_of, decisive_assumption, spares_of
from cprsim.scenario.assemble import assemble
from cprsim.scenario.cluster import OwnCosts
from cprsim.scenario.curves import is_stand_in
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.yaml_text import dump_plain

Load = Callable[[Sequence[str]], LoadedScenario]  # the scenario with further overrides
N_POINTS = 24  # candidates of each strategy in the figure, besides its best
N_LOSSLESS = 8  # the same for strategies without accuracy loss
POINTS_RANGE = 6  # factor around the best number of saves, without accuracy loss
POINTS_COST = 1.3  # largest cost of writes in the figure, over that of full recovery


def prepare(load: Load, replications: int | None) -> tuple[LoadedScenario, CandidateEvaluator]:
    """Load the scenario, and make the evaluator of its candidates. Raises CprsimError."""
    loaded = load([])
    for number, entry in enumerate(loaded.scenario.recovery):
        is_own = entry.costs is not None and not _only_kept(loaded, entry.costs)
        if is_own and entry.strategy in STRATEGIES:
            message = (
                f"move costs of `{entry.strategy}` to the section `costs`: in `select` only "
                "recovery systems may have their own"
            )
            raise loaded.error(f"recovery.{number}.costs", message)
    experiment = assemble(loaded)  # raises for an entry that can't run the job
    try:
        options = options_of(experiment)
    except ParameterError as error:
        raise loaded.error("recovery", str(error)) from None
    limited = any(leaves_stale(option, experiment) for option in options.values())
    limit = limit_of(loaded, needs_curve=limited)
    if limited and limit is None:
        message = f"there is no limit; give the allowed loss with one of {LIMIT_OPTIONS}"
        raise ScenarioError.at(Place(loaded.path), message, key="accuracy")
    limit, n = limit or NO_LIMIT, replications
    if n is None:
        n = choose_replications(experiment, tail=limit.risk is not None)
    loaded = load([f"--replications simulation.replications={n}"])
    return loaded, evaluator_of(experiment.simulated(replications=n), limit, options)


def _only_kept(loaded: LoadedScenario, costs: OwnCosts) -> bool:
    """Whether costs differ only by `save.kept`, which `select` chooses if errors are silent."""
    save, own = loaded.scenario.costs.save, costs.save
    return (
        loaded.scenario.silent is not None
        and [*costs.given] == ["save"]
        and own is not None
        and own.model_copy(update={"kept": save.kept}) == save
    )


def make_selection(loaded: LoadedScenario, evaluator: CandidateEvaluator) -> Selection:
    """The selection, and what would change it: unknown and assumed inputs, spares."""
    with watch.progress("selecting") as on_progress:
        selection = selection_of(evaluator, on_progress)
    chosen, finishing = selection.chosen, selection.finishing
    best, costs = chosen.strategy, {name: one.overhead.mean for name, one in finishing.items()}
    if bills := selection.bills(prices_of(loaded.scenario)):
        best = cheapest_by_bill(bills)
        costs = {name: float(bill.month.total_cents) for name, bill in bills.items()}
    accuracy = ""
    if selection.limited and loaded.scenario.accuracy is not None:
        plain = loaded.scenario.accuracy.model_dump(mode="json", exclude_defaults=True)
        accuracy = f"accuracy: {dump_plain(plain, on_one_line=True).strip()}"
    options = evaluator.options
    counted = {name: one for name, one in finishing.items() if not options[name].system.not_counted}
    # the choice even if it does not finish, or only the user's curve counts its loss
    counted |= {chosen.strategy: chosen}
    assumption = decisive_assumption(
        loaded,
        {chosen.strategy: counted},
        {name: one.overhead.mean for name, one in counted.items()},
        selection.entries,
    )
    policies = tuple(one.policy for one in counted.values())
    spares = spares_of(
        replace(evaluator.experiment, policies=policies),
        {name: one.summary for name, one in counted.items()},
        [name for name in counted if name == chosen.strategy],
    )
    takes = resources_of([chosen.policy], evaluator.experiment)
    return replace(
        selection,
        accuracy=accuracy,
        break_evens=break_evens_of(loaded, selection.entries, costs, best),
        stand_in=evaluator.limit.metric is not None and is_stand_in(loaded),
        assumption=assumption,
        spares=spares,
        resources=takes if selection.recommended else "",
        n_nodes=evaluator.experiment.cluster.n_nodes,
    )


def selection_of(
    evaluator: CandidateEvaluator,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    with_figure: bool = True,
) -> Selection:
    """Choose the best interval of each option, then the option; `with_figure` adds candidates."""
    experiment, limit, curve = evaluator.experiment, evaluator.limit, evaluator.experiment.curve
    n_steps, steps = (1 + with_figure) * len(evaluator.options), count(1)

    def step() -> None:
        on_progress(min(next(steps), n_steps), n_steps)

    evaluator, decided = with_fewest_kept_saves(evaluator, decide(evaluator, step))
    decided, equivalent = simplest(evaluator, decided)
    full, chosen = decided.full, decided.chosen

    def summary(candidate: Evaluated, formula: str = "") -> CandidateSummary:
        return summary_of(candidate, evaluator, full, formula)

    limited = evaluator.is_limited
    points = _figure_points(evaluator, decided, limited, step) if with_figure else []
    return Selection(
        useful_h=experiment.useful_h,
        n_replications=experiment.simulation.replications or len(full.overhead),
        limit=limit,
        curve=None if curve is None else f"{curve.name} ({curve.origin})",
        chosen_name=chosen.strategy,
        equivalent=equivalent,
        full=summary(full),
        best={
            name: None if candidate is None else summary(candidate)
            for name, candidate in decided.best.items()
        },
        formula=tuple(summary(candidate, rule) for rule, candidate in _formula(evaluator)),
        points={name: tuple(map(summary, candidates)) for name, candidates in points},
        notes=(*(() if curve is None or not limited else curve.notes), *_notes(evaluator, decided)),
        left_out=evaluator.left_out,
        limited=limited,
    )


def _notes(evaluator: CandidateEvaluator, decided: StrategyDecision) -> Iterator[str]:
    """A run's warnings, and sentences on losses and nodes that overheads do not include."""
    experiment = evaluator.experiment
    chosen = replace(experiment, policies=(decided.chosen.policy,))
    yield from warnings_of(chosen, experiment.scenario.cluster).values()
    for name, option in evaluator.options.items():
        if (loss := option.system.not_counted) and not evaluator.is_predicted(name):
            yield f"{name}: {loss}. No number includes this loss, so {name} is not recommended."
    for name, candidate in decided.best_by_option.items():
        if candidate.policy.tax.nodes > 0:
            extra = f"{candidate.policy.tax.nodes:g}"
            yield f"{name} takes additional nodes ({extra}); overheads do not count their hours."


def summary_of(
    candidate: Evaluated, evaluator: CandidateEvaluator, full: Evaluated, formula: str = ""
) -> CandidateSummary:
    """Summarise a candidate for the answer."""
    option, policy = evaluator.options[candidate.strategy], candidate.policy
    n, nothing = len(candidate.overhead), np.nan
    unknown = Estimate(nothing, nothing, nothing, n)
    expected = candidate.lost.mean()
    if option.strategy in STRATEGIES:
        policy = replace(policy, interval_rule=formula or "selected")
    return CandidateSummary(
        strategy=candidate.strategy,
        policy=policy,
        n_saves=candidate.n_saves,
        n_committed=candidate.n_committed,
        finished_fraction=candidate.finished_fraction,
        overhead=Estimate.of_mean(candidate.overhead) if candidate.finished else unknown,
        waiting=candidate.waiting,
        worst=float(candidate.overhead.max()),
        pls=Estimate.of_mean(candidate.pls) if candidate.finished else unknown,
        loss=Estimate(expected.mean, *expected.interval(), n) if candidate.finished else unknown,
        upper_bound=evaluator.limit.bound(candidate.lost) if candidate.finished else nothing,
        within_limit=candidate.within_limit(evaluator.limit),
        benefit=full.excess_over(candidate),
        beyond_fraction=candidate.lost.beyond_fraction,
        stale_fraction=float((candidate.pls > 0).mean()),
        formula=formula,
        interval_option="" if option.strategy in STRATEGIES else option.system.interval or "",
        entry=entry_at(option, policy.interval_h, evaluator.experiment.useful_h),
    )


# --------------------------------------------------------------------------- CPR's formula


def _formula(evaluator: CandidateEvaluator) -> list[tuple[str, Evaluated]]:
    """Partial recovery at CPR's published interval and at the one that `cpr` has here."""
    if WHOLE not in evaluator.options:
        return []
    experiment, limit = evaluator.experiment, evaluator.limit
    metric, curve = limit.metric, experiment.curve
    response = curve.of(WHOLE, metric) if curve is not None and metric is not None else None
    target = limit.most if response is None else target_pls(response, limit.most)
    job = experiment.facts
    if not target > 0 or job.n_shards_together == 0:
        return []
    by_rule_h = {
        rule: cpr_interval_h(job, min(target, 1.0), undivided=rule != "cpr")
        for rule in ("cpr-undivided", "cpr")
    }
    if isclose(*by_rule_h.values()):
        del by_rule_h["cpr-undivided"]
    return [
        (rule, evaluator.evaluate(WHOLE, [interval_h])[0])
        for rule, interval_h in by_rule_h.items()
        if interval_h > 0
    ]


def target_pls(response: Response, loss: float) -> float:
    """The PLS at which a response reaches a loss; at most 1."""

    def excess(pls: float) -> float:
        predicted, _ = response.predict(np.array([pls]))
        return float(predicted[0]) - loss

    if loss <= max(response.intercept, 0.0):
        return 0.0
    return float(optimize.brentq(excess, 0.0, 1.0)) if excess(1.0) > 0 else 1.0


# --------------------------------------------------------------------------- the figure


def _figure_points(
    evaluator: CandidateEvaluator,
    decided: StrategyDecision,
    limited: bool,
    step: Callable[[], None],
) -> list[tuple[str, list[Evaluated]]]:
    """Candidates of each strategy, from few writes to the largest number that can be worth it."""
    points = []
    for name, option in evaluator.options.items():
        step()
        if (limited and name == FULL) or option.system.interval is None:
            continue
        chosen = decided.full if name == FULL else decided.best[name]
        lossless = chosen is not None and not chosen.loses
        lowest, n = option.n_fewest, N_LOSSLESS if lossless else N_POINTS
        most = affordable_writes(evaluator, name, decided.full, POINTS_COST)
        if lossless and chosen is not None:  # others may be slow to simulate
            lowest = chosen.n_writes // POINTS_RANGE
            most = min(most, max(POINTS_RANGE * chosen.n_writes, decided.full.n_writes))
        grid = np.geomspace(lowest + 1, max(most, lowest + 2), n) - 1
        numbers = {lowest, *np.round(grid).astype(int).tolist()}
        if chosen is not None:
            numbers.add(chosen.n_writes)
        points.append(
            (name, evaluator.with_writes(name, sorted(n for n in numbers if n >= lowest)))
        )
    return points
