"""The search for the number of writes, where what each number costs and loses is a formula."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from cprsim.recovery.intervals import n_saves_due
from cprsim.recovery.policy import RELOAD
from cprsim.selector.limit import PLS, Limit, pls_alone
from cprsim.selector.option import strategy
from cprsim.selector.pricing import Bench, Priced
from cprsim.selector.search import best_within
from tests.making import paper_policy
from tests.selector.conftest import Job

OPTIONS = {"full": strategy("full"), "partial": strategy("partial")}
HALF = Limit(PLS, 0.5, confidence=0.5)


class ByFormula(Bench):
    """Candidates that lose what a formula says of the progress between two writes [h]."""

    def __init__(self, job: Job, loses: Callable[[float], float]) -> None:
        super().__init__(job.experiment(), OPTIONS, HALF)
        self.loses = loses
        self.n_tried = 0

    def price(self, strategy: str, intervals_h: Iterable[float]) -> list[Priced]:
        return [self.candidate(strategy, interval_h) for interval_h in intervals_h]

    def candidate(self, strategy: str, interval_h: float) -> Priced:
        self.n_tried += 1
        useful_h = self.experiment.useful_h
        n_writes = n_saves_due(interval_h, useful_h)
        lost = np.full(2, self.loses(min(interval_h, useful_h)))
        policy = paper_policy(strategy, RELOAD, interval_h, "by formula")
        return Priced(strategy, policy, n_writes, n_writes, 1.0, np.zeros(2), lost, pls_alone(lost))


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n_writes", [3, 80, 9000])
def test_the_fewest_writes_within_a_limit_are_found_in_a_few_tries(
    job: Job, n_writes: int, power: float
) -> None:
    """So many writes, and none fewer, lose half at most."""
    pieces = n_writes + 0.5

    bench = ByFormula(job, lambda apart_h: 0.5 * (apart_h / job.useful_h * pieces) ** power)
    found = best_within(bench, "partial", 50_000)
    assert found is not None
    assert n_writes <= found.n_writes <= 1.01 * n_writes
    assert bench.n_tried < 30


def test_no_writes_beyond_the_most_are_tried(job: Job) -> None:
    bench = ByFormula(job, lambda apart_h: 0.5 * apart_h / job.useful_h * 1000)
    assert best_within(bench, "partial", 900) is None
    assert bench.n_tried < 30
