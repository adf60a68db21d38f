"""How often jobs saved whose tables of attempts say no more than the last saved step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim.backtesting.experiments import AS_IT_RAN
from cprsim.backtesting.facts import interval_h
from cprsim.backtesting.replaying import backtests
from cprsim.experiments.pipeline import replay
from tests.history.making import exported, ledger_of
from tests.making import call, maker

TEXT = """\
name: truth
job: {{useful: {useful} h, step: 6 s}}
cluster: {{workers: 8}}
failures: {{kind: job, role: worker, family: exponential, mtbf: 5 h}}
costs: {{save: 0 s, load: 6 min, detect: 3 min, reschedule: 5 min}}
recovery: [{{strategy: full, name: ran, interval: {interval} h}}]
simulation: {{seed: {seed}, replications: 1}}
"""
HEADER = "start,end,last_step,last_saved_step,cause"


def table(folder: Path, useful: float, interval: float, seed: int) -> tuple[str, float]:
    """A CSV of attempts under full recovery, and the overhead of the job that it is of [h]."""
    text = TEXT.format(useful=useful, interval=interval, seed=seed)
    log = replay(maker(folder, text)(), 0)["ran"]
    rows, start_s, died_s, step = [HEADER], 0.0, 0.0, 0.0
    for event in exported(log, "j", step_s=6.0):
        name, at_s = event["event"], event["time_unix_nano"] / 1e9
        if name == "train.resume":
            start_s = at_s
        elif name == "failure" and start_s:
            died_s, step = at_s, event["step"]
        elif name == "rollback" and start_s:
            rows.append(f"{start_s:.6f},{died_s:.6f},{int(step)},{event['step']:.0f},ecc")
            start_s = 0.0
        elif name == "job.end":
            rows.append(f"{start_s:.6f},{at_s:.6f},{int(event['step'])},,")
    return "\n".join(rows) + "\n", float(log.at_h[-1]) - useful


@pytest.mark.parametrize("interval", [0.5, 1.0, 2.5])
def test_a_table_of_attempts_tells_the_interval_and_what_it_cost(tmp_path, interval) -> None:
    text, true_h = table(tmp_path, 120, interval, 3)
    job = ledger_of(tmp_path, text, n_draws=4)
    assert interval_h(job) == pytest.approx(interval, rel=0.01)
    assert job.inferred["intervals"] == 1
    entries = ["{strategy: full, interval: 3 h}"]
    (found,), _ = backtests([job], entries, n_nodes=8, n_draws=6)
    ran = found.systems[0]
    assert ran.system == AS_IT_RAN
    assert ran.overhead_h.mean() == pytest.approx(true_h, rel=0.005)


@pytest.mark.long
def test_what_fits_holds_the_truth_and_is_told_from_few_failures_on(tmp_path) -> None:
    """Of 60 jobs of a few failures: the truth lies within what fits, in all but a few."""
    told, held = 0, 0
    for seed in range(60):
        text, _ = table(tmp_path, 20 + seed, 1.0, seed)
        every = ledger_of(tmp_path, text, n_draws=4).save_every
        told += every.has_interval
        held += every.has_interval and 0.99 * every.low <= 600 <= 1.01 * every.high
    assert told >= 50
    assert held >= 0.95 * told


def test_saves_by_the_clock_are_told_by_what_failures_lost(tmp_path) -> None:
    """Odd steps have no common measure: twice the mean loss, within 2 standard errors."""
    rng = np.random.default_rng(5)
    rows, at, step = [], 0, 0
    for _ in range(60):
        saved = step + int(rng.integers(500, 4000))
        last = saved + int(rng.integers(0, 900))
        rows.append(f"{at},{at + last - step},{last},{saved},x")
        at, step = at + last - step + 100, saved
    rows.append(f"{at},{at + 100},{step + 100},,")
    every = ledger_of(tmp_path, "\n".join([HEADER, *rows]) + "\n", "s", n_draws=2).save_every
    assert every.low < 900 < every.high
    assert every.high - every.low == pytest.approx(2 * 1.96 * every.mean / np.sqrt(180), rel=1e-3)


ONE = f"{HEADER}\n0,3700,3700,3000,x\n3800,9000,8200,,\n"


def test_where_it_cant_be_told_the_user_says_it(tmp_path) -> None:
    path = tmp_path / "one.csv"
    path.write_text(ONE, "utf-8")
    said = ["backtest", path, "--recovery", "full", "--time-unit", "s", "--set", "costs.save=10 s"]
    refused = call(*said)
    assert refused.exit_code == 2
    assert "how often it saved can't be told" in " ".join(refused.output.split())
    ran = call(*said, "--saves-every", "10 min", "--json")
    assert ran.exit_code == 0, ran.output
    assert '"interval_h": 0.16' in ran.output
    for wrong in ("often", "0 s"):
        refused = call(*said, "--saves-every", wrong)
        assert refused.exit_code == 2
        assert f"--saves-every '{wrong}'" in " ".join(refused.output.split())
    never = ledger_of(tmp_path, ONE.replace("3000", "0"), "s", n_draws=2)  # back to its start
    assert never.save_every.mean == np.inf
