"""Failures of logs under other systems, and scenarios from logs, against the simulator's truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim.commands.backtest.answer import answer_of_backtest
from cprsim.commands.backtest.replaying import backtests, bills
from cprsim.commands.calibrate.calibrating import calibrate, predict
from cprsim.commands.ledger import saving_every
from cprsim.errors import ParameterError
from cprsim.job.records import Clock
from cprsim.logs.jobs.facts import clock_of, facts_of, going_on
from cprsim.logs.jobs.ledger import ledgers
from cprsim.logs.jobs.reading import read_logs
from cprsim.results.pipeline import replay, simulate
from cprsim.scenario.logged import AS_IT_RAN, Listed
from tests.history.making import exported, ledger_of, told, write_events
from tests.making import call, maker

TEXT = """\
name: truth
job: {useful: 150 h, step: 6 s}
cluster: {emb_ps: 8}
failures: {kind: job, family: exponential, mtbf: 4 h}
costs:
  save: 3 min
  load: {family: gamma, mean: 6 min, shape: 4}
  detect: {family: gamma, mean: 3 min, shape: 2}
  reschedule: 5 min
recovery:
  - {strategy: full, name: ran, interval: 1 h}
  - {strategy: full, name: slower, interval: 3 h}
  - {strategy: partial, interval: 2 h}
simulation: {seed: 4, replications: 6}
"""
ATTEMPTS = Path(__file__).parents[2] / "docs" / "examples" / "attempts.csv"
OTHERS = ["{strategy: full, name: slower, interval: 3 h}", "{strategy: partial, interval: 2 h}"]


@pytest.fixture(scope="module")
def histories(tmp_path_factory):
    """Simulated jobs under full recovery, as logs, and what other systems cost them in truth."""
    folder = tmp_path_factory.mktemp("histories")
    experiment = maker(folder, TEXT)()
    outcome = simulate(experiment)
    truth = {one.policy.name: one.costs.wall_h - one.costs.useful_h for one in outcome.strategies}
    logs = folder / "logs"
    logs.mkdir()
    for number in range(6):
        log = replay(experiment, number)["ran"]
        events = exported(log, f"j{number:02d}", step_s=6.0, progress_every_h=0.2)
        write_events(logs / f"j{number:02d}.jsonl", events)
    return logs, truth


@pytest.fixture(scope="module")
def replayed(histories):
    logs, _ = histories
    found, left_out = backtests(
        ledgers(read_logs([logs]), n_draws=10), OTHERS, n_nodes=8, n_draws=2
    )
    assert left_out == ()
    return found


@pytest.mark.parametrize("place", range(3))
def test_a_system_costs_what_it_costs_on_the_same_failures(replayed, histories, place) -> None:
    """Beyond the log's end the failures are drawn, so that a slower system may meet others."""
    _, truth = histories
    true_h, name = list(truth.values())[place], [AS_IT_RAN, "slower", "partial"][place]
    off = []
    for job in replayed:
        system = job.systems[place]
        assert system.system == name
        off.append(system.overhead_h.mean() / true_h[int(job.job[1:])] - 1.0)
        if name == AS_IT_RAN:
            assert job.facts.observed_h.mean == pytest.approx(true_h[int(job.job[1:])], abs=1e-6)
    error = np.std(off, ddof=1) / np.sqrt(len(off))
    assert abs(np.mean(off)) <= 4 * error + (1e-6 if name == AS_IT_RAN else 1e-3)
    assert error < {AS_IT_RAN: 1e-6, "slower": 0.08, "partial": 0.03}[name]


def test_jobs_come_by_hours_saved_and_the_advice_is_the_cheapest(replayed) -> None:
    best = [max(job.saved_h(name).mean() for name in ("slower", "partial")) for job in replayed]
    assert best == sorted(best, reverse=True)
    made = answer_of_backtest(replayed[:1], ())
    answer, n = made.values, int(made.frames["jobs"]["n_failures"].sum())
    assert f"{n} failures here, may have {n - 1.96 * n**0.5:.0f} to " in str(made.document.remarks)
    assert (answer["recommended"], answer["runner_up"]) == ("partial", AS_IT_RAN)
    assert answer["saved_h"] > 0
    assert answer["runner_up_more_h"] == pytest.approx(answer["saved_h"])


def test_the_nth_time_of_a_list_is_the_nth_draw_of_its_replication() -> None:
    listed = Listed(np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]))
    one, other = np.random.default_rng(1), np.random.default_rng(1)
    drawn = [listed.sample(one, 2).tolist() for _ in range(4)]
    assert drawn == [[1, 4], [2, 5], [3, 6], [1, 4]]
    assert listed.sample(other, 2).tolist() == [1, 4]


def test_failures_that_strike_a_recovery_are_replayed_each_with_its_own_costs(tmp_path) -> None:
    """The second strikes while the first is noticed, the third while the second's node starts."""
    events = [
        (0, "job.start"), (0, "train.resume", {"step": 0}),
        (3600, "failure", {"step": 3600}), (3660, "failure"), (3700, "failure.detected"),
        (3800, "failure"), (3850, "failure.detected"), (4000, "load.start"),
        (4100, "rollback", {"step": 3000}), (4100, "train.resume", {"step": 3000}),
        (7200, "failure", {"step": 6100}), (7250, "failure.detected"), (7500, "load.start"),
        (7560, "rollback", {"step": 6000}), (7560, "train.resume", {"step": 6000}),
        (9560, "job.end", {"step": 8000}),
    ]  # fmt: skip
    facts = facts_of(*saving_every([ledger_of(tmp_path, told(*events))], "50 min"))
    assert facts.ledger.n_failures == 4
    at_s, own_s = 3600 * facts.failed_h, {k: 3600 * one for k, one in facts.own_h.items()}
    np.testing.assert_allclose(at_s[:, 0], [3600, 3660, 3800, 7200], atol=1e-3)
    assert own_s["detect"].shape == at_s.shape
    detect_s, reschedule_s, load_s = own_s["detect"], own_s["reschedule"], own_s["load"]
    np.testing.assert_allclose(detect_s[1:, 0], [40, 50, 50], atol=0.01)
    assert (detect_s[0] > 60).all() or np.allclose(detect_s[0], 60.6), "longer than its 60 s"
    np.testing.assert_allclose(reschedule_s[2:, 0], [150, 250], atol=0.01)
    assert (reschedule_s[1] > 100).all(), "the third failure cut it off after 100 s"
    assert set(np.round(reschedule_s[0])) <= {150, 250}, "never reached: that of others"
    np.testing.assert_allclose(load_s[2:, 0], [100, 60], atol=0.01)


def test_after_the_logs_end_failures_go_on_as_in_its_last_hours() -> None:
    """The rate falls to a tenth half way: what follows is nearer to the last hours than to all."""
    at_h = np.concatenate([np.arange(0.5, 50.0, 0.5), np.arange(50.0, 100.0, 5.0)])
    rng = np.random.default_rng(3)
    after = [going_on(at_h, 100.0, rng) for _ in range(400)]
    assert all(one.min() >= 100.0 and one.max() >= 200.0 for one in after)
    rates = np.array([(one < 200.0).sum() / 100.0 for one in after])
    assert 0.2 < np.median(rates) < 0.6 * len(at_h) / 100.0
    steady = [going_on(np.arange(1.0, 200.0, 2.0), 200.0, rng) for _ in range(400)]
    counts = np.array([(one < 300.0).sum() for one in steady])
    assert abs(counts.mean() - 50.0) < 4 * counts.std() / 20 + 1.0
    assert counts.std() > 3.0, "the rate that 100 failures leave open"


@pytest.mark.long
def test_staleness_is_priced_by_the_curve_that_belongs_to_the_job(histories) -> None:
    logs, _ = histories
    jobs = ledgers(read_logs([logs / "j00.jsonl"]), n_draws=5)
    said = ["accuracy.curve=criteo-kaggle-linear", "prices.currency=USD", "prices.auc_loss=100",
            "prices.node_hour=1"]  # fmt: skip
    found, _ = backtests(jobs, OTHERS[1:], n_nodes=8, n_draws=4, overrides=said)
    ran, partial = found[0].systems
    assert ran.use.auc_loss == 0.0
    assert partial.use.auc_loss > 0.0
    bill = bills(found)["partial"].job.cents
    assert abs(bill["accuracy"] - 100 * 100 * 1e4 * partial.use.auc_loss) <= 1


def test_failures_that_never_strike_a_recovery_lie_on_the_progress_clock(tmp_path) -> None:
    """Half of the hours are recovery, and none of 20 failures strikes one: 2^-20 on wall time."""
    events = [(0.0, "job.start"), (0.0, "train.resume", {"step": 0})]
    for number in range(20):
        at_s, step = 2000.0 * number, 1000 * number
        events += [
            (at_s + 1000, "failure", {"step": step + 1000}),
            (at_s + 1100, "failure.detected"),
            (at_s + 2000, "train.resume", {"step": step + 1000}),
        ]
    events.append((41000.0, "job.end", {"step": 21000}))
    clock, why = clock_of(ledger_of(tmp_path, told(*events)))
    assert clock is Clock.PROGRESS
    assert "none of 20 failures" in why
    with pytest.raises(ParameterError, match="no failure in its log"):
        facts_of(ledger_of(tmp_path, told(*events[:2], (9.0, "job.end", {"step": 9}))))


def test_a_scenario_of_the_logs_has_their_costs(histories) -> None:
    logs, _ = histories
    jobs = ledgers(read_logs([logs]), n_draws=5)
    found = calibrate(jobs, n_nodes=8)
    fits = {one.name: one for one in found.costs}
    for kind, true_min in (("save", 3.0), ("load", 6.0), ("detect", 3.0), ("reschedule", 5.0)):
        mean = fits[kind].mean
        error = max((mean.high - mean.low) / 4, 1e-9)
        assert abs(mean.mean - true_min / 60) <= 4 * error, kind
    mtbf = found.gaps.best.mean
    assert abs(mtbf.mean - 4.0) <= 4 * mtbf.standard_error
    assert "interval: 1.0" in str(found.scenario)


@pytest.fixture
def few_futures(monkeypatch) -> None:
    """80 instead of 400 that the earlier half leaves open."""
    monkeypatch.setattr("cprsim.commands.calibrate.calibrating.N_FUTURES", 80)


@pytest.mark.long
@pytest.mark.usefixtures("few_futures")
def test_the_earlier_half_predicts_the_later_one(histories) -> None:
    """The true mean of what was to come is known: mean ETTR of 6 jobs of the same scenario."""
    logs, truth = histories
    jobs = ledgers(read_logs([logs]), n_draws=5)
    one = predict(jobs, n_nodes=8)
    true_ettr = 150.0 / (150.0 + truth["ran"].mean())
    assert one["n_failures_before"] >= 100
    assert abs(one["predicted"].mean - true_ettr) < 0.02
    assert one["predicted"].low < true_ettr < one["predicted"].high


# --------------------------------------------------------------------------- the commands


@pytest.mark.long
@pytest.mark.usefixtures("few_futures")
def test_a_calibrated_scenario_is_valid_and_written_once(histories, tmp_path) -> None:
    log, made = histories[0] / "j00.jsonl", tmp_path / "scenario.yaml"
    assert call("calibrate", log, "--save", made).exit_code == 0
    assert call("validate", made).exit_code == 0
    assert call("calibrate", log, "--save", made).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ledger", "missing.jsonl"), "missing.jsonl"),
        (("backtest", "LOG"), "--recovery: name at least one system"),
        (("backtest", "LOG", "--recovery", "nonsense"), "recovery.1: `nonsense`"),
        (("backtest", "LOG", "--recovery", "gemini"), "recovery.1"),
        (("backtest", "LOG", "--recovery", "{a: ["), "--recovery: is not valid YAML"),
        (("backtest", "LOG", "--recovery", "full", "--set", "prices=["), "--set prices: is not"),
        (("calibrate", ATTEMPTS), "the interval between saves: give it, as in --saves-every"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(histories, arguments, told) -> None:
    log = histories[0] / "j01.jsonl"
    done = call(*(log if one == "LOG" else one for one in arguments))
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    assert told in done.stderr
