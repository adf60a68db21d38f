"""What a fit writes, through the chain: the source it makes, and the failures that come of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cprsim import pipeline
from cprsim.assemble import Experiment, assemble
from cprsim.errors import ScenarioError
from cprsim.failures.correlated import CorrelatedNodes, Shocks
from cprsim.failures.frailty import GammaFrailty, Lemons
from cprsim.failures.job_clock import JobClock
from cprsim.failures.piecewise import PiecewiseHazard
from cprsim.failures.sources import Start
from cprsim.records import Clock
from cprsim.scenario import load_scenario

CORRELATED = """\
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

Make = Callable[..., Experiment]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """An experiment from the scenario above, with overrides."""

    def experiment(*overrides: str) -> Experiment:
        path = tmp_path / "scenario.yaml"
        path.write_text(CORRELATED)
        return assemble(load_scenario(path, list(overrides)))

    return experiment


def mean_failures(experiment: Experiment) -> tuple[float, float]:
    """Mean number of failures per job, and its standard error."""
    n = pipeline.simulate(experiment).strategies[0].costs.n_failures
    return float(n.mean()), float(n.std(ddof=1) / np.sqrt(len(n)))


def test_every_number_of_the_scenario_is_in_the_source(make: Make) -> None:
    source = make().failures
    assert isinstance(source, CorrelatedNodes)
    assert source.lifetime.mean_h == pytest.approx(50.0)
    assert source.lifetime.shape == 0.7
    assert source.frailty == Lemons(0.25, 3.0, GammaFrailty(2.0))
    assert source.shocks == Shocks(1 / 8, (2, 3), (0.75, 0.25), 12)
    assert (source.clock, source.start, source.watched_h) == (Clock.UPTIME, Start.FRESH, 100.0)
    assert source.repair is not None
    assert source.repair.mean_h == 3.0


def test_lemons_and_shocks_strike_as_often_as_arithmetic_says(make: Make) -> None:
    experiment = make("failures.shape=1", "failures.clock=progress")
    # exponential clocks of 6 nodes; a quarter of them thrice as fast; factors have a mean of 1
    of_nodes = 20 / 50 * 6 * (0.75 + 0.25 * 3)
    # a shock of 2 or 3 of 12 nodes misses the 6 of the job with probability (6 over k)/(12 over k)
    of_shocks = 20 / 8 * (0.75 * (1 - 15 / 66) + 0.25 * (1 - 20 / 220))
    mean, error = mean_failures(experiment)
    assert abs(mean - (of_nodes + of_shocks)) <= 4 * error


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
    mean, error = mean_failures(make(roles))
    assert abs(mean - 20 * 4 * 0.01) <= 4 * error
