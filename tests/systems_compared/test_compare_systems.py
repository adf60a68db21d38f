"""Which system: known answers, who is left out, what is said, and that nothing is made twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cprsim.present.kinds import KINDS, kind_of
from cprsim.present.systems import document_of_systems, name_of, systems_blocks
from cprsim.present.terminal import show
from cprsim.records import Estimate
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario import load_scenario
from cprsim.systems_compared.best import at_their_best
from cprsim.systems_compared.comparison import assumptions, load_comparison, verdict_of
from cprsim.systems_compared.lineup import Rules, entrants_of
from tests.making import SCENARIOS, call, maker

EXAMPLES = SCENARIOS.parent / "docs" / "examples"
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
AT_25_H = WORKERS.replace("AT", "25 h")
EACH_4_H = AT_25_H.replace("RECOVERY", "{strategy: full, interval: 4 h}")
EACH_10_H = "{strategy: full, interval: 10 h}"
FEW = ("ecrec", "gemini", "hsdp", "moc", "oobleck", "torchft")  # however many systems there are


@pytest.fixture(scope="module", autouse=True)
def few_systems() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        few = {name: SYSTEMS[name] for name in (*STRATEGIES, *FEW)}
        patch.setattr("cprsim.systems_compared.lineup.SYSTEMS", few)
        yield


def only(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--only", name))


@pytest.fixture
def program(tmp_path):
    """Compare the systems of a scenario, as JSON where all goes well."""

    def run(*options: object, text: str = WORKERS, recovery: str = "full") -> Any:
        result = called(tmp_path, text.replace("RECOVERY", recovery), "--json", *options)
        return json.loads(result.stdout) if result.exit_code == 0 else result

    return run


def called(folder: Path, text: str, *options: object) -> Any:
    path = folder / "scenario.yaml"
    path.write_text(text, "utf-8")
    asked = ("compare-systems", path, "--replications", 100, "--out", folder / "results")
    return call(*asked, *options)


def shown(folder: Path, text: str, *options: object) -> str:
    """What a terminal shows."""
    result = called(folder, text, *options)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


def of(found: Any, name: str) -> Any:
    return next(one for one in found["systems"] if one["name"] == name)


def mean(found: Any, name: str) -> float:
    return float(of(found, name)["overhead_fraction"]["mean"])


# --------------------------------------------------------------------------- known answers


def test_where_nothing_fails_what_costs_nothing_all_the_time_is_best(program) -> None:
    found = program(text=SERVERS.replace("mtbf: 5 h", "mtbf: 90000 h"))
    assert mean(found, "none") < 0.002
    assert found["best"] in ("none", "full", "today")
    # full recovery at its best never saves, and is `none` then
    assert of(found, "full")["interval_h"] is None or found["best"] == "none"


def test_one_failure_costs_each_what_its_rules_say(program) -> None:
    # one failure after 1,500 min of work; detection, rescheduling and load take 5.5 min
    found = program("--fixed", text=AT_25_H, recovery=f"{EACH_10_H}, none")
    # four saves, the one at the end too; 300 min are lost since the one at 1,200
    assert mean(found, "full") == pytest.approx((4 * 2 + 5.5 + 300) / 2400)
    assert mean(found, "none") == pytest.approx((1500 + 2.5) / 2400)
    # 3 min of stall, then the speed of 7 of 8 for 2 min of rescheduling and 6.4 s of copying
    slower_min = 2 + 20e9 * 8 / 25e9 / 60
    hsdp = of(found, "hsdp")
    saves_min = hsdp["parts"]["save"]["mean"] * 2400
    assert mean(found, "hsdp") == pytest.approx((3 + slower_min / 8 + saves_min) / 2400)
    kept = [one["name"] for one in found["systems"] if one["accuracy"] == "kept"]
    best = mean(found, found["best"])
    assert best == min(mean(found, name) for name in kept)
    # steps are on smaller batches while a group is missing
    assert (hsdp["accuracy"], hsdp["auc_loss"]) == ("not priced", None)
    assert any(said.startswith("* torchft, hsdp: what smaller batches") for said in found["said"])
    none = of(found, "none")
    more = none["more_than_best"]
    assert more["mean"] == pytest.approx(mean(found, "none") - best)
    assert (more["low"], more["high"], none["verdict"]) == (more["mean"], more["mean"], "more")
    # a replica takes as many nodes as hold the state: half of the speed
    halves = AT_25_H.replace("replicas: 8", "replicas: 2")
    found = program("--fixed", text=halves, recovery="full, gemini")
    saves_min = of(found, "hsdp")["parts"]["save"]["mean"] * 2400
    assert mean(found, "hsdp") == pytest.approx((3 + slower_min / 2 + saves_min) / 2400)


def test_what_goes_on_from_replicas_is_not_compared_where_the_state_exists_once(program) -> None:
    needy = ("hsdp", "oobleck", "torchft")
    found = program("--fixed", text=SERVERS.replace("job: {", "job: {step: 10 s, "))
    for name in needy:
        assert found["left_out"][name].endswith("shards of embedding servers exist once")
    found = program("--fixed", text=AT_25_H.replace("replicas: 8, ", ""), recovery="full, gemini")
    for name in needy:
        assert "the 8 nodes of `worker` hold the state once" in found["left_out"][name]
    wrong = program("--fixed", text=SERVERS.replace("emb_ps: 10", "emb_ps: 10, replicas: 2"))
    assert (wrong.exit_code, "goes with `workers`" in wrong.stderr) == (2, True)


def test_a_cost_that_nobody_has_a_figure_for_is_not_taken_for_none(program) -> None:
    asked = ("--fixed", *only("full", "torchft"))
    found = program(*asked, text=AT_25_H, recovery=EACH_10_H)
    assert of(found, "torchft")["unknown"] == ["quorum"]
    assert mean(found, "torchft") < mean(found, "full")
    assert found["best"] == "full"
    given = f"{EACH_10_H}, {{strategy: torchft, options: {{quorum: 5 s}}}}"
    assert of(program(*asked, text=AT_25_H, recovery=given), "torchft")["unknown"] == []


def test_what_differs_by_rounding_alone_can_not_be_told(program) -> None:
    entries = "{strategy: full, interval: 4 h}, {strategy: full, name: same, interval: 240 min}"
    found = program("--fixed", *only("full", "same"), text=AT_25_H, recovery=entries)
    (same,) = (one for one in found["systems"] if one["verdict"] != "best")
    assert same["more_than_best"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert same["verdict"] == "can't be told"
    assert verdict_of(Estimate(1e-7, 1e-8, 2e-7)) == "more"
    assert verdict_of(Estimate(-1e-7, -2e-7, -1e-8)) == "less"


# --------------------------------------------------------------------------- embedding servers


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    """A comparison of a job with embedding servers: its results folder and JSON."""
    result = called(tmp_path_factory.mktemp("servers"), SERVERS, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    return Path(found["results"]), found


def test_json_has_all_parts(servers) -> None:
    _, found = servers
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
    # stale shards without a price are never the best
    partial = of(found, "partial")
    assert (partial["accuracy"], partial["verdict"]) == ("not priced", "less")
    assert partial["after"]["node"]["takes"] == "shards"
    assert of(found, found["best"])["accuracy"] == "kept"
    for name, needed in {"cpr": "target_pls", "oobleck": "job.step", "moc": "`experts`"}.items():
        assert needed in found["left_out"][name]
    named = {one["name"] for one in found["systems"]} | set(found["left_out"])
    assert named == {*STRATEGIES, *FEW, "today"}


def test_entries_run_what_was_compared(servers, tmp_path) -> None:
    _, found = servers
    entries = [one["entry"] for one in found["systems"] if one["name"] != "none"]
    path = tmp_path / "pasted.yaml"
    path.write_text(SERVERS.replace("[full]", f"[{', '.join(entries)}]"), "utf-8")
    result = call("run", path, "--replications", 100, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    for one in json.loads(result.stdout)["strategies"]:
        overhead = one["overhead_fraction"]["mean"]
        assert overhead == pytest.approx(mean(found, one["name"]), rel=1e-9)


@pytest.mark.parametrize("longer", ["", "-of-a-long-name"])
def test_the_table_fits_a_terminal_of_80_columns(servers, monkeypatch, longer) -> None:
    longer_name = lambda one: name_of(one) + longer  # noqa: E731
    monkeypatch.setattr("cprsim.present.systems.name_of", longer_name)
    console = Console(file=StringIO(), width=80, force_terminal=True, color_system=None)
    show(console, systems_blocks(load_comparison(servers[0])))
    assert isinstance(console.file, StringIO)
    said = console.file.getvalue().split("\nTo run it")[0]
    assert max(map(len, said.splitlines())) <= 80
    assert said.count("\n───") == 1, "one table"


def test_report_plot_and_compare_read_the_folder(servers, tmp_path) -> None:
    path, _ = servers
    assert len(document_of_systems(load_comparison(path)).sections[0].blocks) == 4
    assert kind_of(path) is KINDS["comparison of systems"]
    drawn = call("plot", path, "--out", tmp_path, "--format", "svg")
    assert drawn.exit_code == 0, drawn.output
    assert [file.name for file in tmp_path.iterdir()] == [f"{path.name}-systems.svg"]
    both = call("compare", path, path, "--json")
    assert both.exit_code == 0, both.output
    differences = json.loads(both.stdout)["differences"]
    assert all(one["difference"] in (0.0, None) for one in differences)


# --------------------------------------------------------------------------- accuracy


def test_with_a_curve_the_accuracy_that_is_lost_has_a_column(tmp_path) -> None:
    curve = ("--set", f"accuracy.curve={EXAMPLES / 'curve.csv'}")
    said = shown(tmp_path, SERVERS, *curve, *only("full", "partial", "none"))
    partial = next(line.split() for line in said.splitlines() if line.startswith("partial"))
    assert "AUC lost" in said
    assert "*" not in said
    assert float(partial[-4]) > 0.0  # 0.69 ± 0.19
    assert partial[-3] == "±"


def test_a_system_whose_loss_of_accuracy_nobody_says_is_not_the_cheapest_in_money(
    tmp_path, program
) -> None:
    text = AT_25_H + "prices: {node_hour: 3, auc_loss: 40}\n"
    asked = ("--fixed", *only("full", "hsdp"))
    found = program(*asked, text=text, recovery=EACH_10_H)
    costs = found["money"]["costs"]
    assert costs["hsdp"]["job"]["total_cents"] < costs["full"]["job"]["total_cents"]
    assert (found["best"], found["money"]["cheapest"]) == ("full", "full")
    assert "accuracy" not in costs["hsdp"]["job"]["cents"]
    losses = "strategy,pls,loss,standard_error,by\nhsdp,1,0.0002,0.00001,failures\n"
    (tmp_path / "losses.csv").write_text(losses, "utf-8")
    text += "accuracy: {curve: losses.csv}\n"
    found = program(*asked, text=text, recovery=EACH_10_H)
    hsdp = of(found, "hsdp")
    assert (hsdp["accuracy"], hsdp["auc_loss"]["mean"]) == ("priced", pytest.approx(0.0002))
    assert found["money"]["costs"]["hsdp"]["job"]["cents"]["accuracy"] == 8_000  # 2 times 40
    assert found["money"]["cheapest"] == "hsdp"


def test_with_a_limit_those_that_keep_it_count(program) -> None:
    text = SERVERS.replace("useful: 20 h", "useful: 10 h")
    found = program("--set", "accuracy.target_pls=0.3", text=text)
    partial = of(found, "partial")
    assert (partial["accuracy"], partial["interval"]) == ("within the limit", "found")
    assert of(found, "cpr-mfu")["pls"] <= 0.3
    assert found["limit"] == {"quantity": "pls", "most": 0.3}
    assert found["best"] not in ("full", "none")


# --------------------------------------------------------------------------- who is compared


HSDP, HALVES = "{strategy: hsdp, options: ", ("--set", "cluster.replicas=2")


@pytest.mark.parametrize(
    ("options", "recovery", "problem"),
    [
        ([], f"{HSDP}{{group: 3}}}}", "recovery.0: hsdp: 8 nodes of `worker` make no"),
        (HALVES, f"{HSDP}{{group: 2}}}}", "2 replicas on 8 nodes of `worker` take 4 nodes each"),
        ([], "{strategy: gemini, name: full}, {strategy: full, name: other}", "the name `full`"),
        (["--replications", 5], "full", "5 replications"),
        (["--set", "accuracy.max_auc_loss=0.001"], "full", "no staleness curve applies"),
        (["--only", "nobody"], "full", "--only: there is no `nobody`; there are: full, gemini,"),
        (["--only", "moc"], "full", "--only: `moc` can't run this job: give `experts`"),
    ],
)
def test_what_can_not_be_compared_is_one_clear_error(
    program, tmp_path, options, recovery, problem
) -> None:
    result = program(*options, recovery=recovery, text=AT_25_H)
    assert result.exit_code == 2
    assert problem in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "results").exists()


def test_the_example_of_a_spot_market_runs(tmp_path) -> None:
    asked = ("compare-systems", EXAMPLES / "spot.yaml", *only("full", "oobleck"), "--fixed")
    result = call(*asked, "--replications", 100, "--json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["name"] == "spot"
    full, oobleck = of(found, "full"), of(found, "oobleck")
    # nodes are away for 27.5 of 48 h, some of it at once; full recovery waits for them
    assert full["parts"]["wait"]["mean"] > 0.3
    assert full["verdict"] == "more"
    assert oobleck["parts"]["wait"]["mean"] == 0.0
    assert oobleck["parts"]["degraded"]["mean"] > 0.05


@pytest.mark.long
def test_how_the_job_runs_now_keeps_its_interval_and_is_compared_with(tmp_path, program) -> None:
    asked = only("full", "gemini")
    text = EACH_4_H + "prices: {node_hour: 20, currency: USD}\n"
    found = program(*asked, text=text)
    today, gemini = (of(found, name) for name in ("today", "gemini"))
    assert (found["today"], found["best"], today["interval_h"]) == ("today", "gemini", 4.0)
    assert of(found, "full")["interval_h"] != 4.0
    assert mean(found, "full") < mean(found, "today")
    # 10 saves of 2 min, and 1 h since the last one; a restart of 5.5 min
    assert mean(found, "today") == pytest.approx((10 * 2 + 60 + 5.5) / 2400)
    less_h = 40 * -gemini["more_than_today"]["mean"]
    months = [found["money"]["costs"][name]["month"] for name in ("today", "gemini")]
    dollars = (months[0]["total_cents"] - months[1]["total_cents"]) / 100
    # 8 nodes at 20 USD, and as many jobs as do 730.5 h of work
    assert dollars == pytest.approx(8 * 20 * less_h * 730.5 / 40, rel=1e-3)
    said = shown(tmp_path, text, *asked).splitlines()
    (line,) = (one for one in said if one.startswith("Against today"))
    assert line.startswith("Against today (full, every 4 h: 3.56")
    assert f" and {dollars:,.2f} USD per 730.5 h of work" in line
    assert said[said.index(line) + 1] == "", "the last line of the answer"
    assert "a month" not in "".join(said)


def test_an_entry_that_is_called_today_is_how_the_job_runs_now(program) -> None:
    text = EACH_4_H.replace("full, interval", "full, name: today, interval")
    found = program(*only("today", "full"), text=text)
    assert of(found, "today")["interval_h"] == 4.0
    assert of(found, "full")["interval"] == "found"


@pytest.mark.long
def test_what_is_missing_is_named_and_what_runs_today(tmp_path, program) -> None:
    asked = only("full", "gemini", "torchft", "oobleck")
    text = EACH_4_H.replace("4 h}", "4 h}, {strategy: oobleck, options: {grows: at once}}")
    found = program(*asked, text=text)
    runs = {one["name"]: one["runs_as"] for one in found["systems"]}
    assert (runs["oobleck"], runs["torchft"]) == (None, "torchft")
    assert (found["best"], found["best_that_runs"]) == ("oobleck", "gemini")
    said = shown(tmp_path, text, *asked)
    assert "a paper only: nothing that is maintained runs it." in said
    assert "Cheapest that runs today: gemini (runs as HyperPod tiered checkpoints)" in said
    assert "Assumed: 8 replicas of the state, each on 1 workers. Each failure takes one" in said
    assert re.search(r"torchft \* +never +at least 0\.0\d+", said)


def test_what_a_job_can_not_run_today_is_left_out_where_asked(tmp_path) -> None:
    experiment = maker(tmp_path, EACH_4_H)
    loaded = load_scenario(tmp_path / "scenario.yaml")
    there, left_out = entrants_of(loaded, experiment(), rules=Rules(available=True))
    assert {one.name for one in there} == {"none", "today", "full", "gemini", "hsdp", "torchft"}
    assert left_out["oobleck"].startswith("a paper only")


def test_failures_that_take_several_nodes_are_not_assumed_to_take_one() -> None:
    loaded = load_scenario(SCENARIOS / "production.yaml")  # four servers each time
    assert not any("one node" in one for one in assumptions(loaded.scenario))
    alone = load_scenario(SCENARIOS / "production.yaml", ["failures.together=1"])
    assert any("one node" in one for one in assumptions(alone.scenario))


def test_a_tier_is_named_where_several_are_saved_to(tmp_path) -> None:
    entry = "recovery: [{strategy: gemini, options: {remote_every: 5 h}}]"
    text = re.sub("recovery: .*", entry, EACH_4_H)
    assert "10 s peers, 5 h remote" in shown(tmp_path, text, "--fixed", *only("gemini"))
    run = call("run", tmp_path / "scenario.yaml", "--out", tmp_path / "results")
    assert "10 s peers, 5 h remote" in run.stdout


def test_systems_that_are_alike_are_one_row_and_all_are_shown_where_asked(tmp_path) -> None:
    names = [f"f{n}" for n in range(1, 9)]
    entries = [f"{{strategy: full, name: f{n}, interval: {n} h}}" for n in range(1, 9)]
    entries.append("{strategy: full, name: same, interval: 5 h}")
    text = AT_25_H.replace("RECOVERY", ", ".join(entries))
    asked = ("--fixed", *only(*names, "same"))
    said = shown(tmp_path, text, *asked)
    rows = [line for line in said.splitlines() if re.match(r"(f\d|same)\b.*torch", line)]
    assert rows[0].startswith(("f5, same", "same, f5"))
    assert len(rows) == 6  # the five cheapest, and the first entry, which is how the job runs now
    assert "2 systems that cost more: `--all`." in said
    assert "`--all`" not in shown(tmp_path, text, *asked, "--all")


def test_the_bar_knows_how_many_systems_there_are(tmp_path) -> None:
    made = maker(tmp_path, SERVERS)("simulation.replications=100")
    loaded = load_scenario(tmp_path / "scenario.yaml", ["simulation.replications=100"])
    entrants, _ = entrants_of(loaded, made, rules=Rules(only=("full",)))
    told: list[tuple[int, int]] = []
    at_their_best(entrants, made, on_progress=lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {1}
    assert told[-1] == (1, 1)
