"""Which system: known answers, who is left out, what is said, and that nothing is made twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from cprsim.present.kinds import KINDS, kind_of
from cprsim.present.systems import _costs, document_of_systems, systems_blocks
from cprsim.present.terminal import show
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario import load_scenario
from cprsim.systems_compared.best import best_policies
from cprsim.systems_compared.folder import assumptions, load_comparison
from cprsim.systems_compared.lineup import lineup_of
from cprsim.systems_compared.standings import paired, verdict_of
from tests.making import SCENARIOS, call, maker

WORKERS = """\
name: workers
job: {useful: 40 h, step: 10 s}
cluster: {workers: 8, replicas: 8, state: 20 GB, link: 25 Gbit/s}
failures: {kind: injected, at: [AT], role: worker}
costs: {save: 2 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery: [RECOVERY]
simulation: {seed: 1, replications: 100}
"""
SERVERS = """\
name: servers
job: {useful: 20 h}
cluster: {trainers: 2, emb_ps: 10}
failures: {kind: job, family: exponential, mtbf: 5 h}
costs: {save: 3 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery: [full]
simulation: {seed: 1, replications: 100}
"""


FEW = (
    "ecrec",
    "gemini",
    "hsdp",
    "moc",
    "oobleck",
    "torchft",
)  # however many systems there are


@pytest.fixture(scope="module", autouse=True)
def few_systems() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        few = {name: SYSTEMS[name] for name in FEW}
        patch.setattr("cprsim.systems_compared.lineup.SYSTEMS", few)
        yield


@pytest.fixture
def program(tmp_path):
    """Compare the systems of a scenario, as JSON where all goes well."""

    def run(*options: object, text: str = WORKERS, recovery: str = "full") -> Any:
        path = tmp_path / "scenario.yaml"
        path.write_text(text.replace("RECOVERY", recovery), "utf-8")
        result = call(
            "compare-systems", path, "--replications", 100, "--out", tmp_path / "results", "--json",
            *options,
        )  # fmt: skip
        return json.loads(result.stdout) if result.exit_code == 0 else result

    return run


def of(found: Any, name: str) -> Any:
    return next(one for one in found["systems"] if one["name"] == name)


def test_where_nothing_fails_what_costs_nothing_all_the_time_is_best(program) -> None:
    found = program(text=SERVERS.replace("mtbf: 5 h", "mtbf: 90000 h"))
    assert of(found, "none")["overhead_fraction"]["mean"] < 0.002
    assert found["best"] in ("none", "full", "today")
    # full recovery at its best never saves, and is `none` then
    assert of(found, "full")["interval_h"] is None or found["best"] == "none"


def test_one_failure_costs_each_what_its_rules_say(program) -> None:
    # one failure after 1,500 min of work; detection, rescheduling and load take 5.5 min
    text = WORKERS.replace("AT", "1500 min")
    found = program("--fixed", text=text, recovery="{strategy: full, interval: 10 h}, none")
    full, none, hsdp = of(found, "full"), of(found, "none"), of(found, "hsdp")
    # four saves, the one at the end too; 300 min are lost since the one at 1,200
    assert full["overhead_fraction"]["mean"] == pytest.approx((4 * 2 + 5.5 + 300) / 2400)
    assert none["overhead_fraction"]["mean"] == pytest.approx((1500 + 2.5) / 2400)
    # 3 min of stall, then the speed of 7 of 8 for 2 min of rescheduling and 6.4 s of copying
    slower_min = (2 + 20e9 * 8 / 25e9 / 60) / 8
    saves_min = hsdp["parts"]["save"]["mean"] * 2400
    assert hsdp["overhead_fraction"]["mean"] == pytest.approx((3 + slower_min + saves_min) / 2400)
    best = of(found, found["best"])["overhead_fraction"]["mean"]
    kept = [one for one in found["systems"] if one["accuracy"] == "kept"]
    assert best == min(one["overhead_fraction"]["mean"] for one in kept)
    # steps are on smaller batches while a group is missing
    assert (hsdp["accuracy"], hsdp["auc_loss"]) == ("not priced", None)
    assert any(said.startswith("* torchft, hsdp: what smaller batches") for said in found["said"])
    more = none["more_than_best"]
    assert more["mean"] == pytest.approx(none["overhead_fraction"]["mean"] - best)
    assert more["low"] == more["high"] == more["mean"]
    assert none["verdict"] == "more"


def test_what_goes_on_from_replicas_is_not_compared_where_the_state_exists_once(program) -> None:
    needy = ("hsdp", "oobleck", "torchft")
    found = program(text=SERVERS.replace("job: {", "job: {step: 10 s, "))
    for name in needy:
        assert found["left_out"][name].endswith("shards of embedding servers exist once")
    sharded = WORKERS.replace("replicas: 8, ", "").replace("AT", "25 h")
    found = program("--fixed", text=sharded, recovery="full, gemini")
    for name in needy:
        assert "the 8 nodes of `worker` hold the state once" in found["left_out"][name]
    wrong = program("--fixed", text=SERVERS.replace("emb_ps: 10", "emb_ps: 10, replicas: 2"))
    assert (wrong.exit_code, "goes with `workers`" in wrong.stderr) == (2, True)


def test_a_replica_takes_as_many_nodes_as_hold_the_state(program) -> None:
    halves = WORKERS.replace("replicas: 8", "replicas: 2").replace("AT", "25 h")
    found = program("--fixed", text=halves, recovery="full, gemini")
    # 3 min of stall, then half of the speed for 2 min of rescheduling and 6.4 s of copying
    hsdp, slower_min = of(found, "hsdp"), (2 + 20e9 * 8 / 25e9 / 60) / 2
    saves_min = hsdp["parts"]["save"]["mean"] * 2400
    assert hsdp["overhead_fraction"]["mean"] == pytest.approx((3 + slower_min + saves_min) / 2400)
    short = program("--fixed", text=halves, recovery="{strategy: hsdp, options: {group: 2}}")
    assert short.exit_code == 2
    assert "2 replicas on 8 nodes of `worker` take 4 nodes each" in short.stderr


def test_a_cost_that_nobody_has_a_figure_for_is_not_taken_for_none(program) -> None:
    text = WORKERS.replace("AT", "25 h")
    asked = ("--fixed", "--only", "full", "--only", "torchft")
    found = program(*asked, text=text, recovery="{strategy: full, interval: 10 h}")
    torchft = of(found, "torchft")
    assert torchft["unknown"] == ["quorum"]
    assert torchft["overhead_fraction"]["mean"] < of(found, "full")["overhead_fraction"]["mean"]
    assert found["best"] == "full"
    given = "{strategy: full, interval: 10 h}, {strategy: torchft, options: {quorum: 5 s}}"
    assert of(program(*asked, text=text, recovery=given), "torchft")["unknown"] == []


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> tuple[Path, dict[str, Any], list[str]]:
    """A comparison of a job with embedding servers: folder, JSON, and the command."""
    folder = tmp_path_factory.mktemp("servers")
    path = folder / "scenario.yaml"
    path.write_text(SERVERS, "utf-8")
    command = ["compare-systems", str(path), "--replications", "100", "--out", str(folder / "all")]
    result = call(*command, "--json")
    assert result.exit_code == 0, result.output
    return folder / "all", json.loads(result.stdout), command


def test_json_has_all_parts(servers) -> None:
    _, found, _ = servers
    assert {"best", "cant_be_told", "systems", "left_out", "said", "results"} <= set(found)
    for one in found["systems"]:
        overhead = one["overhead_fraction"]["mean"]
        if one["verdict"] == "unfinished":
            assert overhead is None
            continue
        assert sum(part["mean"] or 0.0 for part in one["parts"].values()) == pytest.approx(overhead)
        assert 1 / (1 + overhead) - 1e-9 <= one["ettr"] <= 1  # the mean of what is convex
        assert {"process", "node", "two nodes", "all nodes"} <= set(one["after"])
        assert one["verdict"] in ("best", "more", "less", "can't be told")


def test_with_a_curve_the_accuracy_that_is_lost_has_a_column(tmp_path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SERVERS, "utf-8")
    curve = Path(__file__).parents[2] / "docs" / "examples" / "curve.csv"
    only = [word for name in ("full", "partial", "none") for word in ("--only", name)]
    said = call(
        "compare-systems", path, "--set", f"accuracy.curve={curve}", "--replications", 100,
        "--out", tmp_path / "results", *only,
    ).stdout  # fmt: skip
    partial = next(line.split() for line in said.splitlines() if line.startswith("partial"))
    assert "AUC lost" in said
    assert "*" not in said
    assert float(partial[-4]) > 0.0  # 0.69 ± 0.19
    assert partial[-3] == "±"


def test_a_system_whose_loss_of_accuracy_nobody_says_is_not_the_cheapest_in_money(
    tmp_path, program
) -> None:
    text = WORKERS.replace("AT", "25 h") + "prices: {node_hour: 3, auc_loss: 40}\n"
    asked = ("--fixed", "--only", "full", "--only", "hsdp")
    found = program(*asked, text=text, recovery="{strategy: full, interval: 10 h}")
    costs = found["money"]["costs"]
    assert costs["hsdp"]["job"]["total_cents"] < costs["full"]["job"]["total_cents"]
    assert (found["best"], found["money"]["cheapest"]) == ("full", "full")
    assert "accuracy" not in costs["hsdp"]["job"]["cents"]
    losses = "strategy,pls,loss,standard_error,by\nhsdp,1,0.0002,0.00001,failures\n"
    (tmp_path / "losses.csv").write_text(losses, "utf-8")
    text += "accuracy: {curve: losses.csv}\n"
    found = program(*asked, text=text, recovery="{strategy: full, interval: 10 h}")
    hsdp = of(found, "hsdp")
    assert (hsdp["accuracy"], hsdp["auc_loss"]["mean"]) == ("priced", pytest.approx(0.0002))
    assert found["money"]["costs"]["hsdp"]["job"]["cents"]["accuracy"] == 8_000  # 2 times 40
    assert found["money"]["cheapest"] == "hsdp"


def test_what_differs_by_rounding_alone_can_not_be_told() -> None:
    overheads = np.array([0.04, 0.06, 0.05])
    same = paired(overheads * (1 + 4e-15), overheads)
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)
    assert verdict_of(same) == "can't be told"
    assert verdict_of(paired(overheads + 1e-7, overheads)) == "more"


def test_stale_shards_without_a_price_are_never_the_best(servers) -> None:
    _, found, _ = servers
    partial = of(found, "partial")
    assert (partial["accuracy"], partial["verdict"]) == ("not priced", "less")
    assert partial["after"]["node"]["takes"] == "shards"
    assert of(found, found["best"])["accuracy"] == "kept"


def test_who_can_not_run_the_job_is_named_with_the_reason(servers) -> None:
    _, found, _ = servers
    assert "target_pls" in found["left_out"]["cpr"]
    assert "job.step" in found["left_out"]["oobleck"]
    assert "`experts`" in found["left_out"]["moc"]
    named = {one["name"] for one in found["systems"]} | set(found["left_out"])
    assert named == {*STRATEGIES, *FEW, "today"}


def test_the_same_command_finds_the_finished_result(servers, monkeypatch) -> None:
    _, found, command = servers
    monkeypatch.setattr("cprsim.experiments.pipeline.simulate", None)
    assert json.loads(call(*command, "--json").stdout) == found
    told = call(*command)
    assert "found again, nothing was simulated" in told.stdout
    n = len(found["left_out"])
    assert f"{n} systems not compared: `cprsim -v compare-systems` says why." in told.stdout
    assert "Not compared" not in told.stdout
    assert "Not compared: cpr, cpr-scar" in call("-v", *command).stdout


def test_entries_run_what_was_compared(servers, tmp_path) -> None:
    _, found, _ = servers
    entries = [one["entry"] for one in found["systems"] if one["name"] != "none"]
    path = tmp_path / "pasted.yaml"
    path.write_text(SERVERS.replace("[full]", f"[{', '.join(entries)}]"), "utf-8")
    result = call("run", path, "--replications", 100, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    for one in json.loads(result.stdout)["strategies"]:
        mean = of(found, one["name"])["overhead_fraction"]["mean"]
        assert one["overhead_fraction"]["mean"] == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("longer", ["", "-of-a-long-name"])
def test_the_table_fits_a_terminal_of_80_columns(servers, monkeypatch, longer) -> None:
    def renamed(found: Any, bills: Any) -> Any:
        table = _costs(found, bills)
        return replace(table, rows=[(f"{name}{longer}", *rest) for name, *rest in table.rows])

    monkeypatch.setattr("cprsim.present.systems._costs", renamed)
    folder, _, _ = servers
    (path,) = [one for one in folder.iterdir() if one.is_dir()]
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system=None)
    show(console, systems_blocks(load_comparison(path)))
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue().split("\nTo run it")[0]
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("\n───") == 1, "one table"


def test_report_plot_and_compare_read_the_folder(servers, tmp_path) -> None:
    folder, _, _ = servers
    (path,) = [one for one in folder.iterdir() if one.is_dir()]
    document = document_of_systems(load_comparison(path))
    assert len(document.sections[0].blocks) == 4
    assert kind_of(path) is KINDS["comparison of systems"]
    drawn = call("plot", path, "--out", tmp_path, "--format", "svg")
    assert drawn.exit_code == 0, drawn.output
    assert [file.name for file in tmp_path.iterdir()] == [f"{path.name}-systems.svg"]
    both = call("compare", path, path, "--json")
    assert both.exit_code == 0, both.output
    differences = json.loads(both.stdout)["differences"]
    assert all(one["difference"] in (0.0, None) for one in differences)


def test_with_a_limit_those_that_keep_it_count(program) -> None:
    text = SERVERS.replace("useful: 20 h", "useful: 10 h")
    found = program("--set", "accuracy.target_pls=0.3", text=text)
    partial = of(found, "partial")
    assert partial["accuracy"] == "within the limit"
    assert partial["interval"] == "found"
    assert of(found, "cpr-mfu")["pls"] <= 0.3
    assert found["limit"] == {"quantity": "pls", "most": 0.3}
    assert found["best"] not in ("full", "none")


@pytest.mark.parametrize(
    ("options", "recovery", "problem"),
    [
        (
            [],
            "{strategy: hsdp, options: {group: 3}}",
            "recovery.0: hsdp: 8 nodes of `worker` make no",
        ),
        ([], "{strategy: gemini, name: full}, {strategy: full, name: other}", "the name `full`"),
        (["--replications", 5], "full", "5 replications"),
        (["--set", "accuracy.max_auc_loss=0.001"], "full", "no staleness curve applies"),
    ],
)
def test_what_can_not_be_compared_is_one_clear_error(
    program, tmp_path, options, recovery, problem
) -> None:
    result = program(*options, recovery=recovery, text=WORKERS.replace("AT", "20 h"))
    assert result.exit_code == 2
    assert problem in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "results").exists()


def test_the_example_of_a_spot_market_runs(tmp_path) -> None:
    path = Path(__file__).parents[2] / "docs" / "examples" / "spot.yaml"
    only = ("--only", "full", "--only", "oobleck", "--replications", 100, "--fixed", "--json")
    result = call("compare-systems", path, *only, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["name"] == "spot"
    full, oobleck = of(found, "full"), of(found, "oobleck")
    # nodes are away for 27.5 of 48 h, some of it at once; full recovery waits for them
    assert full["parts"]["wait"]["mean"] > 0.3
    assert full["verdict"] == "more"
    assert oobleck["parts"]["wait"]["mean"] == 0.0
    assert oobleck["parts"]["degraded"]["mean"] > 0.05


def shown(folder: Path, text: str, *options: object) -> str:
    """What a terminal shows, wrapped lines joined."""
    path = folder / "scenario.yaml"
    path.write_text(text, "utf-8")
    asked = ("compare-systems", path, "--replications", 100, "--out", folder / "results")
    result = call(*asked, *options)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


EACH_4_H = WORKERS.replace("RECOVERY", "{strategy: full, interval: 4 h}").replace("AT", "25 h")


@pytest.mark.long
def test_how_the_job_runs_now_keeps_its_interval_and_is_compared_with(tmp_path, program) -> None:
    only = ("--only", "full", "--only", "gemini")
    text = EACH_4_H + "prices: {node_hour: 20, currency: USD}\n"
    found = program(*only, text=text)
    today, full, gemini = (of(found, name) for name in ("today", "full", "gemini"))
    assert (found["today"], found["best"], today["interval_h"]) == ("today", "gemini", 4.0)
    assert full["interval_h"] != 4.0
    assert full["overhead_fraction"]["mean"] < today["overhead_fraction"]["mean"]
    # 10 saves of 2 min, and 1 h since the last one; a restart of 5.5 min
    assert today["overhead_fraction"]["mean"] == pytest.approx((10 * 2 + 60 + 5.5) / 2400)
    less_h = 40 * -gemini["more_than_today"]["mean"]
    months = [found["money"]["costs"][name]["month"] for name in ("today", "gemini")]
    dollars = (months[0]["total_cents"] - months[1]["total_cents"]) / 100
    # 8 nodes at 20 USD, and as many jobs as do 730.5 h of work
    assert dollars == pytest.approx(8 * 20 * less_h * 730.5 / 40, rel=1e-3)
    said = shown(tmp_path, text, *only).splitlines()
    (line,) = (one for one in said if one.startswith("Against today"))
    assert line.startswith("Against today (full, every 4 h: 3.56")
    assert f" and {dollars:,.2f} USD per 730.5 h of work" in line
    assert said[said.index(line) + 1] == "", "the last line of the answer"
    assert "a month" not in "".join(said)


def test_an_entry_that_is_called_today_is_how_the_job_runs_now(program) -> None:
    text = EACH_4_H.replace("full, interval", "full, name: today, interval")
    found = program("--only", "today", "--only", "full", text=text)
    assert of(found, "today")["interval_h"] == 4.0
    assert of(found, "full")["interval"] == "found"


@pytest.mark.long
def test_what_is_missing_is_named_and_what_runs_today(tmp_path, program) -> None:
    names = [word for name in ("full", "gemini", "torchft", "oobleck") for word in ("--only", name)]
    text = EACH_4_H.replace("4 h}", "4 h}, {strategy: oobleck, options: {grows: at once}}")
    found = program(*names, text=text)
    runs = {one["name"]: one["runs_as"] for one in found["systems"]}
    assert (runs["oobleck"], runs["torchft"]) == (None, "torchft")
    assert (found["best"], found["best_that_runs"]) == ("oobleck", "gemini")
    said = shown(tmp_path, text, *names)
    assert "a paper only: nothing that is maintained runs it." in said
    assert "Cheapest that runs today: gemini (runs as HyperPod tiered checkpoints)" in said
    assert "Assumed: 8 replicas of the state, each on 1 workers. Each failure takes one" in said
    assert re.search(r"torchft \* +never +at least 0\.0\d+", said)
    alone = program("--available", text=EACH_4_H)
    assert {one["name"] for one in alone["systems"]} == {
        "none",
        "today",
        "full",
        "gemini",
        "hsdp",
        "torchft",
    }
    assert alone["left_out"]["oobleck"].startswith("a paper only")


def test_failures_that_take_several_nodes_are_not_assumed_to_take_one() -> None:
    loaded = load_scenario(SCENARIOS / "production.yaml")  # four servers each time
    assert not any("one node" in one for one in assumptions(loaded.scenario))
    alone = load_scenario(SCENARIOS / "production.yaml", ["failures.together=1"])
    assert any("one node" in one for one in assumptions(alone.scenario))


def test_a_tier_is_named_where_several_are_saved_to(tmp_path) -> None:
    entry = "recovery: [{strategy: gemini, options: {remote_every: 5 h}}]"
    text = re.sub("recovery: .*", entry, EACH_4_H)
    assert "10 s peers, 5 h remote" in shown(tmp_path, text, "--fixed", "--only", "gemini")
    run = call("run", tmp_path / "scenario.yaml", "--out", tmp_path / "results")
    assert "10 s peers, 5 h remote" in run.stdout


def test_systems_that_are_alike_are_one_row_and_all_are_shown_where_asked(tmp_path) -> None:
    text = WORKERS.replace("RECOVERY", "full").replace("AT", "25 h")
    entries = ", ".join(f"{{strategy: full, name: f{n}, interval: {n} h}}" for n in range(1, 9))
    text = text.replace("[full]", f"[{entries}, {{strategy: full, name: same, interval: 5 h}}]")
    only = [word for n in range(1, 9) for word in ("--only", f"f{n}")]
    said = shown(tmp_path, text, "--fixed", *only, "--only", "same")
    rows = [line for line in said.splitlines() if re.match(r"(f\d|same)\b.*torch", line)]
    assert rows[0].startswith(("f5, same", "same, f5"))
    assert len(rows) == 6  # the five cheapest, and the first entry, which is how the job runs now
    assert "2 systems that cost more: `--all`." in said
    everything = shown(tmp_path, text, "--fixed", "--all", *only, "--only", "same")
    assert "`--all`" not in everything


@pytest.mark.long
def test_the_bar_knows_how_many_systems_there_are(tmp_path) -> None:
    text = WORKERS.replace("AT", "25 h").replace("RECOVERY", "full")
    experiment = maker(tmp_path, text)
    loaded = load_scenario(tmp_path / "scenario.yaml", ["simulation.replications=100"])
    made = lineup_of(loaded, experiment(), only=("full", "gemini"), today=False)
    told: list[tuple[int, int]] = []
    best_policies(made, lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {2}
    assert told[-1] == (2, 2)
