"""What is said of a run: verdicts, savings, slow saves, and which replications are worth a look."""

from dataclasses import replace

import numpy as np
import pytest

import cprsim
from cprsim.commands.run.answer import answer_of_run
from cprsim.commands.run.sentences import savings, verdicts
from cprsim.job.policy import RELOAD, ROLL_BACK
from cprsim.results.identity import Identity
from cprsim.results.pipeline import Outcome
from cprsim.results.run import judged_by, warnings_of, worth_seeing
from tests.making import call, maker, paper_policy, small_scenario
from tests.results import conftest as made
from tests.simulators import job_of, logged


def test_verdicts_say_what_the_numbers_do_not(write):
    never = made.strategy(made.NONE, [1, 1], [0, 0], finished=[False, False])
    partly = made.strategy(made.FULL, [1, 1], [0, 0], finished=[True, False])
    longer = paper_policy("lazy", RELOAD, 11.0, "given")
    strategies = (never, partly, made.strategy(longer, [0, 0], [0, 0]))
    outcome = Outcome(made.USEFUL_H, made.CLUSTER, strategies)
    said = list(verdicts(write(outcome=outcome)))
    assert len(said) == 3
    assert said[0].startswith("none never finishes: 0 % of 2 replications were done")
    assert said[0].endswith(", spent their time on: 9.09 % save.")
    assert said[1].startswith("full often does not finish: 50.0 % of 2 replications")
    assert said[2].startswith("lazy never saves: its interval of 11 h is longer than the job. One")
    assert said[2].endswith("stalls only 0 % of the useful time; an interval of 5 h saves once.")
    saving = Identity("stops", "planned: {every: 9 h, saves: true}\n", {})
    saves, stuck, _ = verdicts(write(outcome=outcome, identity=saving))
    assert saves == "What saves at all does so at each planned stop too, every 9 h."
    assert stuck.endswith(". It stops as planned every 9 h: a restart must fit between stops.")


def test_savings_are_against_a_full_recovery_that_finished(write):
    (said,) = savings(write())
    assert said.startswith("cpr removes 96.0 % of full's overhead: ")
    cpr = made.strategy(made.CPR, [0.1, 0.1], [0, 0])
    for done, expected in ((False, []), (True, ["9.00 percentage points."])):
        full = made.strategy(made.FULL, [1, 1], [0, 0], finished=[done, done])
        outcome = Outcome(made.USEFUL_H, made.CLUSTER, (full, cpr))
        said = savings(write(outcome=outcome, identity=Identity(f"{done}", "stuck", {})))
        assert [one.rpartition(": ")[2] for one in said] == expected


def test_a_precision_that_was_not_reached_is_said(write):
    spread = (made.strategy(made.FULL, [1, 2], [0, 0]),)
    for precision, n_said in ((0.01, 1), (100.0, 0)):
        outcome = Outcome(made.USEFUL_H, made.CLUSTER, spread, precision)
        said = list(verdicts(write(outcome=outcome, identity=Identity(f"p{precision}", "{}", {}))))
        assert len(said) == n_said
        assert all("not to the 1.00 % asked for" in line for line in said)


def test_what_a_rehearsal_measured_is_shown_and_recommends_no_entry(write):
    both = [replace(made.FULL, name=f"full, {how}") for how in ("predicted", "measured")]
    strategies = tuple(made.strategy(policy, [1, 1], [0, 0]) for policy in both)
    text = "recovery:\n- {strategy: full, name: full, interval: 2 h}\n"
    outcome = Outcome(made.USEFUL_H, made.CLUSTER, strategies)
    logs = dict.fromkeys((policy.name for policy in both), logged(job_of(ROLL_BACK), []))
    answer = answer_of_run(write(outcome=outcome, logs=logs, identity=Identity("r", text, {})))
    assert answer.values["recommendation"] is None
    assert answer.frames["strategies"]["strategy"].tolist() == [policy.name for policy in both]


SLOW = ["costs.save={stall: 1 s, background: 5 min}"]
SAID = (
    "full: a save to `remote` runs in the background for 5 min, longer than the 2 min in which the "
    "next is due with 1 in flight: saves, and the job, wait for one another. Take at least 5 min."
)


JOB = ["cluster.shard_size=10 GB", "cluster.link=10 Gbit/s", "storage={bandwidth: 1 GB/s}"]
TIERS = "{{strategy: scr, options: {{disk: 1 GB/s, every: [1 min, 2 h, {}]}}}}"  # the last far away
OWN = (
    "{{strategy: policy, options: {{tiers: [{{name: far, medium: remote}}], captures: [{{tier: "
    "far, every: 2 min, when_busy: {}}}], rules: [{{reverts: all, sources: [far], stages: [load]}}"
    "]}}}}"
)
FULL = "{strategy: full, interval: 2 min}"


@pytest.mark.parametrize(
    ("recovery", "overrides", "warned"),
    [
        (FULL, SLOW, SAID),
        ("{strategy: full, interval: 5 min}", SLOW, None),
        ("{strategy: full, interval: 5 min}", ["job.horizon=20 h"], "jobs end after 20 h, done or"),
        (FULL, ["costs.save=5 min"], None),  # it stalls the job: nothing waits for it
        (FULL, [*SLOW, "job.useful=3 min"], None),  # one save alone waits for none
        ("{strategy: cpr-mfu, interval: 4 min}", SLOW, "cpr-mfu: a save"),
        ("{strategy: cpr-mfu, interval: 10 min}", SLOW, None),  # r of both times
        (FULL, ["costs.save={stall: 1 s, background: {family: gamma, mean: 5 min, shape: 2}}"],
         SAID),
        # a system is warned of for each tier that is too slow
        (TIERS.format("2 min"), [*SLOW, *JOB], "scr: a save to `remote` runs in the background "
         "for 5 min, longer than the 2 min in"),
        (TIERS.format("5 min"), [*SLOW, *JOB], None),
        # saves that are left out while one is under way hold up nobody
        (OWN.format("wait"), SLOW, "policy: a save to `far`"),
        (OWN.format("skip"), SLOW, None),
    ],
)  # fmt: skip
def test_a_background_that_is_longer_than_the_interval_is_warned_of(
    tmp_path, recovery, overrides, warned
):
    said = [*warnings_of(maker(tmp_path, small_scenario(recovery))(*overrides)).values()]
    assert len(said) == (warned is not None)
    assert all(one.startswith(warned) for one in said)


def test_it_is_said_by_validate_and_run(scenario):
    scenario.write_text(small_scenario(FULL, replications=3), "utf-8")
    checked = call("validate", scenario, "--set", *SLOW)
    assert checked.stdout.splitlines() == [f"{scenario}: ok (small: full)", "", f"Warning: {SAID}"]
    answer = cprsim.run(scenario, SLOW)
    assert answer.values["warnings"] == (SAID,)
    assert answer.document.remarks[0] == f"Warning: {SAID}"


@pytest.fixture
def with_walls(write):
    """The result with other wall times of full recovery, the second of two strategies."""
    strategies = [made.strategy(policy, [1] * 20, [0] * 20) for policy in (made.CPR, made.FULL)]
    result = write(outcome=Outcome(made.USEFUL_H, made.CLUSTER, tuple(strategies)))

    def changed(walls, finished=True):
        rows = result.replications.copy()
        full = rows["strategy"] == "full"
        rows.loc[full, "wall_h"] = np.asarray(walls, float)
        rows.loc[full, "finished"] = finished
        return replace(result, replications=rows)

    return changed


def test_the_overhead_of_plain_full_recovery_orders_them(with_walls) -> None:
    result = with_walls(100 - np.arange(20))  # the longest first: replication 0 is the worst
    assert judged_by(result) == "full"
    assert worth_seeing(result) == {"median": 10, "p95": 1, "worst": 0}


def test_what_did_not_finish_is_left_aside(with_walls) -> None:
    finished = [True] * 10 + [False] * 10
    named = worth_seeing(with_walls(np.arange(20), finished))
    assert named == {"median": 4, "p95": 9, "worst": 9}
    never = with_walls(np.arange(20), finished=False)
    assert judged_by(never) == "cpr"
    none = never.replications.assign(finished=False)
    assert worth_seeing(replace(never, replications=none)) == {}
