"""A scenario without a section `fleet`: how many spares one job needs."""

from __future__ import annotations

from math import exp

import pytest

import cprsim

TEXT = """\
name: one
job: {useful: 100 h}
cluster: {workers: 16, repair: 24 h}
failures: {kind: job, family: exponential, mtbf: 10 h, role: worker}
costs: {save: 1 min, load: 1 min, reschedule: 1 min}
recovery: [{strategy: full, interval: 30 min}]
simulation: {seed: 1, replications: 60}
"""


@pytest.fixture(scope="module")
def planned() -> cprsim.Answer:
    return cprsim.fleet(TEXT, {"spares": [0, 1, 12]})


def test_the_waits_are_those_of_a_run_with_as_many_spares(planned: cprsim.Answer) -> None:
    options = planned.frames["options"].set_index("fleet.spares")
    for spares in (0, 1, 12):
        ran = cprsim.run(TEXT, {"cluster.spares": spares})
        (row,) = ran.frames["strategies"].to_dict("records")
        assert options.loc[spares, "overhead_fraction"] == pytest.approx(row["overhead_fraction"])
        hours = row["wait_fraction"] * 100
        assert options.loc[spares, "wait_h"] == pytest.approx(hours)
    assert options.loc[12, "wait_h"] == 0.0
    # without spares work stands still while a node is away: 10 busy periods of M/D/infinity
    assert options.loc[0, "wait_h"] == pytest.approx(10 * 10 * (exp(2.4) - 1), rel=0.2)


def test_spares_stand_as_long_as_the_job_and_the_month_is_of_useful_work(
    planned: cprsim.Answer,
) -> None:
    options = planned.frames["options"].set_index("fleet.spares")
    parts = planned.frames["parts"].set_index(["option", "part"])["node_h_per_month"]
    per_month = 730.5 / 100
    wall_h = 100 * (1 + options.loc[12, "overhead_fraction"])
    assert parts["full at spares 12", "spare"] == pytest.approx(12 * wall_h * per_month)
    assert parts["full at spares 12", "useful"] == pytest.approx(16 * 730.5)
    assert options["jobs_per_month"].tolist() == pytest.approx([per_month] * 3)


def test_endless_free_spares_are_no_option_beside_those_that_are_paid(
    planned: cprsim.Answer,
) -> None:
    assert planned.frames["options"]["fleet.spares"].notna().all()
    assert planned.values["best"] == "full at spares 12"
    assert "as at present" not in planned.document.answer[0]
    assert planned.values["recommendation"]["at"] == {"fleet.spares": 12}
    bars = planned.figures["fleet"].axes[0].get_xticklabels()
    assert [bar.get_text() for bar in bars] == planned.frames["options"]["option"].tolist()
    assert "spares" not in planned.document.table.caption  # which differ


def test_the_scenario_s_own_spares_are_the_present_option() -> None:
    own = {"cluster.spares": 1}
    other = cprsim.fleet(TEXT, {"costs.save": ["2 min"], "spares": [4]}, own)
    assert other.values["present"] == "full"
    assert other.figures["curve"].axes[0].get_xlabel().endswith(" [min]")
    among = cprsim.fleet(TEXT, {"spares": [0, 1]}, own)  # in the order asked for
    assert among.frames["options"]["fleet.spares"].tolist() == [0, 1]
    assert among.values["present"] == "full at spares 1"


def test_an_assumption_is_tried_on_all_options() -> None:
    marked = {"marks": {"cluster.repair": "assumed"}, "simulation.replications": 20}
    answer = cprsim.fleet(TEXT, {"spares": [4, 12]}, marked)
    assert answer.values["best"] == "full at spares 4"
    assert "with 72 h, full at spares 12 costs least" in answer.document.turns_on


# --------------------------------------------------------------------------- as run and systems

SERVERS = """\
name: servers
job: {useful: 60 h}
cluster: {trainers: 20, emb_ps: 8, shard_size: 25 GB}
failures: {kind: job, family: exponential, mtbf: 15 h, role: any}
storage: {bandwidth: 25 Gbit/s}
costs: {save: transfer, load: transfer, detect: 1 min, reschedule: 5 min}
recovery: [{strategy: full, name: today, interval: 2 h}, {strategy: cpr, target_pls: 0.2}]
accuracy: {target_pls: 0.02}
"""
RARE = """\
name: rare
job: {useful: 6 h}
cluster: {workers: 4}
failures: {kind: job, family: exponential, mtbf: 600 h, role: any}
costs: {save: 1 min, load: 1 min, detect: 1 min, reschedule: 3 min}
recovery: [full, none]
"""


@pytest.mark.parametrize(
    "text",
    [
        RARE,  # one failure in a hundred jobs
        SERVERS,
        SERVERS.replace("25 GB}", "25 GB, spares: 1, repair: 6 h}") + "prices: {node_hour: 2}\n",
        RARE.replace("600 h", "2 min") + "simulation: {replications: 20}\n",  # none finishes
        TEXT.replace("24 h", "1000 h, spares: 0"),
    ],
    ids=["rare", "servers", "spares", "hopeless", "waiting"],
)
def test_one_job_costs_what_run_says(text: str) -> None:
    ran = (run := cprsim.run(text)).frames["strategies"].set_index("strategy")
    if not (ran["finished_fraction"] == 1).any():
        with pytest.raises(cprsim.CprsimError, match="no option under which all jobs") as refused:
            cprsim.fleet(text)
        assert ("wait for spares; compare more" in str(refused.value)) == ("spares: 0" in text)
        return
    options = cprsim.fleet(text).frames["options"].set_index("strategy")
    for name in ("overhead_fraction", "overhead_fraction_low", "pls", "pls_high"):
        expected = ran[name].fillna(0.0)[options.index]
        assert options[name].fillna(0.0).tolist() == pytest.approx(expected.tolist()), name
    if "bills" in run.frames:  # with spares
        bills = run.frames["bills"].query("part == 'total'")["month_cost"].tolist()
        assert options["cost_per_month"].tolist() == pytest.approx(bills, abs=0.02)


@pytest.mark.parametrize("command", ["run", "systems", "fleet"])
def test_what_exceeds_a_limit_of_accuracy_is_recommended_by_no_command(command: str) -> None:
    """Without a save a failure of one of 8 shards loses half of the job: PLS .07 of 4 failures."""
    answer = getattr(cprsim, command)(SERVERS, overrides={"simulation.replications": 200})
    assert answer.values["recommendation"]["name"] != "cpr"
    over = "limit 0.02, exceeded" if command == "fleet" else "(over 0.02)"
    assert over in f"{answer.document.table} {answer.document.remarks}"
    assumed = SERVERS.replace("0.2}", "0.2, assumed: true}")  # the limit of the job decides alone
    kept = getattr(cprsim, command)(assumed.replace("0.02}", "0.15}"))
    assert kept.values["recommendation"]["name"].startswith("cpr")  # or one that saves, as cheap


def test_jobs_that_share_hold_their_mean_pls_alone() -> None:
    other = {"accuracy": {"max_auc_loss": 0.01, "curve": "criteo-kaggle-linear"},
             "simulation.replications": 50}  # fmt: skip
    alone, ran = cprsim.fleet(SERVERS, overrides=other), cprsim.run(SERVERS, other)
    assert alone.values["best"] == ran.values["recommendation"]["name"] == "cpr"
    sharing = {"fleet": {"jobs": 2, "window": "60 h", "nodes": 56}}
    answer = cprsim.fleet(SERVERS, overrides={**other, **sharing})
    assert answer.values["best"] == "today"
    assert "not known (limit 0.01)" in str(answer.document.remarks)
    assert "only the mean PLS is known" in str(answer.document.remarks)


def test_unknown_spares_of_one_job_are_tried_and_are_an_axis() -> None:
    """16 nodes, 10 failures of 24 h: without spares full waits, `elastic-restart` does not."""
    text = TEXT.replace("[{strategy: full, interval: 30 min}]", "[full, elastic-restart]")
    unknown = {"unknown": {"cluster.spares": {"low": 0, "high": 12}}, "cluster.spares": 0}
    (row,) = cprsim.fleet(text, overrides=unknown).frames["unknown"].to_dict("records")
    assert (row["key"], row["becomes"]) == ("fleet.spares", "full")
    assert 4 < row["at"] < 10  # as many are away as 2.4, Poisson's
    answer = cprsim.fleet(TEXT, {"cluster.spares": [0, 12]}, {"cluster.spares": 0})
    assert answer.frames["options"]["fleet.spares"].tolist() == [0, 12]
    assert answer.values["recommendation"]["by"]["low"] > 0  # paired


def test_no_option_of_one_job_shares_or_has_an_unknown_name() -> None:
    with pytest.raises(cprsim.CprsimError, match="this one is alone: compare `spares`"):
        cprsim.fleet(TEXT, {"nodes": [16, 32]})  # 16 idle ones for nothing
    with pytest.raises(cprsim.CprsimError, match=r"did you mean `spares`\?"):
        cprsim.fleet(TEXT, {"spare": [1, 2]})


def test_spares_of_single_jobs_are_no_option_of_a_fleet_that_shares_them() -> None:
    shared = {"fleet": {"jobs": 3, "window": "300 h", "spares": 1}}
    with pytest.raises(cprsim.CprsimError, match=r"share `fleet\.spares`"):
        cprsim.fleet(TEXT, {"cluster.spares": [0, 2]}, shared)
    unknown = {"unknown": {"cluster.spares": {"low": 0, "high": 4}}}
    with pytest.raises(cprsim.CprsimError, match=r"share `fleet\.spares`"):
        cprsim.fleet(TEXT, {}, shared | unknown)


def test_never_saving_that_costs_hardly_less_is_said() -> None:
    answer = cprsim.fleet(RARE, overrides={"recovery.full.interval": "2 h"})
    assert answer.document.answer[0].endswith("no option that saves and keeps accuracy costs less.")


@pytest.mark.parametrize("command", ["run", "select", "systems", "fleet"])
def test_saves_of_planned_stops_are_said(command: str) -> None:
    only = {"only": ["full"]} if command == "systems" else {}
    stops = ("planned={every: 2 h, length: 5 min}", "simulation.replications=20")
    answer = getattr(cprsim, command)(RARE, overrides=stops, **only)
    said = " ".join(answer.document.remarks)
    assert "at each planned stop too, every 2 h." in said
    assert "Without saves (full" not in said
    later = ("planned={every: 8 h, length: 5 min}", "simulation.replications=20")
    answer = getattr(cprsim, command)(RARE, overrides=later, **only)  # a job of 6 h meets none
    assert "planned stop" not in " ".join(answer.document.remarks)
