"""What stale shards cost: by hand on made-up losses, and what has to hold for any of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.accuracy.curve import (
    Replicate,
    Response,
    StalenessCurve,
    Weight,
    jackknife_error,
    weighted_pls,
)
from cprsim.errors import ParameterError
from cprsim.job.losses import Metric
from cprsim.job.policy import (
    RELOAD,
    Elastic,
    Policy,
    Reverts,
    Rule,
)
from cprsim.job.records import CostBreakdown, ShardLoss, SubSaves
from tests.making import paper_policy

USEFUL_H = 10.0


def quarter(at: float, first: float = 4.0) -> float:
    """A weight that falls to a quarter (or to 1 / `first`) over the job, with mean 1."""
    return float(np.log(first) / (1 - 1 / first) * first**-at)


def falling(first: float = 4.0) -> Weight:
    ends = np.array([0.0, 1.0])
    return Weight(ends, np.array([quarter(at, first) for at in ends]))


def losses(*rows: tuple[int, float, float, float, float]) -> ShardLoss:
    """Rows of (replication, progress, since save, since reload, share)."""
    replication, progress, since_save, since_reload, share = zip(*rows, strict=True)
    return ShardLoss(
        np.array(replication, np.int64),
        np.array(progress, float),
        np.zeros(len(rows), np.int64),
        np.array(since_save, float),
        np.array(since_reload, float),
        np.array(share, float),
    )


def jobs(*replications: int) -> CostBreakdown:
    """Job i has failed i times, and lacked i/100 of its work in speed."""
    i = np.array(replications, np.int64)
    useful_h, degraded_h = np.full(len(i), USEFUL_H), USEFUL_H * i / 100
    return CostBreakdown(
        i, i >= 0, useful_h + degraded_h, useful_h, ("degraded",), degraded_h[:, None], i, 0 * i
    )


def policy(sub_saves: SubSaves | None = None, does: str = RELOAD) -> Policy:
    return paper_policy("any", does, 2.0, "given", sub_saves=sub_saves)


def curve(*responses: Response) -> StalenessCurve:
    return StalenessCurve("made up", responses)


BENT = Response(
    "partial",
    Metric.AUC,
    pls=np.array([0.0, 0.1, 0.3]),
    loss=np.array([0.0, 0.001, 0.005]),
    standard_error=np.array([0.0, 0.0002, 0.0004]),
    weight=falling(),  # the learning rate falls: late losses count less
    degrees=4.0,
)
THREE = losses(  # three jobs; the second loses nothing, the third more than was measured
    (0, 5.0, 4.0, 2.0, 0.25),  # 2/10 * 0.25 = 0.05
    (0, 10.0, 4.0, 4.0, 0.25),  # 4/10 * 0.25 = 0.1
    (2, 2.5, 8.0, 8.0, 0.4),  # 8/10 * 0.4 = 0.32
)
LOST = 0.05 * quarter(0.5) + 0.1 * quarter(1.0), 0.32 * quarter(0.25)  # by the first and the third


# --------------------------------------------------------------------------- by hand


def test_a_prediction_by_hand():
    found = curve(BENT).predict(policy(), Metric.AUC, THREE, jobs(0, 1, 2), USEFUL_H)
    # beyond 0.3 the last line goes on: 0.004 / 0.2 per PLS; the relative error 0.08 stays
    first, third = 0.01 * LOST[0], 0.005 + (LOST[1] - 0.3) * 0.02
    assert found.loss == pytest.approx([first, 0.0, third])
    assert found.standard_error == pytest.approx([0.2 * first, 0.0, 0.0004 * LOST[1] / 0.3])
    assert found.beyond.tolist() == [False, False, True]
    assert found.beyond_fraction == pytest.approx(1 / 3)
    assert found.mean().mean == pytest.approx((first + third) / 3)


def test_an_intercept_is_lost_by_each_job_that_loses_samples():
    line = Response.linear("partial", Metric.AUC, (0.01, 0.001), 0.5, intercept=-0.0004)
    found = curve(line).predict(policy(), Metric.AUC, THREE, jobs(0, 1, 2), USEFUL_H)
    assert found.loss == pytest.approx([0.0015 - 0.0004, 0.0, 0.0032 - 0.0004])
    helped = Response.linear("partial", Metric.AUC, (0.01, 0.001), 0.3).predict(np.array([-0.1]))
    assert [numbers.tolist() for numbers in helped] == [[0.0], [0.0]]  # no gain


def test_part_of_a_loss_may_go_by_the_interval():
    half = Response.linear("mfu", Metric.AUC, (1.0, 0), 1.0, weight=falling(), interval_share=0.5)
    one = losses((0, 5.0, 2.0, 2.0, 0.25))  # half-way; 0.2 of the job is lost
    worth, by_staleness, by_interval = 0.25 * quarter(0.5), 0.2, 0.3 / 2
    found = weighted_pls(half, one, np.arange(1), USEFUL_H, 3.0)
    assert found == pytest.approx([worth * (0.5 * by_staleness + 0.5 * by_interval)])
    never_saved = weighted_pls(half, one, np.arange(1), USEFUL_H, np.inf)  # half the job
    assert never_saved == pytest.approx([worth * (0.5 * by_staleness + 0.5 * 0.5 / 2)])


def test_an_extrapolation_errs_to_loss_where_the_last_points_flatten():
    flat = Response(
        "mfu", Metric.AUC, np.array([0, 0.1, 0.2]), np.array([0, 2.0, 2.0]), np.zeros(3)
    )
    assert flat.predict(np.array([0.4]))[0] == pytest.approx([2.0 + 0.2 * 10.0])


# --------------------------------------------------------------------------- whose response


@pytest.mark.parametrize(
    ("by", "most", "expected"),
    [("failures", 1.0, [0.0, 0.003, 0.006]), ("degraded", 0.02, [0.0, 0.0015, 0.003])],
)
def test_a_system_loses_by_what_its_response_counts(by, most, expected):
    ends, error = np.array([0.0, most]), np.array([0.0, 1e-4])
    response = Response("hsdp", Metric.AUC, ends, np.array([0.0, 0.003]), error, by=by)
    under = Policy("groups", (Rule(Reverts.NOBODY, ()),), elastic=Elastic("worker", (1.0, 0.9)))
    hsdp = replace(under, accuracy_model="hsdp")
    found = curve(response).predict(hsdp, Metric.AUC, THREE, jobs(0, 1, 2), USEFUL_H)
    assert found.loss == pytest.approx(expected)
    assert found.beyond.tolist() == [one > 0.003 for one in expected]
    assert curve(BENT).predict(hsdp, Metric.AUC, THREE, jobs(0, 1), USEFUL_H) is None


def test_a_system_that_never_slows_down_does_not_lose_by_that():
    ends = np.array([0.0, 1.0])
    response = Response("moc", Metric.AUC, ends, 0.1 * ends, 0.1 * ends, by="degraded")
    under = Policy("moc", (Rule(Reverts.ALL, ()),))
    moc = replace(under, accuracy_model="moc")
    with pytest.raises(ParameterError, match="never works at less than its speed"):
        curve(response).predict(moc, Metric.AUC, THREE, jobs(0, 1), USEFUL_H)


# --------------------------------------------------------------------------- for any of them

responses = st.lists(
    st.tuples(st.floats(0.01, 0.5), st.floats(0, 0.01), st.floats(1e-9, 0.001)),
    min_size=1,
    max_size=5,
).map(
    lambda steps: Response(
        "partial",
        Metric.AUC,
        *(np.concatenate([[0.0], np.cumsum(column)]) for column in zip(*steps, strict=True)),
        weight=falling(),
        interval_share=0.25,
    )
)


@given(responses, st.lists(st.floats(0, 5), min_size=2, max_size=10))
def test_who_loses_more_samples_loses_no_less_accuracy(response, weighted):
    loss, error = response.predict(np.sort(weighted))
    assert (np.diff(loss) >= -1e-12).all()
    assert (np.diff(error) >= -1e-12).all()


# --------------------------------------------------------------------------- replicates


def measured_response(*slopes: float) -> Response:
    """A line with replicates that disagree on its slope and on how late losses count."""
    mean = float(np.mean(slopes))
    ends = np.array([0.0, 1.0])
    replicates = tuple(
        Replicate(falling(4.0 + i), 0.0, slope, 1e-4) for i, slope in enumerate(slopes)
    )
    line = (ends, mean * ends, 0.1 * mean * ends)
    return Response("partial", Metric.AUC, *line, falling(), degrees=2.0, replicates=replicates)


def test_a_prediction_errs_by_what_its_replicates_differ():
    response = measured_response(0.01, 0.012, 0.014)
    found = curve(response).predict(policy(), Metric.AUC, THREE, jobs(0, 1, 2), USEFUL_H)
    by_each = np.zeros((3, 3))
    for i, slope in enumerate((0.01, 0.012, 0.014)):
        half, last, early = (quarter(at, 4.0 + i) for at in (0.5, 1.0, 0.25))
        by_each[i] = slope * np.array([0.05 * half + 0.1 * last, 0.0, 0.32 * early])
        by_each[i] += [1e-4, 0.0, 1e-4]
    assert found.apart == pytest.approx(by_each)
    assert found.standard_error == pytest.approx(jackknife_error(by_each))
    assert found.error_of_mean() == pytest.approx(jackknife_error(by_each.mean(axis=1)))
    assert found.error_of_mean() <= found.standard_error.mean()


@pytest.mark.parametrize(
    ("metric", "twin", "run", "worse_by"),
    [
        (Metric.AUC, 0.75, 0.7, 0.05),
        (Metric.LOG_LOSS, 0.45, 0.5, 0.05),
        (Metric.CALIBRATION, 0.9, 1.3, 0.2),  # clicks predicted over clicks: 1 is best
        (Metric.CALIBRATION, 1.3, 0.9, -0.2),
    ],
)
def test_how_much_worse_a_run_ended(
    metric: Metric, twin: float, run: float, worse_by: float
) -> None:
    assert metric.worse_by(twin, run) == pytest.approx(worse_by)
