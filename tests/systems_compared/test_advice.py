"""Advice that holds: intervals, waits for spares, contents, memory, storage, what runs today."""

from __future__ import annotations

import re
from math import exp, factorial, sqrt

import numpy as np
import pytest

import cprsim
from cprsim.commands.select.evaluation import evaluator_of
from cprsim.commands.systems.candidates import FOUND, at_their_best, candidates_of
from cprsim.pages.answer import Answer
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.limit import NO_LIMIT
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario

JOB = """\
name: job
job: {useful: USEFUL h, step: 10 s}
cluster: {workers: NODES, state: 10 GB, link: 400 Gbit/s, CLUSTER}
failures: {kind: job, family: exponential, mtbf: MTBF h, role: worker}
scopes: [{name: process, share: 0.5, reach: process, detect: 1 min},
  {name: node, share: 0.5, reach: node, detect: 1 min}]
storage: {bandwidth: 400 Gbit/s}
costs: {save: {stall: STALL s, background: 60 s}, load: 1 min, reschedule: 2 min}
recovery: [{strategy: full, interval: 1 h}]
simulation: {seed: 1, replications: 200}
"""
FIRST = {"USEFUL": 200, "NODES": 64, "CLUSTER": "rack: 8", "MTBF": 6, "STALL": 5}


def scenario(**changes: object) -> str:
    text = JOB
    for key, value in {**FIRST, **changes}.items():
        text = text.replace(key, str(value))
    return text


def said(found: Answer) -> str:
    return "\n".join([*found.document.answer, *map(str, found.document.remarks)])


def run_with(text: str, n_spares: int, found: Answer, name: str) -> float:
    """The overhead of a system as it was found, with another number of spares."""
    entry = found.frames["systems"].set_index("system")["entry"][name]
    changes = [f"cluster.spares={n_spares}", f"recovery=[{entry}]"]
    frame = cprsim.run(text, changes).frames["strategies"]
    return float(frame["overhead_fraction"].iloc[0])


def overheads(found: Answer) -> dict[str, float]:
    systems = found.frames["systems"].set_index("system")
    return dict(systems["overhead_fraction"])


# --------------------------------------------------------------------------- best intervals


def drawn_job(seed: int) -> str:
    rng = np.random.default_rng(seed)
    nodes, mtbf_h = 8 * rng.integers(1, 9), 2 + 20 * rng.random()
    stall_s, useful_h = rng.choice([2, 8, 20]), 30 + 100 * rng.random()
    return scenario(
        USEFUL=round(useful_h), NODES=nodes, MTBF=round(mtbf_h, 1), STALL=stall_s,
        CLUSTER=rng.choice(["rack: 8", "spares: 4, repair: 6 h", "replicas: 8"]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "names"),
    [
        (0, ("full", "datastates", "pccheck", "async", "gemini", "elastic-restart")),
        *(pytest.param(seed, (), marks=pytest.mark.long) for seed in range(10)),
    ],
)
def test_no_interval_of_a_fine_sweep_costs_less_by_three_per_cent(seed, names) -> None:
    loaded = load_scenario("drawn.yaml", ["simulation.replications=100"], text=drawn_job(seed))
    experiment = assemble(loaded, with_policies=False)
    candidates, _ = candidates_of(loaded, experiment, only=names)
    at_best, _ = at_their_best(candidates, experiment)
    assert [one for one in at_best if one.how == FOUND]
    for candidate in at_best:
        entry = candidate.entry
        if candidate.how != FOUND or entry.system.interval is None:
            continue
        name = entry.name
        evaluator = evaluator_of(experiment, NO_LIMIT, {name: entry})
        sweep: list[float] = []
        for interval_h in np.geomspace(experiment.useful_h / 2, 1 / 120, 16).tolist():
            sweep += [one.cost_fraction for one in evaluator.evaluate(name, [interval_h])]
            if sweep[-1] > 3 * min(sweep):
                break  # shorter ones cost more still, and take the most time
        (taken,) = evaluator.evaluate(name, [interval_of(candidate.text(experiment.useful_h))])
        assert taken.cost_fraction <= 1.03 * min(sweep), candidate.text(experiment.useful_h)


def interval_of(entry: str) -> float:
    """The interval of an entry, its last time [h]."""
    number, unit = entry.rstrip("}").split(": ")[-1].split()
    return float(number) * {"s": 1 / 3600, "min": 1 / 60, "h": 1.0}[unit]


# --------------------------------------------------------------------------- waits for spares


def waits(n_spares: int, away: float = 1.0) -> float:
    """Waits for a spare as a share of the work: more nodes are away than there are spares.

    Their number is Poisson's, whatever the repair: one is lost in 12 h, and away for 12 h.
    """
    none_waits = sum(exp(-away) * away**n / factorial(n) for n in range(n_spares + 1))
    return 1.0 / none_waits - 1.0


def test_the_second_line_names_the_spares_that_change_the_winner_and_counts_their_nodes() -> None:
    text = scenario(CLUSTER="spares: 1, repair: 12 h") + "prices: {node_hour: 10, currency: USD}\n"
    found = cprsim.systems(text, only=["gemini", "elastic-restart", "full"], replications=200)
    assert found.values["best"] == "elastic-restart"
    wait = found.frames["systems"].set_index("system")["wait_fraction"]["gemini"]
    assert wait == pytest.approx(waits(1), rel=0.15)  # every other failure takes a node
    assert found.document.table is not None
    assert "waiting, %" in found.document.table.headings
    line = found.document.answer[1]
    n = int(line.split("with ")[1].split()[0])
    assert line.startswith(f"More spares would change the choice: with {n} spares ({n - 1} more")
    assert "gemini costs least" in line
    assert "(more than the best now, counting these nodes)" in line
    # of waits and spares together these cost least; a month of each spare is 7,305 USD
    assert waits(n) + n / 64 <= min(waits(m) + m / 64 for m in range(1, 9)) + 0.005
    assert f"{(n - 1) * 7305:,.2f} USD" in line
    shown = float(line.rsplit(": ", 1)[1].split(" ±")[0]) / 100
    assert shown + (n - 1) / 64 > overheads(found)["elastic-restart"]
    assert run_with(text, n, found, "gemini") == pytest.approx(shown, rel=0.1)


def test_what_goes_on_with_fewer_nodes_is_priced_without_spares() -> None:
    text = scenario(CLUSTER="spares: 4, repair: 12 h")
    names = ["gemini", "datastates", "elastic-restart"]
    found = cprsim.systems(text, only=names, replications=100)
    line = found.document.answer[1]
    assert line.startswith("Fewer spares pay: with 0 spares (4 fewer nodes, 6.25 % of the job's")
    cost = float(line.split("elastic-restart costs ")[1].split(" ±")[0]) / 100
    assert cost == pytest.approx(run_with(text, 0, found, "elastic-restart"), rel=0.05)
    assert cost < overheads(found)["gemini"] + 4 / 64


def test_nothing_is_said_of_spares_where_no_job_waits() -> None:
    text = scenario(USEFUL=50, CLUSTER="spares: 20, repair: 12 h")
    found = cprsim.systems(text, only=["gemini", "full"], replications=100)
    assert "Waits" not in said(found)
    assert "waiting" not in str(found.document.table)


# --------------------------------------------------------------------------- contents

SILENT = scenario(CLUSTER="rack: 8", MTBF=40) + (
    "silent: {mtbf: 40 h, latency: {family: exponential, mean: 4 h}}\n"
)


def test_contents_and_interval_are_chosen_together() -> None:
    found = cprsim.systems(SILENT, only=["full"], replications=100)
    best = overheads(found)["full"]
    entries = ", ".join(
        f"{{strategy: full, name: k{kept} {minutes}, interval: {minutes} min, "
        f"costs: {{save: {{stall: 5 s, background: 60 s, kept: {kept}}}}}}}"
        for kept in (1, 4, 12, 48)
        for minutes in (10, 30, 90, 240)
    )
    run = cprsim.run(SILENT, [f"recovery=[{entries}]"], replications=100)
    strategies = run.frames["strategies"]
    done = strategies[strategies["finished_fraction"] == 1]
    assert best <= 1.05 * done["overhead_fraction"].min()
    row = found.frames["systems"].set_index("system").loc["full"]
    kept = int(row["entry"].split("kept: ")[1].split("}")[0])
    # an error is noticed after 4 h: contents of less than that lose all; so many are kept
    assert kept * row["interval_h"] > 4 * np.log(5)
    assert kept > 8
    assert f"full keeps {kept} contents" in said(found)
    chosen = cprsim.select(SILENT, replications=100)
    assert list(chosen.frames["strategies"]["entry"]) == [row["entry"]]
    assert f"full keeps {kept} contents of {0.64 * kept:.3g} TB in all" in said(chosen)
    pasted = cprsim.select(SILENT, [f"recovery=[{row['entry']}]"], replications=100)
    assert list(pasted.frames["strategies"]["entry"]) == [row["entry"]]


def test_where_none_finishes_contents_that_are_all_bad_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cprsim.simulation.log.LINES_SHARE", 1e-9)  # there are too many events
    hopeless = "job.useful=20 h", "silent.mtbf=30 min", "recovery=[full]"
    never = cprsim.run(SILENT, hopeless, replications=2)
    assert never.rows["events"].empty
    assert "No strategy reliably gets this job done." in said(never)
    kept = r"full keeps 1 content .* % of silent errors are noticed with no clean content left"
    assert re.search(kept, said(never))


def test_the_bill_is_of_all_contents_from_their_first_save_on() -> None:
    prices = "prices={storage_month: 1 USD}"
    cents = {}
    for kept in (1, 8):
        run = cprsim.run(scenario(), [prices, f"costs.save.kept={kept}"], replications=100)
        bills = run.frames["bills"].set_index(["strategy", "part"])["job_cost"]
        cents[kept] = bills["full", "storage kept"]
    # 200 saves: the nth content is missing for n / 200 of the job
    assert cents[8] / cents[1] == pytest.approx(8 - sum(range(8)) / 200, rel=0.01)


def test_a_strategy_at_its_own_interval_keeps_the_contents_that_silent_errors_ask_for() -> None:
    """CPR saves each 65 h; an error is noticed after 2 h: one content is bad in 3 % of them."""
    text = """\
name: silent
job: {useful: 480 h}
cluster: {trainers: 30, emb_ps: 10}
failures: {kind: job, family: exponential, mtbf: 30 h, role: any}
silent: {mtbf: 1440 h, latency: {family: exponential, mean: 2 h}}
costs: {save: 90 s, load: 90 s, detect: 1 min, reschedule: 3 min}
recovery: [{strategy: full, interval: 2 h}, {strategy: cpr, target_pls: 0.05}]
"""
    found = cprsim.systems(text, only=["full", "cpr"], replications=400)
    row = found.frames["systems"].set_index("system").loc["cpr"]
    assert int(row["entry"].split("kept: ")[1].split("}")[0]) > 1
    once = cprsim.run(text, replications=400).frames["strategies"].set_index("strategy")
    assert row["overhead_fraction"] < once.loc["cpr", "overhead_fraction"]


# --------------------------------------------------------------------------- money


def test_an_interval_costs_least_in_all_where_writing_has_a_price() -> None:
    """640 GB at 0.02 USD are 12.8 USD a save, a minute of the job's 64 nodes 10.7 USD."""
    text = scenario(MTBF=30) + "prices: {node_hour: 10, storage_written: 0.02, currency: USD}\n"
    text = text.replace("share: 0.5, reach: node", "share: 0.5, reach: all")
    found = cprsim.systems(text, only=["full", "gemini"], replications=200)
    chosen = cprsim.select(text, ["recovery=[full, gemini]"], replications=200)
    for name in ("full", "gemini"):
        row = found.frames["systems"].set_index("system").loc[name]
        bills = [
            answer.frames["bills"].set_index(["strategy", "part"]).loc[(name, "total"), "job_cost"]
            for answer in (found, chosen)
        ]
        assert bills[0] == pytest.approx(bills[1])
        options = "options: {{remote_every: {} min}}" if name == "gemini" else "interval: {} min"
        entries = ", ".join(
            f"{{strategy: {name}, name: at {n}, {options.format(n)}}}" for n in (5, 15, 45, 135)
        )
        ran = cprsim.run(text, [f"recovery=[{entries}]"], replications=200).frames["bills"]
        assert bills[0] <= 1.01 * ran[ran["part"] == "total"]["job_cost"].min(), row["entry"]


# --------------------------------------------------------------------------- what a job can run


def left_out(text: str) -> dict[str, str]:
    loaded = load_scenario("job.yaml", text=text)
    why = candidates_of(loaded, assemble(loaded, with_policies=False))[1]
    return {name: one.words for name, one in why.items()}


def test_copies_that_do_not_fit_in_memory_are_not_compared() -> None:
    assert "gemini" not in left_out(scenario())
    too_little = left_out(scenario(CLUSTER="memory: 15 GB"))
    assert too_little["gemini"].startswith("its copies take 20 GB of a node's memory")
    assert "dlrover-flash" not in too_little  # one copy, 10 GB
    found = cprsim.systems(scenario(), only=["gemini", "full"], replications=100)
    assert "gemini 20 GB of memory on each node" in said(found)


def test_hardware_that_the_scenario_lacks_is_asked_for() -> None:
    assert "give `server`" in left_out(scenario())["portus"]


def test_a_pick_that_fills_the_storage_says_so() -> None:
    # 640 GB over 8 Gbit/s take 640 s, and datastates saves as often as that
    text = scenario(MTBF=2).replace("400 Gbit/s}\ncosts", "8 Gbit/s}\ncosts")
    text = text.replace("background: 60 s", "background: transfer")
    found = cprsim.systems(text, only=["datastates"], replications=100)
    share = 640 / 3600 / found.frames["systems"].set_index("system")["interval_h"]["datastates"]
    assert share > 0.5
    assert f"datastates {100 * share:.1f} % of the storage's bandwidth" in said(found)
    planned = cprsim.fleet(text, {}, {"recovery": ["gemini"], "simulation.replications": 5})
    assert "Takes: gemini 20 GB of memory on each node for copies" in said(planned)
    assert "spares always available" in str(planned.document.table)
    ran = cprsim.run(text, ["recovery=[full]"], replications=2)
    assert ran.document.turns_on.endswith("Without `cluster.spares`, a spare is always available.")


def test_platforms_are_named_and_not_recommended() -> None:
    for name, platform in (("hyperpod-tiered", "EKS"), ("ml-flashpoint", "GKE")):
        assert SYSTEMS[name].only_on == platform
    assert not SYSTEMS["gemini"].runs_as
    assert "TorchRec" in SYSTEMS["check-n-run"].runs_as
    found = cprsim.systems(scenario(), only=["hyperpod-tiered", "full"], replications=100)
    costs = overheads(found)
    # both stall for the snapshot; only the storage's copy is 60 s old and more
    assert costs["hyperpod-tiered"] == pytest.approx(sqrt(10 / 21600) + 3 / 360, rel=0.15)
    assert (found.values["best"], found.values["best_that_runs"]) == ("hyperpod-tiered", "full")
    found = cprsim.systems(scenario(USEFUL=1, MTBF=9e4), only=["none", "full"], replications=100)
    assert found.values["best"] == found.values["best_that_runs"] == "full"


def test_what_runs_today_and_costs_less_is_named_with_its_unpriced_loss() -> None:
    """Spot nodes: each taken once in 96 h and back in half an hour, 48 of them with 6 replicas."""
    cluster = "replicas: 6, spares: 0, repair: {family: exponential, mean: 30 min}"
    text = scenario(USEFUL=20, NODES=48, CLUSTER=cluster, MTBF=1, STALL=3)
    names = ["oobleck", "elastic-restart", "hsdp", "full"]
    found = cprsim.systems(text, only=names, replications=100)
    assert found.values["best_that_runs"] == "elastic-restart"
    assert 0.01 < overheads(found)["elastic-restart"] - overheads(found)["hsdp"] < 0.1
    assert "hsdp (runs as torchft, TorchTitan) costs" in said(found)
    assert "the accuracy loss of smaller batches" in said(found)


def test_systems_within_a_point_are_named_with_what_they_share() -> None:
    names = ["gemini", "fftrainer", "full"]
    found = cprsim.systems(scenario(USEFUL=50), only=names, replications=100)
    first = found.document.answer[0]
    assert first.startswith("The 2 cheapest differ by at most 1 point, and all copy to memory")
    assert first.index("Cheapest: ") > first.index("gemini")


def test_what_never_saving_loses_is_said() -> None:
    """Of 8 trainers and 2 servers one fails in 400 h; every fifth takes half of the tables."""
    text = """\
name: servers
job: {useful: 168 h}
cluster: {trainers: 8, emb_ps: 2, shard_size: 30 GB}
failures: {kind: job, family: exponential, mtbf: 400 h, role: any}
costs: {save: 1 min, load: 1 min}
recovery: [{strategy: full, interval: 4 h}, {strategy: cpr, target_pls: 0.05}]
"""
    found = cprsim.systems(text, only=["full", "cpr"], replications=4000)
    line = next(line for line in said(found).splitlines() if "cpr never saves" in line)
    share = float(line.split("In ")[1].split(" %")[0]) / 100
    assert share == pytest.approx(1 - exp(-168 / 400 / 5), abs=0.02)
    assert "today" not in found.values["near_optimal"]  # the same system at another interval
    assert "AUC lost" not in str(found.document.table)  # no curve knows it
    cheap = text.replace("save: 1 min", "save: 10 s")  # full: 2 x 10 s / 1.5 h, less than .5 %
    saving = cprsim.systems(cheap, only=["full", "cpr"], replications=200)
    assert "Cheapest that saves: full" in saving.document.answer[0]
