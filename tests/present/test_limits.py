"""Limits in a run: one one-sided bound beside each, and what a bad case loses without saves."""

from math import exp, sqrt
from typing import Any

import pytest
from scipy import special

import cprsim

TEXT = """\
name: servers
job: {useful: 168 h}
cluster: {trainers: 8, emb_ps: 2, shard_size: 30 GB}
failures: {kind: job, family: exponential, mtbf: 40 h, role: any}
costs: {save: 1 min, load: 1 min}
recovery: [{strategy: full, interval: 4 h}, {strategy: partial, interval: 168 h}]
simulation: {seed: 1, replications: 200}
"""


@pytest.mark.parametrize(("interval", "word"), [("10 h", "limit 0.05"), ("80 h", "over 0.05")])
def test_a_limit_stands_beside_the_one_bound_that_is_compared_with_it(
    interval: str, word: str
) -> None:
    entry = f"{{strategy: partial, interval: {interval}}}"
    today = "{name: today, strategy: full, interval: 20 min}"
    found = cprsim.run(TEXT, [f"recovery=[{today}, full, {entry}]", "accuracy={target_pls: 0.05}"])
    rows, table = found.rows["replications"], found.document.table
    pls = rows.loc[~rows["strategy"].isin(["today", "full"]), "pls"]
    bound = pls.mean() + special.stdtrit(199, 0.95) * pls.std() / sqrt(200)
    place = [*table.headings].index("95 % upper bound")
    assert [row[place] for row in table.rows] == ["–", "–", f"PLS {bound:.3g} ({word})"]
    if word.startswith("over"):  # it costs less, and is not recommended
        assert found.values["recommendation"]["name"] == "full"
        assert "of those that lose no accuracy or keep your limit" in found.document.answer[0]
        return
    said = next(
        str(one) for one in found.document.remarks if "trades accuracy for time" in str(one)
    )
    assert f"at most {bound:.3g} (95 % upper bound; limit" in said
    assert "95 % interval" not in said
    assert said.endswith("If no lost update is acceptable, use full.")  # which is the cheaper one


@pytest.mark.parametrize(("interval", "word"), [("cpr", "target 0.05"), ("100 h", "over 0.05")])
def test_a_target_of_an_entry_is_held_in_expectation(interval: str, word: str) -> None:
    """By the formula's interval the mean is the target: a bound above it would always miss it."""
    entry = f"{{strategy: cpr, interval: {interval}, target_pls: 0.05}}"
    found = cprsim.run(TEXT, [f"recovery=[{entry}]", "job.useful=1000 h", "failures.mtbf=10 h"])
    pls = found.rows["replications"]["pls"].mean()
    place = [*found.document.table.headings].index("expected")
    assert [row[place] for row in found.document.table.rows] == [f"PLS {pls:.3g} ({word})"]
    assert (pls == pytest.approx(0.05, rel=0.05)) == (interval == "cpr")


def test_what_never_saving_loses_is_said_by_run_and_select() -> None:
    changes = {"failures.mtbf": "400 h", "simulation.replications": 2000, "costs.save": "60 min"}
    ran, selected = cprsim.run(TEXT, changes), cprsim.select(TEXT, changes, target_pls=0.9)
    assert ran.values["recommendation"]["name"] == "full"  # no limit allows a stale shard
    one = cprsim.run(TEXT, changes | {"accuracy": {"target_pls": 0.9}}, replay=7)
    assert "Use partial (" in one.document.answer[0]
    for found in (ran, selected):  # of 10 nodes 2 are servers
        line = next(s for s in map(str, found.document.remarks) if "to their initial state" in s)
        assert "never saves" in line
        share = float(line.split(" In ")[1].split(" %")[0]) / 100
        assert share == pytest.approx(1 - exp(-168 / 400 / 5), abs=0.02)


RARE = """\
name: rare
job: {useful: 12 h, step: 3 s}
cluster: {workers: 32, state: 20 GB, link: 100 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 2000 h, role: worker}
costs: {save: 8 min, load: 2 min, detect: 5 min, reschedule: 5 min}
recovery: [{strategy: full, interval: 2 h}, none]
"""


@pytest.mark.parametrize("command", ["run", "select", "systems", "fleet"])
def test_what_a_job_risks_without_saves_is_said_and_cheap_saves_are_made(command: str) -> None:
    """A save of 8 min is 1.1 % of the job, a failure without saves half of it in 0.6 % of jobs."""
    of_each: dict[str, Any] = {
        "fleet": {"histories": 20}, "systems": {"only": ["full", "none"]}
    }  # fmt: skip
    how = of_each.get(command, {})
    found = getattr(cprsim, command)(RARE, **how)
    chosen = found.values["recommendation"]
    assert chosen["strategy"] == "none" or chosen["entry"]["interval"] == "never"
    (line,) = (line for line in map(str, found.document.remarks) if "Without saves" in line)
    assert chosen["name"] in line
    assert "a failure can lose all work of the job" in line
    if command != "fleet":
        assert float(line.split("costs ")[1].split(" %")[0]) > 50  # the worst of some thousand
    cheap = {"costs.save": "20 s", "recovery": [{"strategy": "full", "interval": "4 h"}, "none"]}
    saving = getattr(cprsim, command)(RARE, overrides=cheap, **how)  # two are 0.1 % of the job
    assert saving.values["recommendation"]["name"] in ("full", "today")
    assert "Without saves (full" not in str(saving.document.remarks)


def test_run_and_select_say_the_memory_that_the_choice_takes() -> None:
    changes: dict[str, Any] = {"recovery": [{"strategy": "full", "interval": "2 h"}, "gemini"]}
    changes |= {"failures.mtbf": "20 h", "storage": {"bandwidth": "100 Gbit/s"}}
    for found in (cprsim.run(RARE, changes), cprsim.select(RARE, changes, replications=200)):
        assert found.values["recommendation"]["name"] == "gemini"
        line = next(line for line in map(str, found.document.remarks) if "Takes: " in line)
        assert "gemini 40 GB of memory on each node for copies" in line


@pytest.mark.parametrize("command", ["run", "fleet"])
def test_a_system_with_a_loss_in_no_number_is_named_and_not_recommended(command: str) -> None:
    changes: dict[str, Any] = {
        "recovery": [{"strategy": "full", "interval": "1 h"}, "hsdp"],
        "failures.mtbf": "10 h", "job.useful": "100 h", "cluster.replicas": 4,
    }  # fmt: skip
    how = {"histories": 20} if command == "fleet" else {}
    found = getattr(cprsim, command)(RARE, overrides=changes, **how)
    assert found.values["recommendation"]["name"] == "full"
    said = " ".join(map(str, found.document.remarks))
    assert "the accuracy loss of smaller batches while a group is missing is unknown" in said
    alone = getattr(cprsim, command)(RARE, overrides=changes | {"recovery": ["hsdp"]}, **how)
    assert alone.values["recommendation"]["name"] == "hsdp"
    assert "is unknown" in " ".join(map(str, alone.document.remarks))
