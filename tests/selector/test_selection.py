"""The choice, where it can be worked out by hand, and against trying everything."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import ceil, sqrt

import numpy as np
import pytest
from scipy import special

from cprsim.accuracy.curve import Prediction, StalenessCurve, exactly
from cprsim.commands.select.evaluation import CandidateEvaluator, Evaluated, strategy_entry
from cprsim.commands.select.search import best_within
from cprsim.errors import ParameterError
from cprsim.failures.injected import Injected
from cprsim.job.intervals import n_saves_due
from cprsim.job.losses import Metric
from cprsim.job.policy import RELOAD
from cprsim.results import pipeline
from cprsim.results.limit import PLS, Limit, quantile_loss
from cprsim.scenario.assemble import Experiment
from tests.making import paper_policy
from tests.selector.conftest import Job, choose, curve_of, said_of

EVEN = 0.5  # confidence: the estimate itself
TIGHT = 0.06 * 0.01 * Job().pls(0)  # what about 16 saves lose at a slope of 0.01


def auc(most: float, **more: float) -> Limit:
    return Limit(Metric.AUC, most, **more)


@pytest.mark.parametrize("n_saves", [1, 3, 12])
def test_the_fewest_saves_that_keep_the_limit_are_those_of_the_closed_form(
    job: Job, n_saves: int
) -> None:
    # halfway between what so many saves lose and what one less does
    most = 0.01 * (job.pls(n_saves) + job.pls(n_saves - 1)) / 2
    limit = auc(most, confidence=EVEN)
    found = choose(job.experiment(), curve_of(partial=0.01), limit)
    best = found.at_best["partial"]
    assert best.n_saves == n_saves
    error = best.pls.half_width / 1.96
    assert abs(best.pls.mean - job.pls(n_saves)) < 4 * error + 0.003 * job.pls(n_saves), error
    # a failure count is Poisson: its noise is that of the overhead
    noise = job.recovery_h / job.mtbf_h / np.sqrt(job.n_replications * job.useful_h / job.mtbf_h)
    assert abs(best.overhead.mean - job.partial_overhead(n_saves)) < 4 * noise, noise


def test_the_limit_holds_at_the_upper_bound_of_the_curve(job: Job) -> None:
    slope, error, degrees = 0.01, 0.002, 4.0
    upper = slope + special.stdtrit(degrees, 0.95) * error
    limit = auc(0.07 * 0.01 * job.pls(0))
    # n + 1 >= upper T / (2 M N) / limit
    by_hand = ceil(upper * job.useful_h / (2 * job.mtbf_h * job.n_emb_ps) / limit.most) - 1
    found = choose(job.experiment(), curve_of(error, degrees, partial=slope), limit)
    best = found.at_best["partial"]
    assert by_hand <= best.n_saves <= by_hand + 1  # simulation noise adds to the bound
    assert (
        best.upper_bound <= limit.most < best.upper_bound * (best.n_saves + 1) / best.n_saves * 1.01
    )


def test_the_cheapest_that_surely_pays_is_recommended(job: Job) -> None:
    found = choose(job.experiment(), curve_of(), auc(TIGHT))
    assert set(found.best) == {"partial", "cpr-mfu", "cpr-round-robin"}
    mfu, robin = found.at_best["cpr-mfu"], found.at_best["cpr-round-robin"]
    assert mfu.overhead.mean < robin.overhead.mean  # it may save less often
    assert found.chosen is mfu
    assert found.chosen.benefit.low > 0


@pytest.mark.parametrize(
    ("mfu", "error", "chosen"),
    [
        (0.0060, 0.0005, "cpr-mfu"),
        (0.0060, 0.00001, "cpr-ssu"),  # the curve tells them apart
        (0.0065, 0.0005, "cpr-mfu"),  # costs 1.3 % of what is removed
        (0.0070, 0.0006, "cpr-ssu"),  # costs 2.2 %
    ],
)
def test_of_those_that_the_curve_does_not_tell_apart_the_simplest_wins(
    job: Job, mfu: float, error: float, chosen: str
) -> None:
    curve = curve_of(error, partial=0.010, mfu=mfu, ssu=0.0058)
    limit = Limit(Metric.AUC, 0.05 * 0.01 * job.pls(0))
    made = choose(job.experiment(), curve, limit)
    assert made.at_best["cpr-ssu"].overhead.mean < made.at_best["cpr-mfu"].overhead.mean
    assert made.recommended == chosen
    assert made.equivalent == (("cpr-mfu", "cpr-ssu") if chosen == "cpr-mfu" else ("cpr-ssu",))


def test_a_limit_is_shown_by_its_one_bound_and_each_other_strategy_with_its_reason(
    job: Job,
) -> None:
    curve = curve_of(0.0005, partial=0.010, mfu=0.0060, ssu=0.0058)
    made = choose(job.experiment(), curve, Limit(Metric.AUC, 0.05 * 0.01 * job.pls(0)))
    said = said_of(made)
    chosen, (formula, *_) = made.chosen, made.formula
    assert not formula.within_limit
    assert f"{1e4 * formula.upper_bound:.2f} (over the limit)" in said
    assert said.count("(over the limit)") == sum(not one.within_limit for one in made.formula)
    bound = f"{chosen.loss.mean:.3g}; at most {chosen.upper_bound:.3g} (95 % upper bound; limit"
    assert bound in said.replace("\n", " ")
    columns = next(line for line in said.splitlines() if "(recommended)" in line).split("  ")
    assert sum("±" in cell for cell in columns) == 2  # overheads: of the loss there is one bound
    why = said[said.index("Why not another? ") :].replace("\n", " ").split(". ")
    assert why[0].startswith("Why not another? partial: ")
    assert why[1] == "cpr-ssu: equivalent to cpr-mfu, which is simpler"
    unknown = "the curve does not predict the AUC loss"
    assert why[2].startswith(f"cpr-momentum, cpr-scar, cpr-round-robin: {unknown}")


def test_a_risk_for_single_jobs_is_a_quantile_over_failure_histories(job: Job) -> None:
    mean = choose(job.experiment(), curve_of(), auc(TIGHT, confidence=EVEN))
    tail = choose(job.experiment(), curve_of(), auc(TIGHT, confidence=EVEN, risk=0.95))
    a, b = mean.at_best["partial"], tail.at_best["partial"]
    assert b.n_saves > a.n_saves
    experiment = job.experiment(policies=(b.policy,))
    one = pipeline.simulate(experiment).strategies[0]
    per_job = np.zeros(job.n_replications)
    np.add.at(
        per_job, one.losses.replication, one.losses.since_reload_h / job.n_emb_ps / job.useful_h
    )
    assert 0.94 <= (0.01 * per_job <= TIGHT).mean() <= 0.98


LOST = np.arange(101.0)[::-1]  # 100 first, 0 last


@pytest.mark.parametrize("risk", [0.5, 0.9])
def test_the_error_is_half_of_what_lies_a_binomial_deviation_to_either_side(risk: float) -> None:
    found = quantile_loss(exactly(LOST), risk)
    assert found.mean == pytest.approx(100 * risk)
    assert found.standard_error == pytest.approx(sqrt(101 * risk * (1 - risk)))
    assert found.degrees == pytest.approx(100)


def test_the_error_of_the_curve_is_that_of_the_job_which_is_the_quantile() -> None:
    nowhere = np.zeros(101, dtype=bool)
    found = quantile_loss(Prediction(LOST, LOST / 10, nowhere, 5.0), 0.9)
    assert found.standard_error == pytest.approx(sqrt(101 * 0.9 * 0.1 + 9.0**2))


def test_the_front_of_what_loses_goes_from_no_saves_to_those_that_no_longer_pay(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cprsim.commands.select.selection.N_POINTS", 3)
    few = job.experiment().simulated(replications=200)
    found = choose(few, curve_of(partial=0.01), auc(TIGHT), with_figure=True)
    best = found.at_best["partial"]
    numbers = [one.n_saves for one in found.points["partial"]]
    assert best.n_saves in numbers
    assert numbers[0] == 0
    budget_h = 1.3 * found.full.overhead.mean * job.useful_h
    assert numbers[-1] == pytest.approx(budget_h / job.save_h, abs=1)


# ----------------------------------------------------------------------------- by formula

OPTIONS = {name: strategy_entry(name) for name in ("full", "partial")}
HALF = Limit(PLS, 0.5, confidence=0.5)


class ByFormula(CandidateEvaluator):
    """Candidates that lose what a formula says of the progress between two writes [h]."""

    def __init__(self, job: Job, loses: Callable[[float], float]) -> None:
        super().__init__(job.experiment(), OPTIONS, HALF)
        self.loses = loses
        self.n_tried = 0

    def evaluate(self, strategy: str, intervals_h: Iterable[float]) -> list[Evaluated]:
        return [self.candidate(strategy, interval_h) for interval_h in intervals_h]

    def candidate(self, strategy: str, interval_h: float) -> Evaluated:
        self.n_tried += 1
        useful_h = self.experiment.useful_h
        n_writes = n_saves_due(interval_h, useful_h)
        lost = np.full(2, self.loses(min(interval_h, useful_h)))
        policy = paper_policy(strategy, RELOAD, interval_h, "by formula")
        return Evaluated(
            strategy, policy, n_writes, n_writes, 1.0, np.zeros(2), lost, exactly(lost)
        )


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n_writes", [3, 80, 9000])
def test_the_fewest_writes_within_a_limit_are_found_in_a_few_tries(
    job: Job, n_writes: int, power: float
) -> None:
    """So many writes, and none fewer, lose half at most."""
    pieces = n_writes + 0.5
    evaluator = ByFormula(job, lambda apart_h: 0.5 * (apart_h / job.useful_h * pieces) ** power)
    found = best_within(evaluator, "partial", 50_000)
    assert n_writes <= found.n_writes <= 1.01 * n_writes
    assert best_within(evaluator, "partial", n_writes - 1) is None
    assert evaluator.n_tried < 60


# ----------------------------------------------------------------------------- falling back


def test_where_no_strategy_costs_less_it_is_full_recovery(job: Job) -> None:
    # so tight that partial recovery would save as often as full recovery does, and more
    found = choose(job.experiment(), curve_of(partial=0.01), auc(TIGHT / 8))
    best = found.at_best["partial"]
    assert best.within_limit
    assert best.benefit.high < 0
    assert found.fell_back
    nothing = choose(job.experiment(), curve_of(), auc(0.0))
    assert nothing.fell_back
    assert set(nothing.best.values()) == {None}


def test_one_embedding_server_loses_all_at_once(job: Job) -> None:
    alone = Job(n_emb_ps=1)

    def net(n_saves: int) -> float:
        """All work from a save to the last failure of its interval is lost, once: exact."""
        w, m = alone.useful_h / (n_saves + 1), alone.mtbf_h
        return (n_saves + 1) * (w - m * (1 - np.exp(-w / m))) / alone.useful_h

    limit = auc(0.01 * (net(10) + net(9)) / 2, confidence=EVEN)
    best = choose(alone.experiment(), curve_of(partial=0.01), limit).at_best["partial"]
    assert best.n_saves == 10


NEVER = Injected(Job().useful_h, range(Job().n_emb_ps), count=0)
OFTEN = Job(useful_h=2.0, mtbf_h=0.1, recovery_h=0.02, save_h=0.01, n_replications=400)


@pytest.mark.parametrize(
    ("made", "recommended", "n_full"),
    [
        (Job(save_h=0.0).experiment(), "partial", 1000),  # free saves: as often as is tried
        (OFTEN.experiment(), "cpr-mfu", None),
        (Job().experiment(failures=NEVER), "full", 1),  # rare failures are not in a simulation
    ],
)
def test_what_is_chosen_at_the_ends(made: Experiment, recommended: str, n_full: int | None) -> None:
    found = choose(made, curve_of(), auc(TIGHT))
    assert found.recommended == recommended
    assert found.full.finished_fraction == 1
    assert n_full in (None, found.full.n_saves)


# ----------------------------------------------------------------------------- the formula


@pytest.mark.parametrize("n_together", [1, 4])
def test_the_papers_formula_is_a_candidate_in_both_forms(job: Job, n_together: int) -> None:
    together = replace(job.experiment().failures, together=n_together)  # type: ignore[type-var]
    found = choose(job.experiment(failures=together), curve_of(0.001, partial=0.01), auc(TIGHT))
    both = {one.formula: one.policy.interval_h for one in found.formula}
    published_h = 2 * TIGHT / 0.01 * job.n_emb_ps * job.mtbf_h
    assert both.pop("cpr") == pytest.approx(published_h / n_together)
    # they are one where one server fails at a time
    assert both == ({"cpr-undivided": pytest.approx(published_h)} if n_together > 1 else {})
    assert not any(one.within_limit for one in found.formula)  # nor how well the slope is known


# ----------------------------------------------------------------------------- bad input


UNFIT = replace(curve_of(partial=0.01), unfit=("3 seeds are too few",))


@pytest.mark.parametrize(
    ("n", "curve", "limit", "said"),
    [
        (2000, None, auc(0.001), "needs a staleness curve"),
        (2000, curve_of(), Limit(Metric.LOG_LOSS, 0.001), "has no log.loss response"),
        (2000, UNFIT, auc(0.001), "hand is not fit for use.*3 seeds are too few"),
        (None, curve_of(), auc(0.001), "at least 100: not a `precision`"),
        (99, curve_of(), auc(0.001), "at least 100: not 99"),
    ],
)
def test_what_can_not_be_decided_is_refused(
    job: Job, n: int | None, curve: StalenessCurve | None, limit: Limit, said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        choose(job.experiment().simulated(replications=n), curve, limit)


def test_a_limit_of_pls_asks_nothing_of_the_curve(job: Job) -> None:
    assert choose(job.experiment(), UNFIT, Limit(PLS, 0.05)).chosen


def test_a_strategy_that_the_curve_does_not_know_is_named_and_left_out(job: Job) -> None:
    options = {name: strategy_entry(name) for name in ("partial", "cpr-ssu")}
    selection = choose(job.experiment(), curve_of(), auc(0.001), options)
    assert list(selection.best) == ["partial"]
    assert selection.left_out == ("cpr-ssu",)
