"""Differences between two results, and in what went into them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cprsim.commands.comparison import compare, different
from cprsim.errors import ParameterError
from cprsim.results.folder import stored_scenario
from cprsim.results.identity import Identity, inputs_of
from cprsim.results.metrics import Sample, difference_of
from cprsim.results.pipeline import Outcome
from tests.results import conftest as made


@pytest.fixture
def compared(write, outcome):
    """The overhead of `full` in the made-up outcome and in another one, compared."""

    def _compared(*hours, digest):
        full = made.strategy(made.FULL, *hours)
        other = Outcome(made.USEFUL_H, made.CLUSTER, (full,))
        b = write(outcome=other, identity=Identity("b", "b", {}), failures_digest=digest)
        table = compare(write(), b)
        row = table[table["quantity"] == "overhead_fraction"].iloc[0]
        return row["difference"], row["difference_high"] - row["difference"], row["n"]

    return _compared


@pytest.mark.parametrize(
    ("hours", "digest", "half_width", "n"),
    [
        # half an hour less of lost work everywhere: the same in every pair
        (([0.5] * 3, [0.5, 1.5, 2.5]), "same", 0.0, 3),
        # equal variances 0.1^2 and sizes 3: t(0.975, 4) * 0.1 * sqrt(2 / 3)
        (([0.5] * 3, [0.5, 1.5, 2.5]), "other", 2.7764451 * 0.1 * (2 / 3) ** 0.5, 3),
        # of those that both have
        (([0.5] * 4, [0.5, 1.5, 2.5, 99.0]), "same", 0.0, 3),
    ],
)
def test_results_are_paired_where_they_met_the_same_failures(
    compared, hours, digest, half_width, n
):
    assert compared(*hours, digest=digest) == pytest.approx((-0.05, half_width, n), abs=1e-9)


def test_unfinished_replications_have_no_difference(write):
    full = made.strategy(made.FULL, [1] * 3, [0] * 3, finished=[True, False, True])
    outcome = Outcome(made.USEFUL_H, made.CLUSTER, (full,))
    partly = write(outcome=outcome, identity=Identity("b", "b", {}), failures_digest="same")
    for pair in ((write(), partly), (partly, write())):
        assert compare(*pair).set_index("quantity").difference.isna()["overhead_fraction"].all()


def test_results_without_a_common_strategy_are_refused(write, outcome):
    full, cpr = outcome.strategies
    a = write(outcome=replace(outcome, strategies=(full,)), identity=Identity("a", "a", {}))
    b = write(outcome=replace(outcome, strategies=(cpr,)), identity=Identity("b", "b", {}))
    with pytest.raises(ParameterError, match=r"A has full; B has cpr"):
        compare(a, b)


samples = st.lists(st.floats(-100, 100), min_size=2, max_size=30).map(np.array)


def sample(values):
    """Of one metric."""
    n = len(values)
    return Sample(("save",), values[None], np.arange(n), np.ones(n, bool), (("", {}),))


@given(samples, samples)
def test_welchs_interval_is_scipys(a, b):
    if np.ptp(a) > 1e-3 and np.ptp(b) > 1e-3:
        interval = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
        found = difference_of(sample(a), sample(b), one_curve=False, paired=False)["save"]
        assert found.triple[1:] == pytest.approx((interval.low, interval.high), abs=1e-9)


ONE = """\
name: made-up
job: {useful: 10 h}
failures: {kind: job, family: gamma, mtbf: 28 h}
recovery:
- {strategy: full, name: full, interval: 2 h}
- {strategy: cpr, name: mine, target_pls: 0.1}
simulation: {seed: 1, replications: 3}
"""
OTHER = ONE.replace("28 h", "14 h").replace("2 h}", "3 h}").replace("seed: 1", "seed: 2").replace(
    "- {strategy: cpr, name: mine, target_pls: 0.1}\n", ""
)  # fmt: skip


def test_every_key_of_the_scenario_that_differs_is_listed_with_both_values(write):
    def inputs(seed, text, digest, **changed):
        about = {"command": [], "seed": seed}
        made = write(identity=Identity(f"r{seed}", text, {"outages.csv": digest * 32}), about=about)
        return inputs_of(stored_scenario(made.path), {**made.manifest, **changed})

    source = {"version": "9.9", "source": "f" * 64, "git": {"commit": "e" * 40}}
    newer = {"replications": {"full": 200}, "cprsim": source, "libraries": {"numpy": "9.0"}}
    old = inputs(1, ONE, "ab")
    frame = different({"1": old, "2": inputs(2, OTHER, "cd", python="3.99", **newer)})
    found = {key: tuple(values) for key, *values in frame.to_numpy().tolist()}
    assert (
        found.items()
        >= {
            "failures.mtbf": ("28 h", "14 h"),
            "recovery.full.interval": ("2 h", "3 h"),
            "recovery.mine.strategy": ("cpr", "–"),
            "recovery.mine.target_pls": ("0.1", "–"),
            "simulation.seed": ("1", "2"),
            "replications.full": ("3", "200"),
            "input.outages.csv": ("ab" * 5, "cd" * 5),
        }.items()
    )
    new = {"cprsim": "9.9", "source of cprsim": "f" * 10, "library.numpy": "9.0", "Python": "3.99"}
    assert {key: found[key][1] for key in new} == new
    assert not different({"1": old, "2": old}).size
