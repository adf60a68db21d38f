"""The hours of jobs from their logs: against the simulator's own accounts, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.experiments.pipeline import replay, simulate
from cprsim.history.ledger import LEDGER_PARTS
from tests.history.making import damaged, exported, ledger_of, told
from tests.making import maker, small_scenario

MS = 1e-3 / 3600
HARD = (
    "none, full, {strategy: partial, interval: young}, {strategy: cpr-mfu, target_pls: 0.1}, "
    "{strategy: full, name: background, costs: {save: {stall: 30 s, background: 4 min}}}"
)


@pytest.mark.parametrize("replication", range(3))
def test_a_log_of_the_simulator_folds_to_its_accounts(tmp_path, replication) -> None:
    make = maker(tmp_path, small_scenario(HARD, mtbf="3 h", replications=3))
    experiment = make("job.useful=40 h", "cluster.spares=1", "cluster.repair=2 h")
    outcome, logs = simulate(experiment), replay(experiment, replication)
    for one in outcome.strategies:
        log = logs[one.policy.name]
        found = ledger_of(tmp_path, exported(log, "j", step_s=2.0, progress_every_h=0.1), n_draws=3)
        costs, name = one.costs, one.policy.name
        for part in costs.parts:
            true_h = costs.hours_of(part)[replication]
            assert found.parts[part].mean == pytest.approx(true_h, abs=MS), (name, part)
        assert found.useful_h.mean == pytest.approx(costs.useful_h[replication], abs=MS)
        assert found.n_failures == costs.n_failures[replication]
        assert found.n_saves == costs.n_saves[replication]


@pytest.mark.long
def test_the_hours_of_a_recovery_system_fold_too(tmp_path) -> None:
    text = """\
name: small
job: {useful: 60 h, step: 12 s}
cluster: {workers: 16, state: 100 GB, link: 400 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 8 h, role: worker}
storage: {bandwidth: 800 Gbit/s}
costs: {save: 30 s, load: 2 min, detect: 1 min, reschedule: 4 min}
recovery: [gemini, {strategy: hsdp, options: {group: 2}}]
simulation: {seed: 1, replications: 2}
"""
    experiment = maker(tmp_path, text)()
    outcome, logs = simulate(experiment), replay(experiment, 1)
    for one in outcome.strategies:
        found = ledger_of(tmp_path, exported(logs[one.policy.name], "j", step_s=12.0), n_draws=3)
        costs = one.costs
        for part in costs.parts:
            true_h = costs.hours_of(part)[1]
            got_h = found.parts[part].mean if part in found.parts else 0.0
            assert got_h == pytest.approx(true_h, abs=MS), (one.policy.name, part)


BY_HAND = (
    (0, "job.start"),
    (10, "train.resume", {"step": 0}),
    (110, "progress", {"step": 100}),
    (110, "save.start", {"step": 100}),
    (130, "save.commit", {"step": 100}),
    (230, "progress", {"step": 200}),
    (250, "failure", {"step": 220, "node": "n7"}),
    (260, "failure.detected"),
    (275, "reschedule.start"),
    (300, "load.start"),
    (340, "train.resume", {"step": 100}),
    (460, "progress", {"step": 220}),
    (540, "progress", {"step": 300}),
    (540, "job.end", {"step": 300}),
)


def seconds(found) -> dict[str, float]:
    parts = {name: 3600 * one.mean for name, one in found.parts.items() if one.mean > 0}
    return {"useful": 3600 * found.useful_h.mean, **parts}


def test_a_job_by_hand(tmp_path) -> None:
    found = ledger_of(tmp_path, told(*BY_HAND))
    by_hand = {
        "start": 10, "useful": 300, "save": 20, "detect": 10, "wait": 15, "reschedule": 25,
        "load": 40, "lost": 120,
    }  # fmt: skip
    assert seconds(found) == pytest.approx(by_hand, abs=1e-6)
    odd = [(*one[:2], {**dict(*one[2:]), "part": "coffee"}) for one in BY_HAND]  # none of ours
    assert seconds(ledger_of(tmp_path, told(*odd))) == seconds(found)
    (incident,) = found.incidents
    assert (incident.node, 3600 * incident.hours.mean) == ("n7", pytest.approx(210))
    assert sum(found.inferred.values()) == 0


@pytest.mark.parametrize("missing", ["save.commit", "save.start", "train.resume", "load.start"])
def test_one_missing_event_is_made_up_by_the_steps(tmp_path, missing) -> None:
    """What steps tell comes out as it was; the border of two stages lies anywhere between."""
    first = next(place for place, event in enumerate(BY_HAND) if event[1] == missing)
    places = [place for place in range(len(BY_HAND)) if place != first]
    if missing == "train.resume":
        places = [p for p, event in enumerate(BY_HAND) if event[:2] != (340, "train.resume")]
    found = ledger_of(tmp_path, told(*(BY_HAND[place] for place in places)))
    assert 3600 * found.useful_h.mean == pytest.approx(300, abs=1e-6)
    assert 3600 * found.parts["save"].mean == pytest.approx(20, abs=1e-6)
    assert 3600 * found.parts["lost"].mean == pytest.approx(120, abs=1e-6)
    assert sum(found.inferred.values()) >= (missing != "load.start")


def test_a_death_that_nobody_saw_lies_after_the_last_sign_of_life(tmp_path) -> None:
    events = [event for event in BY_HAND if event[1] != "failure"]
    found = ledger_of(tmp_path, told(*events))
    detect = found.parts["detect"]
    assert 0 <= detect.low < detect.high <= 30 / 3600
    assert found.inferred["deaths"] == 1
    np.testing.assert_allclose(sum(found.draws.values()), found.wall_h, rtol=1e-12)
    at = next(place for place, event in enumerate(events) if event[1] == "failure.detected")
    events[at] = (260, "failure.detected", {"last_seen_unix_nano": 255 * 10**9})
    found = ledger_of(tmp_path, told(*events))
    assert found.parts["detect"].high <= 5 / 3600 + 1e-12


def test_a_job_without_an_end_is_cut_at_its_last_event_and_that_is_counted(tmp_path) -> None:
    found = ledger_of(tmp_path, told(*BY_HAND[:-1]))
    assert (found.ended, found.inferred["ends"]) == (False, 1)
    assert seconds(found)["useful"] == pytest.approx(300, abs=1e-6)


def test_accounts_close_whatever_is_missing(tmp_path) -> None:
    make = maker(tmp_path, small_scenario("full, {strategy: partial, interval: young}", mtbf="2 h"))
    rng = np.random.default_rng(3)
    logs = replay(make(), 2)
    for missing in (0.0, 0.1, 0.3, 0.6, 0.9):
        for log in logs.values():
            whole = list(exported(log, "j", progress_every_h=0.2, says_step_seconds=False))
            some = damaged(whole, rng, missing=missing, unseen_deaths=0.5)
            found = ledger_of(tmp_path, some, n_draws=20)
            assert all((draws >= -1e-9).all() for draws in found.draws.values())
            sums = sum(found.draws[name] for name in ("useful", *LEDGER_PARTS))
            np.testing.assert_allclose(sums, found.wall_h, rtol=1e-9, atol=1e-9)
