"""What a fit writes, through the chain: the source it makes, and the failures that come of it."""

import numpy as np
import pytest

from cprsim.errors import ScenarioError
from cprsim.failures.clocks import JobClock
from cprsim.failures.correlated import CorrelatedNodes
from cprsim.job.distributions import PiecewiseHazard
from cprsim.logs.fit.fragments import failures_fragment
from cprsim.logs.fit.report import fit_failures
from cprsim.results import pipeline
from cprsim.scenario.assemble import Experiment
from tests.fitting.logs import assembled, outages
from tests.fitting.posterior_check import source_of
from tests.making import Make
from tests.simulators import z_score

SCENARIO = """\
job: {useful: 20 h}
cluster: {emb_ps: 4, trainers: 2, repair: 3 h}
failures:
  kind: correlated
  mtbf: 50 h
  shape: 0.7
  frailty: {shape: 2}
  lemons: {share: 25 %, factor: 3}
  shocks: {every: 8 h, sizes: {2: 6, 3: 2}, nodes: 12}
  start: fresh
  watched: 100 h
  clock: uptime
costs: {save: 0 h, load: 0 h, reschedule: 0 h}
recovery: [{strategy: partial, interval: 30 h}]
simulation: {seed: 3, replications: 2000}
"""


def off_by(experiment: Experiment, n_expected: float) -> float:
    """How many standard errors the mean number of failures per job lies from theory."""
    return z_score(pipeline.simulate(experiment).strategies[0].costs.n_failures, n_expected)


def test_lemons_and_shocks_strike_as_often_as_arithmetic_says(make: Make) -> None:
    experiment = make("failures.shape=1", "failures.clock=progress")
    # exponential clocks of 6 nodes; a quarter of them thrice as fast; factors have a mean of 1
    of_nodes = 20 / 50 * 6 * (0.75 + 0.25 * 3)
    # a shock of 2 or 3 of 12 nodes misses the 6 of the job with probability (6 over k)/(12 over k)
    of_shocks = 20 / 8 * (0.75 * (1 - 15 / 66) + 0.25 * (1 - 20 / 220))
    assert abs(off_by(experiment, of_nodes + of_shocks)) <= 4


def test_a_job_that_fails_beyond_reason_is_refused_on_its_line(make: Make) -> None:
    with pytest.raises(ScenarioError, match=r"yaml:3: failures: makes .* failures per job"):
        make("failures.lemons.factor=1000000")


def test_pieces_make_their_hazard(make: Make) -> None:
    pieces = "ages: [0 h, 5 h], hazards: [0.4 failures/h, 0.1 failures/h]"
    source = make(f"failures={{kind: job, family: piecewise, {pieces}}}").failures
    assert isinstance(source, JobClock)
    assert source.lifetime == PiecewiseHazard((0.0, 5.0), (0.4, 0.1))


def test_a_flat_hazard_in_pieces_strikes_as_an_exponential_one(make: Make) -> None:
    flat = "family: piecewise, ages: [0 h, 5 h], hazards: [0.01 failures/h, 0.01 failures/h]"
    roles = f"failures={{kind: node, clock: progress, roles: {{emb_ps: {{{flat}}}}}}}"
    assert abs(off_by(make(roles), 20 * 4 * 0.01)) <= 4


def test_the_fragment_of_a_fit_makes_the_source_that_was_fitted() -> None:
    rng = np.random.default_rng(8)
    rows: list[tuple[int, float, float]] = []
    for node in range(24):  # four lemons
        at_h = np.cumsum(rng.exponential(60 if node < 4 else 600, 400))
        rows += [(node, at, at + 0.5) for at in at_h[at_h < 4000].tolist()]
    for at in range(50, 4000, 190):  # shocks of three
        rows += [(node, at, at + 1) for node in rng.choice(24, 3, replace=False)]
    fitted = fit_failures(outages(*rows, n_nodes=24, window_h=4000.0), n_bootstrap=0)
    made = assembled(str(failures_fragment(fitted))).failures
    assert isinstance(made, CorrelatedNodes)
    wanted = source_of(fitted.correlated)
    numbers = [
        (one.frailty.share, one.frailty.factor, one.lifetime.scale_h, one.watched_h,
         one.shocks.rate_per_h)
        for one in (made, wanted)
        if one.frailty.share > 0 and one.shocks is not None
    ]  # fmt: skip
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-4)
    assert (made.shocks.sizes, made.shocks.n_nodes) == ((3,), 24)
    assert made.start == wanted.start
