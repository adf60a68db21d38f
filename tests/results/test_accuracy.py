"""What a curve makes of an outcome: columns, means, differences, the folder, what is said."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from cprsim.accuracy.curve import Response, StalenessCurve
from cprsim.accuracy.curve_file import write_curve
from cprsim.commands.comparison import compare
from cprsim.commands.run.sentences import accuracy_sentences
from cprsim.job.losses import Metric
from cprsim.job.records import SubSaves
from cprsim.results.identity import Identity
from cprsim.results.metrics import differences, replication_rows, summarise, why_unpriced
from cprsim.results.run import load_result
from tests.results import conftest as made

# The fixture's cpr loses net PLS 0.15, 0 and 0.05 in its three replications.
LINES = (
    Response.linear("partial", Metric.AUC, (0.02, 0.002), 0.1, degrees=4.0),
    Response.linear("mfu", Metric.AUC, (0.01, 0.001), 0.5, settings=SubSaves("mfu")),
)
FILE = StalenessCurve(
    "lines", LINES, {"samples": 1000}, "cprsim measure lines.yaml",
    origin="by hand", notes=("Take care.",),
)  # fmt: skip
LOSSES = np.array([0.003, 0.0, 0.001])


@pytest.fixture
def priced(outcome):
    """The outcome of `outcome`, with a curve and a strategy that saves by priority."""
    full, cpr = outcome.strategies
    policy = replace(made.CPR, name="cpr-mfu", sub_saves=SubSaves("mfu"))
    strategies = (full, cpr, replace(cpr, policy=policy))
    return replace(outcome, strategies=strategies, curve=FILE)


@pytest.fixture
def written(write, priced, logbook, tmp_path):
    """The priced outcome in its folder; parts can be exchanged."""

    def _written(file=FILE, **changed):
        path = tmp_path / f"{file.name}.json"
        write_curve(path, file)
        logs = logbook | {"cpr-mfu": logbook["cpr"]}
        parts = {"outcome": priced, "logs": logs, "curve_path": path} | changed
        return write(**parts)

    return _written


def test_losses_are_the_curves_at_net_pls(priced):
    rows = replication_rows(priced).set_index("strategy")
    assert rows.loc["cpr", "auc_loss"].to_numpy() == pytest.approx(LOSSES)
    assert rows.loc["cpr", "auc_loss_se"].to_numpy() == pytest.approx(LOSSES / 10)
    assert rows.loc["cpr-mfu", "auc_loss"].to_numpy() == pytest.approx(LOSSES / 2)
    assert rows.loc["cpr", "beyond_measured"].tolist() == [1, 0, 0]
    assert rows.loc["cpr-mfu", "beyond_measured"].tolist() == [0, 0, 0]
    assert rows.loc["full", "auc_loss"].tolist() == [0, 0, 0]
    assert rows.loc["cpr", "log_loss_rise"].isna().all()  # was not measured
    assert rows.loc["full", "log_loss_rise"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("sub_saves", "why"),
    [
        (None, ""),
        (SubSaves("mfu"), ""),
        (SubSaves("mfu", 0.25), "it was measured with sub-saves of 12.5 % of 7 large tables, here "
         "they are of 25 % of 7 large tables"),
        (SubSaves("ssu", sample_period=3), "it was measured with sub-saves of 12.5 % of 7 large "
         "tables, one sample in 2, here they are of 12.5 % of 7 large tables, one sample in 3"),
        (SubSaves("scar"), "the response of `scar` is in log-loss alone, not in AUC"),
        (SubSaves("round_robin"), "it has no response of `round_robin` in AUC; it has: partial, "
         "mfu, ssu"),
    ],
)  # fmt: skip
def test_why_a_curve_does_not_price_a_policy(sub_saves: SubSaves | None, why: str) -> None:
    ssu = Response.linear("ssu", Metric.AUC, (0.01, 0.001), 0.5, settings=SubSaves("ssu"))
    scar = Response.linear("scar", Metric.LOG_LOSS, (0.01, 0.001), 0.5)
    curve = replace(FILE, responses=(*LINES, ssu, scar))
    assert why_unpriced(curve, replace(made.CPR, sub_saves=sub_saves)) == why


def test_the_interval_holds_both_errors(priced):
    found = summarise(priced)["cpr"]["auc_loss"]
    mean, curve = LOSSES.mean(), LOSSES.mean() / 10
    simulated = LOSSES.var(ddof=1) / 3
    error = sqrt(simulated + curve**2)
    degrees = error**4 / (simulated**2 / 2 + curve**4 / 4)
    assert found.mean == pytest.approx(mean)
    assert found.half_width == pytest.approx(stats.t.ppf(0.975, degrees) * error)


def test_the_folder_keeps_the_curve_and_names_it(written):
    result = written()
    assert (result.path / "curve.json").read_bytes()
    found = load_result(result.path)
    assert found.curve == result.curve
    assert (found.curve.name, found.curve.file) == ("lines", "curve.json")
    assert found.curve.sha256 == found.manifest["files"]["curve.json"]["sha256"]


def test_what_is_said_of_the_accuracy(written, priced):
    assert accuracy_sentences(written()) == [
        "AUC loss by the staleness curve lines (by hand); its error is in the interval.",
        "Take care.",
        "cpr: 33.3 % of its jobs lose more than was measured; their loss is extrapolated.",
    ]
    full, cpr, _ = priced.strategies
    costs = replace(cpr.costs, finished=np.array([True, False, True]))
    never = replace(priced, strategies=(full, replace(cpr, costs=costs)))
    result = written(outcome=never, identity=Identity("never", "1", {}))
    assert "There is no AUC loss to show" in accuracy_sentences(result)[0]


def test_results_by_one_curve_are_compared_closer_than_by_two(written):
    one = written(identity=Identity("one", "1", {}))
    again = written(identity=Identity("again", "2", {}))
    other = written(replace(FILE, name="others"), identity=Identity("other", "3", {}))

    def interval(a, b):
        table = compare(a, b).set_index(["strategy", "quantity"])
        found = table.loc[("cpr", "auc_loss")]
        return found["difference"], found["difference_high"] - found["difference_low"]

    assert interval(one, again) == (0, 0)
    difference, width = interval(one, other)
    error = sqrt(2) * LOSSES.mean() / 10
    assert difference == 0
    assert width == pytest.approx(2 * stats.t.ppf(0.975, 8) * error)  # 4 degrees and 4
    quantities = compare(one, other).set_index("strategy").loc["cpr", "quantity"].tolist()
    assert "log_loss_rise" not in quantities  # known to nobody


SLOPES = {
    "partial": np.array([0.021, 0.018, 0.024, 0.019, 0.020]),
    "mfu": np.array([0.011, 0.009, 0.0125, 0.0095, 0.01]),
}
# A curve measured on some seeds: slopes are their means, errors those of the means.
SEEDED = StalenessCurve(
    "seeded",
    tuple(
        Response.linear(
            name, Metric.AUC, (slopes.mean(), slopes.std(ddof=1) / sqrt(5)), 0.5, degrees=4.0,
            settings=None if name == "partial" else SubSaves("mfu"),
        )
        for name, slopes in SLOPES.items()
    ),
    kernel={"samples": 1},
    command="made",
    checks={"auc": {"slopes": {name: {"by_seed": [*of]} for name, of in SLOPES.items()}}},
)  # fmt: skip


def test_errors_of_two_responses_of_one_curve_count_as_independent(priced):
    rows = replication_rows(replace(priced, curve=SEEDED))
    # by hand: net PLS 0.15, 0 and 0.05
    lost = np.array([0.15, 0.0, 0.05])
    simulated = (lost * (SLOPES["mfu"] - SLOPES["partial"]).mean()).var(ddof=1) / 3
    found = differences(rows, 6, "cpr")["cpr-mfu"]["auc_loss"]
    curves = [of.var(ddof=1) / 5 * lost.mean() ** 2 for of in SLOPES.values()]
    error = sqrt(simulated + sum(curves))
    degrees = error**4 / (simulated**2 / 2 + sum(one**2 / 4 for one in curves))
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, degrees) * error)
