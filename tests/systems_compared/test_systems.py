"""Which system: known answers, who is left out, what is said, and that nothing is made twice."""

import re
from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cprsim
from cprsim.commands.systems.candidates import PAPER_ONLY, candidates_of
from cprsim.commands.systems.comparison import verdict_of
from cprsim.errors import CprsimError
from cprsim.job.policy import PARTS_IN_ORDER
from cprsim.job.records import Estimate
from cprsim.pages.answer import Answer
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.reading import load_scenario
from tests.closed_forms import p_none_clean
from tests.making import maker

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
        patch.setattr("cprsim.commands.systems.candidates.SYSTEMS", few)
        yield


def compared(
    *overrides: str, text: str = WORKERS, recovery: str = "full", only: Sequence[str] = (),
    fixed: bool = False, replications: int = 100, folder: Path | None = None,
) -> Answer:  # fmt: skip
    return cprsim.systems(
        text.replace("RECOVERY", recovery), overrides, only=only, fixed=fixed,
        replications=replications, folder=folder,
    )  # fmt: skip


def of(found: Answer, name: str) -> Any:
    return found.frames["systems"].set_index("system").loc[name]


def mean(found: Answer, name: str) -> float:
    return float(of(found, name)["overhead_fraction"])


def said(found: Answer) -> str:
    """The answer, all remarks and assumptions."""
    document = found.document
    return "\n".join([*document.answer, *document.remarks, document.turns_on])


def bill(found: Answer, name: str, part: str, of: str = "job_cost") -> float:
    bills = found.frames["bills"].set_index(["strategy", "part"])
    return float(bills.loc[(name, part), of])


# --------------------------------------------------------------------------- known answers


def test_one_failure_costs_each_what_its_rules_say() -> None:
    # one failure after 1,500 min of work; detection, rescheduling and load take 5.5 min
    found = compared(fixed=True, text=AT_25_H, recovery=f"{EACH_10_H}, none")
    # four saves, the one at the end too; 300 min are lost since the one at 1,200
    assert mean(found, "full") == pytest.approx((4 * 2 + 5.5 + 300) / 2400)
    assert mean(found, "none") == pytest.approx((1500 + 2.5) / 2400)
    # 3 min of stall, then the speed of 7 of 8 for 2 min of rescheduling and 6.4 s of copying
    slower_min = 2 + 20e9 * 8 / 25e9 / 60
    hsdp = of(found, "hsdp")
    saves_min = hsdp["save_fraction"] * 2400
    assert mean(found, "hsdp") == pytest.approx((3 + slower_min / 8 + saves_min) / 2400)
    systems = found.frames["systems"]
    kept = systems[systems["accuracy"] == "kept"]
    best = mean(found, found.values["best"])
    assert best == kept["overhead_fraction"].min()
    # steps are on smaller batches while a group is missing
    assert hsdp["accuracy"] == "not priced"
    assert isnan(hsdp["auc_loss"])
    assert "torchft *, hsdp *: the accuracy loss of smaller batches" in said(found)
    none = of(found, "none")
    more = [none[f"more_than_best{end}"] for end in ("", "_low", "_high")]
    assert more[0] == pytest.approx(mean(found, "none") - best)
    assert (more[1], more[2], none["verdict"]) == (more[0], more[0], "more")
    # a replica takes as many nodes as hold the state: half of the speed
    halves = AT_25_H.replace("replicas: 8", "replicas: 2")
    found = compared(fixed=True, text=halves, recovery="full, gemini")
    saves_min = of(found, "hsdp")["save_fraction"] * 2400
    assert mean(found, "hsdp") == pytest.approx((3 + slower_min / 2 + saves_min) / 2400)


def test_what_lacks_an_input_is_left_out_and_named() -> None:
    once = EACH_4_H.replace("replicas: 8", "replicas: 1")
    found = cprsim.systems(once, fixed=True, available=True)
    assert "nodes of `worker` hold the state once" in found.values["left_out"]["hsdp"]
    assert "Not compared: hsdp, torchft. This job can't run them" in said(found)
    with pytest.raises(CprsimError, match="goes with `workers`"):
        compared(fixed=True, text=SERVERS.replace("emb_ps: 10", "emb_ps: 10, replicas: 2"))


def test_a_cost_that_nobody_has_a_figure_for_is_not_taken_for_none() -> None:
    asked: dict[str, Any] = {"fixed": True, "only": ("full", "torchft"), "text": AT_25_H}
    found = compared(recovery=EACH_10_H, **asked)
    assert of(found, "torchft")["unknown"] == "quorum"
    assert mean(found, "torchft") < mean(found, "full")
    assert found.values["best"] == "full"
    assert "May cost less, but a cost is unknown: torchft at least" in said(found)
    given = f"{EACH_10_H}, {{strategy: torchft, options: {{quorum: 5 s}}}}"
    assert of(compared(recovery=given, **asked), "torchft")["unknown"] == ""


def test_what_differs_by_rounding_alone_can_not_be_told() -> None:
    entries = "{strategy: full, interval: 4 h}, {strategy: full, name: same, interval: 240 min}"
    found = compared(fixed=True, only=("full", "same"), text=AT_25_H, recovery=entries)
    same = of(found, (set(found.frames["systems"]["system"]) - {found.values["best"]}).pop())
    assert [same[f"more_than_best{end}"] for end in ("", "_low", "_high")] == [0.0, 0.0, 0.0]
    assert same["verdict"] == "can't be told"
    assert verdict_of(Estimate(1e-7, 1e-8, 2e-7)) == "more"
    assert verdict_of(Estimate(-1e-7, -2e-7, -1e-8)) == "less"


# --------------------------------------------------------------------------- embedding servers


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """A comparison of a job with embedding servers, kept."""
    return compared(text=SERVERS, folder=tmp_path_factory.mktemp("servers"))


def test_a_comparison_says_all_of_each_system(servers: Answer) -> None:
    systems, after = servers.frames["systems"], servers.frames["after"]
    parts = [f"{part}_fraction" for part in PARTS_IN_ORDER if f"{part}_fraction" in systems]
    for _, one in systems.iterrows():
        overhead = one["overhead_fraction"]
        if one["verdict"] == "unfinished":
            assert isnan(overhead)
            continue
        assert one[parts].fillna(0.0).sum() == pytest.approx(overhead)
        assert 1 / (1 + overhead) - 1e-9 <= one["ettr"] <= 1  # the mean of what is convex
        failures = after[after["system"] == one["system"]]["failure"]
        assert {"process", "node", "two nodes", "all nodes"} <= set(failures)
        assert one["verdict"] in ("best", "more", "less", "can't be told")
    # stale shards without a price are never the best
    partial = of(servers, "partial")
    assert (partial["accuracy"], partial["verdict"]) == ("not priced", "less")
    takes = after.set_index(["system", "failure"])["takes"]
    assert takes["partial", "node"] == "shards"
    assert of(servers, servers.values["best"])["accuracy"] == "kept"
    needed = {"cpr": "target_pls", "oobleck": "job.step", "moc": "`experts`"}
    for name, key in needed.items():
        assert key in servers.values["left_out"][name]
    named = {*systems["system"], *servers.values["left_out"]}
    assert named == {*STRATEGIES, *FEW, "today"}


def test_the_figure_has_the_paired_differences_of_the_table(servers: Answer) -> None:
    systems, axes = servers.frames["systems"], servers.plot().axes[0]
    drawn = {round(np.ptp(bar.get_segments()[0], axis=0)[0], 9) for bar in axes.collections}
    widths = systems["more_than_best_high"] - systems["more_than_best_low"]
    assert {*widths.round(9)} >= drawn > set()


def test_entries_run_what_was_compared(servers: Answer) -> None:
    systems = servers.frames["systems"]
    entries = systems["entry"][systems["system"] != "none"]
    pasted = cprsim.run(SERVERS.replace("[full]", f"[{', '.join(entries)}]"), replications=100)
    for _, one in pasted.frames["strategies"].iterrows():
        expected = mean(servers, one["strategy"])
        assert one["overhead_fraction"] == pytest.approx(expected, rel=1e-9)


def test_read_and_report_take_the_folder(servers: Answer) -> None:
    path = servers.folder
    again = cprsim.read(path)
    assert again.kind == "comparison of systems"
    pd.testing.assert_frame_equal(again.frames["systems"], servers.frames["systems"])
    assert (path / "systems.png").is_file()
    compared_with_itself = cprsim.report(path, path).frames["differences"]
    assert set(compared_with_itself["difference"].dropna()) == {0.0}


# --------------------------------------------------------------------------- accuracy


def test_a_system_whose_loss_of_accuracy_nobody_says_is_not_the_cheapest_in_money(
    tmp_path: Path,
) -> None:
    text = AT_25_H + "prices: {node_hour: 3, auc_loss: 40}\n"
    asked: dict[str, Any] = {"fixed": True, "only": ("full", "hsdp"), "recovery": EACH_10_H}
    found = compared(text=text, **asked)
    assert bill(found, "hsdp", "total") < bill(found, "full", "total")
    assert (found.values["best"], found.values["cheapest"]) == ("full", "full")
    assert ("hsdp", "accuracy") not in found.frames["bills"].set_index(["strategy", "part"]).index
    losses = "strategy,pls,loss,standard_error,by\nhsdp,1,0.0002,0.00001,failures\n"
    (tmp_path / "losses.csv").write_text(losses, "utf-8")
    text += f"accuracy: {{curve: {tmp_path / 'losses.csv'}}}\n"
    found = compared(text=text, **asked)
    hsdp = of(found, "hsdp")
    assert (hsdp["accuracy"], hsdp["auc_loss"]) == ("priced", pytest.approx(0.0002))
    assert bill(found, "hsdp", "accuracy") == 80  # 2 times 40
    assert found.values["cheapest"] == "hsdp"


def test_with_a_limit_those_that_keep_it_count() -> None:
    text = SERVERS.replace("useful: 20 h", "useful: 10 h")
    found = compared("accuracy.target_pls=0.3", text=text)
    partial = of(found, "partial")
    assert (partial["accuracy"], partial["interval"]) == ("within the limit", "found")
    assert of(found, "cpr-mfu")["pls"] <= 0.3
    assert found.values["limit"] == {"quantity": "pls", "most": 0.3}
    assert found.values["best"] not in ("full", "none")


# --------------------------------------------------------------------------- who is compared


NAMED_FULL = "{strategy: gemini, name: full}, {strategy: full, name: other}"
REFUSED: list[tuple[list[str], str, dict[str, Any], str]] = [
    (
        [],
        "{strategy: hsdp, options: {group: 3}}",
        {},
        "recovery.0: hsdp: 8 nodes of `worker` make no",
    ),
    ([], NAMED_FULL, {}, "the name `full`"),
    (["accuracy.max_auc_loss=0.001"], "full", {}, "an accuracy limit needs a staleness curve"),
    ([], "full", {"only": ["nobody"]}, "only: there is no `nobody`; Known: full, gemini,"),
    ([], "full", {"only": ["moc"]}, "only: `moc` can't run this job: give `experts`"),
]


@pytest.mark.parametrize(("overrides", "recovery", "options", "problem"), REFUSED)
def test_what_can_not_be_compared_is_one_clear_error(
    tmp_path: Path, overrides: list[str], recovery: str, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(CprsimError, match=re.escape(problem)):
        compared(
            *overrides, recovery=recovery, text=AT_25_H, folder=tmp_path / "results", **options
        )
    assert not (tmp_path / "results").exists()


@pytest.mark.long
def test_how_the_job_runs_now_keeps_its_interval_and_is_compared_with() -> None:
    text = EACH_4_H + "prices: {node_hour: 20, currency: USD}\n"
    found = compared(text=text, only=("full", "gemini"))
    today, gemini = (of(found, name) for name in ("today", "gemini"))
    assert (found.values["today"], found.values["best"]) == ("today", "gemini")
    assert today["interval_h"] == 4.0
    assert of(found, "full")["interval_h"] != 4.0
    assert mean(found, "full") < mean(found, "today")
    # 10 saves of 2 min, and 1 h since the last one; a restart of 5.5 min
    assert mean(found, "today") == pytest.approx((10 * 2 + 60 + 5.5) / 2400)
    less_h = 40 * -gemini["more_than_today"]
    dollars = -sum(
        sign * bill(found, name, "total", "month_cost")
        for sign, name in ((-1, "today"), (1, "gemini"))
    )
    # 8 nodes at 20 USD, and as many jobs as do 730.5 h of work
    assert dollars == pytest.approx(8 * 20 * less_h * 730.5 / 40, rel=1e-3)
    line = found.document.answer[-1]
    assert line.startswith("Compared with today (full, every 4 h: 3.56")
    assert f" and costs {dollars:,.2f} USD less per 730.5 h of work" in line
    assert "a month" not in said(found)


def test_an_entry_that_is_called_today_is_how_the_job_runs_now() -> None:
    text = EACH_4_H.replace("full, interval", "full, name: today, interval")
    found = compared(only=("today", "full"), text=text)
    assert of(found, "today")["interval_h"] == 4.0
    assert of(found, "full")["interval"] == "found"


@pytest.mark.long
def test_what_is_missing_is_named_and_what_runs_today() -> None:
    text = EACH_4_H.replace("4 h}", "4 h}, {strategy: oobleck, options: {grows: at once}}")
    found = compared(text=text, only=("full", "gemini", "torchft", "oobleck"))
    assert (of(found, "oobleck")["runs_as"], of(found, "torchft")["runs_as"]) == ("", "torchft")
    assert (found.values["best"], found.values["best_that_runs"]) == ("oobleck", "full")
    words = said(found)
    assert "Cheapest maintained: full (runs as torch.save, PyTorch DCP)" in words
    assert "Assumed: 8 replicas of the state, each on 1 workers. Each failure takes one" in words
    assert re.search(r"torchft \* +\S.* +at least 0\.\d+", str(found))
    assert "Not compared: " not in words  # of those that were asked for


def test_what_a_job_can_not_run_today_is_left_out_where_asked(tmp_path: Path) -> None:
    experiment = maker(tmp_path, EACH_4_H.replace("4 h}", "4 h}, {strategy: gemini, name: peers}"))
    loaded = load_scenario(tmp_path / "scenario.yaml")
    there, left_out = candidates_of(loaded, experiment(), available=True)
    assert {one.name for one in there} == {"none", "today", "full", "hsdp", "torchft"}
    assert "peers" in left_out  # whatever an entry is called
    assert {why.words for why in left_out.values()} == {PAPER_ONLY}


def test_systems_that_are_alike_are_one_row() -> None:
    entries = [f"{{strategy: full, name: f{n}, interval: {n} h}}" for n in (4, 5)]
    entries.append("{strategy: full, name: same, interval: 5 h}")
    text = AT_25_H.replace("RECOVERY", ", ".join(entries))
    table = compared(text=text, fixed=True, only=("f4", "f5", "same")).document.table
    names = [str(row[0]) for row in table.rows]
    assert names[0] in ("f5, same", "same, f5")
    assert names[1:] == ["f4"]


# --------------------------------------------------------------------------- silent errors


ERRORS = """\
name: errors
job: {useful: 100 h}
cluster: {workers: 4}
failures: {kind: job, role: any, family: exponential, mtbf: 40 h}
silent: {mtbf: 40 h, latency: {family: exponential, mean: 45 min}}
costs: {save: {stall: 3 min, kept: 2}, load: 3 min}
recovery: [{strategy: full, interval: 57 min}]
simulation: {replications: 60}
"""


def test_how_often_all_contents_are_bad_is_said() -> None:
    line = next(
        one for one in said(cprsim.systems(ERRORS, fixed=True)).splitlines() if "keeps" in one
    )
    assert line.startswith("full keeps 2 contents ('costs.save.kept'): ")
    share = float(line.split("): ")[1].split(" %")[0]) / 100
    assert share == pytest.approx(p_none_clean(2, 1.0, 0.75), abs=2e-3)  # a save each hour


def test_with_a_check_before_each_save_no_content_is_bad() -> None:
    text = ERRORS.replace("silent: {", "silent: {check: {takes: 1 min}, ")
    answer = cprsim.systems(text, fixed=True, only=["full"])
    assert "full keeps 2 contents ('costs.save.kept'): 0 % of silent errors" in said(answer)
