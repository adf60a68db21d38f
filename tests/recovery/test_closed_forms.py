"""Simulated means are those of closed forms: many replications by the loop, fewer by SimPy.

The formulas (`tests/closed_forms.py`) share no code with the simulation. Means lie within 4 errors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from cprsim.commands.reproduce.systems import poisson
from cprsim.job.distributions import Constant, Exponential
from cprsim.job.intervals import expected_pls
from cprsim.job.policy import (
    CHECK,
    NO_CONTENT,
    OWN,
    Reach,
    Rule,
    SaveSchedule,
    Scope,
    Tax,
    To,
    checked,
)  # fmt: skip
from cprsim.job.records import Clock, CostBreakdown, Duration, Estimate, Floats
from cprsim.simulation.job import ScopedFailure, SimulatedJob
from cprsim.simulation.strikes import ScopedStrikes, given_failures
from tests import closed_forms
from tests.closed_forms import tier_overhead_fraction
from tests.recovery.lives import job, memory, remote, rule, saves
from tests.simulators import FULL, NONE, PARTIAL, job_of, run_many, z_score

N, N_OF_STRATEGIES = 20_000, 40_000
LONGEST = 10.0  # of the useful hours: failures are drawn up to there
STEP_H, REBUILD_H = 0.25, 0.125


def overhead(costs: CostBreakdown, stale_h: Floats, useful_h: float) -> Floats:
    return costs.wall_h - useful_h


def pls(costs: CostBreakdown, stale_h: Floats, useful_h: float) -> Floats:
    """Of a job of 8 servers."""
    return stale_h / 8 / useful_h


def lost(costs: CostBreakdown, stale_h: Floats, useful_h: float) -> Floats:
    """Its theory is that of one failure."""
    return costs.hours_of("lost")


@dataclass(frozen=True, slots=True)
class Form:
    """A closed form [h]: of a job, and failures at these rates by scope."""

    name: str
    job: SimulatedJob
    rates_per_h: Sequence[float]
    theory: float
    measure: Callable[..., Floats] = overhead
    n: int = N
    n_together: int = 1  # slots that a failure strikes


def saving(
    *captures: SaveSchedule, rules: tuple[Rule, ...] = (rule("all", "", "remote"),), **how: Any
) -> SimulatedJob:
    return job(*rules, captures=captures, **{"clock": Clock.PROGRESS} | how)


# --------------------------------------------------------------------------- strategies

# useful, interval, save, recovery, MTBF [h]; the first saves for a quarter of the interval
SETTINGS = [(20.0, 2.0, 0.5, 1.0, 10.0), (15.0, 3.0, 0.9, 3.0, 6.0)]


def strategies() -> list[Form]:
    """The recovery is split over its stages, which must not matter."""
    forms = []
    for numbers in SETTINGS:
        useful_h, interval_h, save_h, recovery_h, mtbf_h = numbers
        costs = {
            "save_h": save_h, "detect_h": recovery_h / 8, "reschedule_h": recovery_h / 2,
            "load_h": recovery_h * 3 / 8,
        }  # fmt: skip
        for clock in Clock:
            for how, name in ((FULL, "full"), (PARTIAL, "partial")):
                form = f"{name}_{clock}_h"
                of = job_of(how, interval_h, useful_h=useful_h, clock=clock, **costs)
                theory_h = getattr(closed_forms, form)(*numbers)
                name = f"{form} of {useful_h} h"
                forms.append(Form(name, of, [1 / mtbf_h], theory_h, n=N_OF_STRATEGIES))
    for clock in (Clock.UPTIME, Clock.WALL):
        of = job_of(NONE, useful_h=8.0, clock=clock, reschedule_h=0.5)
        theory_h = getattr(closed_forms, f"full_{clock}_h")(8.0, 8.0, 0.0, 0.5, 10.0)
        forms.append(Form(f"restart, {clock}", of, [0.1], theory_h, n=N_OF_STRATEGIES))
    return forms


def aged(useful_h: float, interval_h: float) -> SimulatedJob:
    return job_of(PARTIAL, interval_h, useful_h=useful_h, clock=Clock.PROGRESS, n_emb_ps=8)


PLS = [
    *(Form(f"pls, {n} together", aged(24.0, 4.0), [1 / 12], expected_pls(4.0, 8, 12.0, n), pls,
           n_together=n) for n in (1, 3)),
    # Facts of the paper's emulation: 0.0850, not 0.1000. A uniform instant of progress lies in the
    # first interval with 44.8/56 and is 22.4 h from its save, in the rest with 11.2/56 and is 5.6 h
    # from it: 2 failures x 19.04 h / 56 h / 8 servers
    Form("pls of no whole number of intervals", aged(56.0, 44.8), [1 / 28], 0.085, pls),
]  # fmt: skip

# --------------------------------------------------------------------------- systems

EVERY = (1, 4)
BOTH = ("memory", "remote")


def nested(
    stalls_h: Sequence[float], recoveries_h: Sequence[float], clock: Clock = Clock.PROGRESS
) -> SimulatedJob:
    """Host memory, which the failure of a process spares, and remote saves at some of its points.

    What a recovery takes follows from the scope, whichever tier it loads from.
    """
    process, node = (f"regroup {hours}" for hours in recoveries_h)
    return saving(
        *(saves(tier, n, stall_h) for tier, n, stall_h in zip(BOTH, EVERY, stalls_h, strict=True)),
        rules=(rule("all", process, *BOTH, scopes=("process",)), rule("all", node, *BOTH)),
        tiers=(memory(OWN), remote()), clock=clock, useful_h=24.0,
    )  # fmt: skip


def nested_form(clock: Clock, *numbers: Any) -> Form:
    stalls_h, recoveries_h, rates = numbers
    name = f"nested tiers on {clock}, saves of {stalls_h} h"
    theory_h = closed_forms.nested_h(clock, 24.0, 1.0, EVERY, *numbers)
    return Form(name, nested(stalls_h, recoveries_h, clock), rates, theory_h)


# lost shards are rebuilt while the job goes on, however many are lost together
PARITY = saving(
    rules=(rule("nobody", f"detect .25, rebuild {REBUILD_H}~", speed_meanwhile=0.5),),
    tax=Tax(0.125), useful_h=100.0,
)  # fmt: skip
TOLD_APART = saving(
    saves("remote", 2, 0.25), step_h=STEP_H, useful_h=40.0,
    rules=(rule("all", "detect .125", to=To.STEP_BEGUN, scopes=("process",)),
           rule("all", "detect .5", "remote")),
)  # fmt: skip
SYSTEMS = [
    *(Form(f"age of content saved for {behind_h} h, {n} in flight",
           saving(saves("remote", 1.25, None, behind_h, in_flight=n), useful_h=50.0), [0.2],
           closed_forms.content_age_h(50.0, 1.25, behind_h, n), lost)
      for behind_h, n in ((0.0, 1), (0.75, 1), (1.25, 1), (2.0, 2), (3.0, 3), (8.75, 7))),
    nested_form(Clock.UPTIME, (0.125, 0.0), (0.125, 0.5), (0.15, 0.05)),
    # On the wall clock a process that fails while a node is recovered has recovery begin anew, by
    # its own rule: the same for equal recoveries
    nested_form(Clock.WALL, (0.125, 0.0), (0.25, 0.25), (0.15, 0.05)),
    nested_form(Clock.UPTIME, (0.125, 0.5), (0.125, 0.5), (0.3, 0.05)),
    # on the way back from a remote save, those to host memory are made again: 0 to 3 of them
    Form("nested tiers, and saves made again",
         nested((0.125, 0.5), (0.25, 0.5)), (0.15, 0.05),
         24.0 * (tier_overhead_fraction((1.0, 4.0), (0.125, 0.5), (0.15, 0.05), (0.25, 0.5))
                 + 0.05 * 0.125 * (EVERY[1] - 1) / 2)),
    # exact but for rebuilds that overlap or outlast the job: a thousandth of what they cost
    Form("parity costs tax, detection and slow rebuilds", PARITY, [0.005],
         100.0 * closed_forms.erasure_coded_overhead_fraction(0.005, 0.125, 0.25, REBUILD_H, 0.5)),
    Form("a tax is paid on all work, also on that done again",
         saving(saves("remote", 2, 0.25), rules=(rule("all", "detect .5", "remote"),),
                tax=Tax(0.125), useful_h=40.0), [0.1],
         40.0 * (0.125 + tier_overhead_fraction([2.0], [0.25], [0.1], [0.5 + 0.125]))),
    # few failures in a long job: one that follows another finds a save that is known to be whole
    Form("corrupt saves take a job back by a geometric number",
         saving(saves("remote", 1), tiers=(remote(generations=8, p_corrupt=0.15),),
                useful_h=1000.0), [0.001],
         closed_forms.corrupt_saves_loss_h(1.0, 0.15), lost),
    # one loses the step in hand, the other what was done since the last save
    Form("scopes with rules of their own cost the sum of both", TOLD_APART, (0.1, 0.05),
         40.0 * (0.1 * (0.125 + STEP_H / 2)
                 + tier_overhead_fraction([2.0], [0.25], [0.05], [0.5]))),
]  # fmt: skip
# --------------------------------------------------------------------------- silent errors

SAVED_EVERY_H, LATENT_H = 1.0, 2.0


def with_errors(
    useful_h: float,
    every_h: float,
    latency: Duration | None,
    clock: Clock = Clock.PROGRESS,
    *,
    save_h: float = 0.0,
    load_h: float = 0.0,
    check_h: float = 0.0,
    n_kept: int = 1,
) -> SimulatedJob:
    """Silent errors, and failures that are noticed at once."""
    scopes = (
        Scope("silent", Reach.PROCESS, Constant(0.0), False, silent=True, latency=latency),
        Scope("process", Reach.PROCESS, Constant(0.0), False),
    )
    of = saving(
        saves("remote", every_h, save_h), rules=(rule("all", "load", "remote"),),
        tiers=(remote(load_h, generations=n_kept),), useful_h=useful_h, clock=clock,
    )  # fmt: skip
    check = SaveSchedule(CHECK, None, stall=Constant(check_h), parts=NO_CONTENT)
    policy = checked(of.policy, of.cluster, check) if check_h else of.policy
    return replace(of, scopes=scopes, policy=policy)


SILENT = [
    Form(f"a check before each save each {every_h} h",
         with_errors(200.0, every_h, None, save_h=0.05, load_h=0.2, check_h=0.03), (0.05, 0.0),
         200.0 * closed_forms.checked_progress(every_h, 0.05, 0.03, 0.2, 0.05), n=10_000)
    for every_h in (1.0, 5.0)
]  # fmt: skip
FORMS = {form.name: form for form in (*strategies(), *PLS, *SYSTEMS, *SILENT)}


@pytest.mark.parametrize("name", FORMS)
def test_means_are_those_of_the_closed_form(name: str) -> None:
    form, of = FORMS[name], FORMS[name].job
    longest_h = of.useful_h * (1.0 if of.clock is Clock.PROGRESS else LONGEST)
    struck = poisson(
        of, form.n, name, *form.rates_per_h, until_h=longest_h, n_together=form.n_together
    )
    costs, stale_h = run_many(of, struck)
    assert costs.finished.all()
    measured = form.measure(costs, stale_h, of.useful_h)
    if form.measure is lost:  # over all failures; the error is that of a ratio
        assert abs(z_score(measured - form.theory * costs.n_failures, 0.0)) <= 4.0
    elif measured.std() > 1e-9:
        assert abs(z_score(measured, form.theory)) <= 4.0


@pytest.mark.parametrize(("errors_per_h", "failures_per_h"), [(0.004, 0.0), (0.004, 0.008)])
def test_the_best_interval_with_checks(errors_per_h: float, failures_per_h: float) -> None:
    save_h, check_h, load_h, rates = 0.03, 0.02, 0.1, (errors_per_h, failures_per_h)
    best_h = closed_forms.best_checked_interval_h(save_h, check_h, *rates)
    overheads = {}
    for factor in (0.5, 1.0, 2.0):
        every_h = factor * best_h
        useful_h = every_h * round(300.0 / every_h)
        of = with_errors(useful_h, every_h, None, save_h=save_h, load_h=load_h, check_h=check_h)
        struck = poisson(of, 4_000, "checks", *rates)
        costs, _ = run_many(of, struck)
        overheads[factor] = Estimate.of_mean(costs.wall_h / useful_h - 1.0)
        theory = closed_forms.checked_first_order(every_h, save_h, check_h, load_h, *rates)
        assert overheads[factor].mean == pytest.approx(theory, rel=0.03)
    assert overheads[1.0].high < min(overheads[0.5].low, overheads[2.0].low)


def one_error(n: int, from_h: float, to_h: float) -> ScopedStrikes:
    """An error in each of n replications, at a uniform instant."""
    at_h = np.random.default_rng(23).uniform(from_h, to_h, n)
    return given_failures(tuple((ScopedFailure(hours, (1,), 0, (0.0,)),) for hours in at_h))


@pytest.mark.parametrize(("n_kept", "p"), [(1, 0.787), (2, 0.477), (5, 0.107)])
def test_how_often_no_content_is_clean(n_kept: int, p: float) -> None:
    """Then the job begins again."""
    assert closed_forms.p_none_clean(n_kept, SAVED_EVERY_H, LATENT_H) == pytest.approx(p, abs=5e-4)
    of = with_errors(150.0, SAVED_EVERY_H, Exponential(LATENT_H), Clock.WALL, n_kept=n_kept)
    costs, _ = run_many(of, one_error(10_000, 100.0, 101.0))
    assert (costs.n_failures == 1).all()
    begins_again = Estimate.of_mean((costs.hours_of("lost") > 99.0).astype(float))
    assert abs(begins_again.mean - p) < 2.0 * begins_again.half_width


@pytest.mark.parametrize("every_h", [0.5, 2.0])
@pytest.mark.parametrize("latency_h", [0.0, 0.8, 3.0])
def test_an_error_costs_its_latency_at_any_interval(every_h: float, latency_h: float) -> None:
    of = with_errors(60.0, every_h, Constant(latency_h), save_h=0.1, load_h=0.3, n_kept=8)
    struck = one_error(50, 30.0, 34.0)
    costs, _ = run_many(of, struck)
    since_save_h = struck.strikes(1).at_h % every_h
    saved_h = 0.1 * 60.0 / every_h
    assert costs.wall_h == pytest.approx(60.0 + saved_h + since_save_h + latency_h + 0.3)
