"""The hours of jobs from their logs: against the simulator's own accounts, and by hand."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from benchmarks.interval_coverage import ledger, rows_of
from cprsim.logs.jobs.causes import is_planned
from cprsim.logs.jobs.ledger import without_stops
from cprsim.results.pipeline import replay, simulate
from tests.history.making import BEGINS_NS, damaged, exported, ledger_of, told
from tests.making import maker, small_scenario

MS = 1e-3 / 3600
HARD = (
    "none, full, "
    "{strategy: full, name: background, costs: {save: {stall: 30 s, background: 4 min}}}"
)
PAPER = small_scenario(HARD, mtbf="3 h", replications=3).replace("useful: 20 h", "useful: 40 h")
PAPER = PAPER.replace("emb_ps: 4", "emb_ps: 4, spares: 1, repair: 2 h")
SYSTEMS = """\
name: small
job: {useful: 60 h, step: 12 s}
cluster: {workers: 16, state: 100 GB, link: 400 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 8 h, role: worker}
storage: {bandwidth: 800 Gbit/s}
costs: {save: 30 s, load: 2 min, detect: 1 min, reschedule: 4 min}
recovery: [gemini]
simulation: {seed: 1, replications: 2}
"""


@pytest.mark.parametrize(
    ("text", "replication", "progress_every_h"),
    [(PAPER, 0, 0.1), (PAPER, 2, 0.1), pytest.param(SYSTEMS, 1, None, marks=pytest.mark.long)],
)
def test_a_log_of_the_simulator_folds_to_its_accounts(
    tmp_path, text, replication, progress_every_h
) -> None:
    experiment = maker(tmp_path, text)()
    outcome, logs = simulate(experiment), replay(experiment, replication)
    for one in outcome.strategies:
        costs, name = one.costs, one.policy.name
        log = exported(logs[name], "j", step_s=12.0, progress_every_h=progress_every_h)
        found = ledger_of(tmp_path, log, n_draws=3)
        for part in costs.parts:
            true_h = costs.hours_of(part)[replication]
            if part == "lost" and not costs.finished[replication]:
                # stopped while it made work again: the simulator books the furthest it ever was
                # as useful, the ledger what was in the state at the end
                never_h = costs.useful_h[replication] - found.useful_h.mean
                assert never_h >= 0
                true_h += never_h
            assert found.parts[part].mean == pytest.approx(true_h, abs=MS), (name, part)
        if costs.finished[replication]:
            assert found.useful_h.mean == pytest.approx(costs.useful_h[replication], abs=MS)
        assert found.n_failures == costs.n_failures[replication]
        assert found.n_saves == costs.n_saves[replication]


def test_a_warm_up_comes_back_whether_the_log_names_it_or_not(tmp_path) -> None:
    """The log of a simulated job: whole, with `train.resume` before the warm-up, and damaged."""
    text = PAPER.replace("load:", "warmup: {family: gamma, mean: 9 min, shape: 4}, load:")
    experiment = maker(tmp_path, text)()
    full, logs = simulate(experiment).strategies[1], replay(experiment, 2)
    true_h = float(full.costs.hours_of("warm-up")[2])
    assert true_h > 0.5
    log = list(exported(logs["full"], "j", step_s=12.0, progress_every_h=0.1))
    silent = [*log]
    for place in [n for n, event in enumerate(log) if event["event"] == "warm-up.start"]:
        silent[place] = {**log[place], "event": "train.resume"}
        until = next(n for n in range(place, len(log)) if log[n]["event"] != "warm-up.start")
        if log[until]["event"] == "train.resume":  # else a failure cut the warm-up off
            silent[until] = {**log[until], "event": "progress"}
    for events in (log, silent):
        found = ledger_of(tmp_path, events).parts["warm-up"]
        assert found.low - MS <= true_h <= found.high + MS
    thin = damaged(silent, np.random.default_rng(3), missing=0.1, unseen_deaths=0.3)
    found = ledger_of(tmp_path, thin).parts["warm-up"]
    assert found.low < found.high < 1.3 * true_h
    assert found.low <= true_h <= found.high


def test_a_warm_up_that_no_restart_shows_is_unknown(tmp_path) -> None:
    events = [event for event in BY_HAND if event[:2] != (340, "train.resume")]
    attempts = "start,end,last_step\n0,24,50\n48,72,99\n"
    for log in (events, attempts):
        answer = ledger_of(tmp_path, log if isinstance(log, str) else told(*log), "h")
        assert np.isnan(answer.parts["warm-up"].mean), answer.parts["warm-up"]
        assert answer.inferred["warm_ups"] == 1
        np.testing.assert_allclose(sum(answer.draws.values()), answer.wall_h, rtol=1e-12)


def test_the_time_from_a_kill_to_the_next_start_is_reschedule(tmp_path) -> None:
    names = ("failure.detected", "reschedule.start", "load.start")
    events = [event for event in BY_HAND if event[1] not in names]
    found = ledger_of(tmp_path, told(*events, (295, "job.start")))
    assert seconds(found)["reschedule"] == pytest.approx(45)
    assert seconds(found)["load"] == pytest.approx(45)
    assert "detect" not in seconds(found)


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
    (incident,) = found.incidents
    assert (incident.node, 3600 * incident.hours.mean) == ("n7", pytest.approx(210))
    assert sum(found.inferred.values()) == 0
    cut = ledger_of(tmp_path, told(*BY_HAND[:-1]))  # at its last event
    assert (cut.ended, cut.inferred["ends"], cut.useful_h) == (False, 1, found.useful_h)


def test_how_long_a_job_stood_by_plan_moves_no_failure(tmp_path) -> None:
    def working(stood_s: float) -> tuple[float, ...]:
        later = (1, "job.start"), (9, "train.resume", {"step": 180}), *BY_HAND[6:]
        told_later = [(200 + stood_s + at_s, *said) for at_s, *said in later]
        stop = (200, "job.end", {"step": 180, "outcome": "stopped"})
        job = ledger_of(tmp_path, told(*BY_HAND[:5], stop, *told_later))
        assert 3600 * job.parts["planned"].mean == pytest.approx(stood_s + 1)
        job = without_stops(job)
        return job.wall_h, job.incidents[1].at_h, *np.ravel(job.useful_at_h)

    assert working(9e5) == pytest.approx(working(9))


def test_saves_in_the_background_of_which_no_event_tells_the_end(tmp_path) -> None:
    saved = (460, "save.start", {"step": 220}), (490, "save.resume"), BY_HAND[-1]
    found = ledger_of(tmp_path, told(*BY_HAND[:4], (130, "save.resume"), *BY_HAND[5:-2], *saved))
    assert found.n_saves == 2
    assert 3600 * found.save_stalls_h == pytest.approx([20, 30])


def test_a_death_that_nobody_saw_lies_after_the_last_sign_of_life(tmp_path) -> None:
    events = [event for event in BY_HAND if event[1] != "failure"]
    found = ledger_of(tmp_path, told(*events))
    detect = found.parts["detect"]
    assert 0 <= detect.low < detect.high <= 30 / 3600
    assert found.inferred["deaths"] == 1
    np.testing.assert_allclose(sum(found.draws.values()), found.wall_h, rtol=1e-12)
    at = next(place for place, event in enumerate(events) if event[1] == "failure.detected")
    events[at] = (260, "failure.detected", {"last_seen_unix_nano": BEGINS_NS + 255 * 10**9})
    found = ledger_of(tmp_path, told(*events))
    assert found.parts["detect"].high <= 5 / 3600 + 1e-12


def test_damaged_logs_give_the_hours_within_a_few_percent() -> None:
    """Not the rate of the intervals, which takes the benchmark's hundreds: errors, and widths."""
    by_part = defaultdict(list)
    for seed in range(6):
        for row in rows_of(ledger, seed):
            by_part[row["what"]].append((row["width"], row["error"]))
    assert len(by_part) == 6
    for part, rows in by_part.items():
        width, error = np.array(rows).T
        most_error, most_width = (0.10, 0.3) if part.endswith("detect") else (0.03, 0.2)
        assert abs(error.mean()) < most_error, part
        assert np.median(width) < most_width, part


def test_ends_are_planned_in_the_words_of_schedulers_and_people() -> None:
    planned = (
        "0, 0:0, exit_code=0, DeadlineExceeded, TERM_RUNLIMIT, TO, killed by user, "
        "CANCELLED by 1001, end of allocation, job exceeded walltime, KeyboardInterrupt, "
        "`Trainer.fit` stopped: `max_steps=900` reached., max_steps reached, early stopping"
    )
    failed = (
        "0:9, exit 10, DEADLINE_EXCEEDED, TERM_MEMLIMIT, F, aborted, killed by OOM, "
        "memory allocation, SIGTERM, Timeout: NCCL, max retries reached, RUNNING"
    )
    assert [word for word in planned.split(", ") if not is_planned(word)] == []
    assert [word for word in failed.split(", ") if is_planned(word)] == []
