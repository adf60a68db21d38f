"""What can't be done ends in one error that says why, with exit code 2, and writes nothing."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.making import call, small_scenario

KERNEL = """
kernel:
  {samples: 6000, most_rows: 50, dimension: 4, bottom: [8], top: [8], optimizer: adagrad,
   rate: 0.05}
"""
SYNC = """\
sync:
  algorithm: shadow-easgd
  threads: 4
  batch: 100
  iteration: 10 ms
  dense_size: 1 MB
  servers: 1
  server_bandwidth: 8 Gbit/s
"""
FILES = {
    "trained.yaml": small_scenario() + KERNEL,
    "in-step.yaml": small_scenario() + SYNC,
    "README.md": "# A project\n\nIt says, at length, what it is.\n",
    "records.csv": "System,nodes,nodenumz,Prob Started,Down Time\n2,5,0,6/21/2005 10:54,6\n",
    "log.csv": "node,start,end,cause\na,10,11,disk\nb,30,,gpu\na,45,46,disk\nb,60,61,disk\n",
    "backwards.csv": "node,start,end\na,2,1\n",
    "few.csv": "node,start,end\na,2025-01-01,2025-01-02\n",
    "bad.csv": "\x00\x01",
    "curve.json": '{"kind": "cprsim staleness curve"}',
    "bomb.yaml": "a: &a [1, 2, 3]\n"
    + "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 12)}]\n"
        for before, name in pairwise("abcdefghij")
    ),
    "keys.yaml": small_scenario() + "".join(f"k{k}: {k}\n" for k in range(20_000)),
    "product.csv": 'node,start,end\n"g[0-79999]u[0-79999]",1,2\n',
    "lists.csv": 'node,start,end\n"' + ",".join(f"g{n}[0-79999]" for n in range(99)) + '",1,2\n',
    "rows.csv": "node,start,end\n" + "".join(f'"g{n}[0-99999]",1,2\n' for n in range(99)),
    "header.csv": f"{200_000 * 'x'},start,end\n1,2,3\n",
    "digits.csv": f'node,start,end\n"g[{4400 * "2"}]",1,2\n',
    "zeros.csv": f'node,start,end\n"g[{4400 * "0"}1-7]",1,2\n',
    "cell.csv": f"start,end,last_step\n1,2,3\n4,{140_000 * '5'}",
    "empty.txt": "",
}
HUGE, DIGITS = "1" + 30 * "0", 5000 * "1"
MINE = ("init", "mine.yaml", "--nodes", "12", "--kind")
TRACE = "cluster={emb_ps: 2}", "failures={kind: trace, format: tidy, file: log.csv, time_unit: h, "


def varying(over: str, *more: str) -> tuple[str, ...]:
    return ("sweep", "small.yaml", "--over", over, *more)


def changed(*overrides: str, command: str = "run", file: str = "small.yaml") -> tuple[str, ...]:
    return (command, file, *(word for one in overrides for word in ("--set", one)))


REFUSED: list[tuple[tuple[str, ...], str]] = [
    # run
    *((("run", "small.yaml", "--out", out), "") for out in ("ring", "small.yaml/sub")),
    *((changed(f"prices.node_hour={price}"), "prices.node_hour") for price in ("-1", "1e30")),
    (changed("accuracy.curve=other.csv"), "accuracy.curve: `other.csv` is not there"),
    (changed("accuracy.curve=curve.json"), "curve.json"),
    (changed("failures.mtbf=1 s", "job.useful=100000 h"), ""),
    (("run", "small.yaml", "--replay", "1.5"), "median, p95, worst"),
    *((changed(TRACE[0], f"{TRACE[1]}{keys}}}"), said) for keys, said in (
        ("period: {from: 2000-01-01}", "log.csv: period: 2000-01-01 is no number: write one as"),
        ("period: {from: 50, to: 20}", "failures.period.to: 20.0 does not lie after"),
        ("period: {}", "failures.period.from: is missing"),
        ("period: {from: soon}", "`soon` is no instant"),
        ("cause: fan", "no outage has a cause with 'fan'; there are: disk, gpu"),
        ("nodes: 1000000000000", "failures.nodes"),
        ("repair: -1 h", "failures.repair"),
    )),
    # fit
    *((("fit", "log.csv", "--time-unit", "h", *options), said) for options, said in (
        (["--column", "start=end"], "end: the column 'end' stands for 'start' already"),
        (["--period", "2262-04-12.."], "period: 2262-04-12 is no number: write one as the file"),
        (["--nodes", "1000000000000"], "1,000,000,000,000 nodes can't be observed"),
        (["--nodes", "0"], "0 nodes can't be observed"),
        (["--repair", "soon"], "--repair: 'soon' is not a time"),
        (["--repair", "-1 h"], "--repair: '-1 h' is no time from 0 on"),
        (["--format", "infinitehbd", "--repair", "1 h"], "--repair: belongs to format `jsonl`, "),
    )),
    (("fit", "README.md"),
     "README.md:1: node: there is no column 'node' among the 3 of the header"),
    (("fit", "records.csv"),
     "these are LANL's records, of which `system` has to be said (--system 2)"),
    (("fit", "backwards.csv", "--save", "fragment.yaml"), "backwards.csv"),
    # what would take all memory or time is counted before it is made
    (("run", "bomb.yaml"), "with its aliases spelled out it has more than 500000 bytes"),
    (("run", "keys.yaml"), "19,990 more problems in this section"),
    *((("fit", file, "--time-unit", "h"), said) for file, said in (
        ("product.csv", "product.csv:2: node: 'g[0-79999]u[0-79999]' names more than 100,000 node"),
        ("lists.csv", "names more than 100,000 nodes"),
        ("rows.csv", "rows.csv:52: node: up to here the lists name over 5,000,000 nodes"),
        ("header.csv", "xxx..."),
        ("digits.csv", "is no range of numbers such as 001-016"),
        ("zeros.csv", "is no range of numbers such as 001-016"),
    )),
    (("ledger", "cell.csv"), "cell.csv:3: can't be read as a CSV: field larger than"),
    *((("fit", "empty.txt", "--format", form), "empty.txt: is empty")
      for form in ("slurm-events", "slurm-jobs", "tidy", "jsonl")),
    # what no computer means
    (("ledger", "log.csv", "--time-unit", "banana"), "--time-unit: 'banana' is not one of 'ns'"),
    (changed("job.step=21 h"), "job.step: is longer than the job"),
    (changed("fleet={window: 1 s, jobs: 2}"), "fleet.window: `1 s` is out of range"),
    (changed("unknown={failures.mtbf: {low: 9 h, high: 8 h}}"), "as `low` lies above `high`"),
    (("run", "small.yaml", "--page", "\udcff.html"), "--page: '\\udcff.html' has a character"),
    (("run", "small.yaml", "--out", "\udcff"), "folder: '\\udcff' has a character"),
    (("explore", "small.yaml", "--port", "70000"), "--port: should be less than or equal to 65535"),
    # sweep, select, measure, report
    (varying("cluster.emb_ps=4,-4"), "cluster.emb_ps"),
    (varying("costs.save=1 min,2 min", "--precision", "nonsense"), "--precision"),
    (("select", "small.yaml", "--max-auc-loss", "0.1", "--curve", "curve.json"), "curve.json"),
    (("measure", "small.yaml", "--set", "kernel.samples=-1", "--out", "c.json"), "kernel.samples"),
    *((("measure", "trained.yaml", option, value), said) for option, value, said in (
        ("--budget", "5", "--budget: '5' has no unit"),
        ("--budget", "0 s", "--budget: must be positive"),
        ("--out", "curve.csv", "--out: `curve.csv` should end in .json"),
        ("--strategy", "mfu", "--strategy: `partial` is missing"),
        ("--strategy", "lru", "--strategy: `lru` is none"),
        ("--precision", "fine", "--precision: 'fine' is not a share"),
    )),
    (("report", ".", "."), "is no finished result"),
    (("report", "curve.json", "--out", "page.html"), "curve.json"),
    # init
    (("init", "mine.yaml", "--nodes", "12"), "name a kind"),
    ((*MINE, "gpu"), "'gpu' is not one of"),
    ((*MINE, "recommender", "--failures", "28 h", "--state", "6"), "--state: '6' has no unit"),
    *(((*MINE, "recommender", "--failures", file), file)
      for file in ("small.yaml", "few.csv", "bad.csv")),
    # sync
    *((("sync", "in-step.yaml", "--trainers", n), "--trainers: '") for n in ("0", "5,many")),
    (("sync", "in-step.yaml", "--beside", "fr-easgd"),
     "sync.every: is missing: fr-easgd synchronises"),
    (("sync", "in-step.yaml", "--beside", "easgd:5"), "sync.algorithm: `easgd` should be"),
    (("sync", "small.yaml"), "sync: is missing: say how the trainers stay in step"),
    # systems
    (("systems", "--explain", "gemini", "--set", "job.step=1 s"), "name a scenario"),
    (("systems", "nowhere.yaml", "--list"), "nowhere.yaml: cannot be read"),
    # train
    *((changed(override, command="train", file="trained.yaml"), said) for override, said in (
        ("kernel.clicks={file: nowhere.tsv}", "`nowhere.tsv` is not there"),
        ("kernel.clicks={file: '${UNSET_HERE}/x'}", "does not begin with CPRSIM_"),
        ("kernel.batch=3000", "larger than the test clicks"),
        ("kernel.optimizer=lion", "kernel.optimizer"),
        ("kernel.rate=0", "kernel.rate"),
        ("recovery.cpr.sub_saves={fraction: 0.125}", "does not take it"),
        ("recovery=[{strategy: cpr-mfu, target_pls: 0.1, sub_saves: {fraction: 0.3}}]", "whole"),
        ("kernel.sampels=9000", "did you mean `samples`"),
    )),
    # rehearse
    *((("rehearse", "rehearsal", "--set", "kernel.samples=2000", "--strategies", names), said)
      for names, said in (("ful", "the scenario has no `ful`"), ("full,full", "names one twice"))),
    *((changed("silent={mtbf: 8 h, latency: 1 h}", command=command), "silent: can be neither")
      for command in ("train", "rehearse")),
    # reproduce
    (("reproduce", "nonsense"), "'nonsense' is no result: "),
    (("reproduce", "--keep", "--effort", "quick"), "--keep: keeps full runs on generated clicks"),
    (("reproduce", "--clicks", "nowhere.tsv"), "nowhere.tsv is no file"),
    # a name that is nearly right
    *((words.split(), f"did you mean `{meant}`?") for words, meant in (
        ("run quikstart", "quickstart"),
        ("init --from quickstrt", "quickstart"),
        ("init --kind llm --nodes 8 --failures llma3", "llama3"),
        ("systems quickstart --only gemni", "gemini"),
        ("systems --explain gemni", "gemini"),
        ("run quickstart --set recovery.full.strategy=partail", "partial"),
        ("run quickstart --set accuracy.curve=criteo-kagle-linear", "criteo-kaggle-linear"),
        ("reproduce fig-overhead", "fig-overheads"),
    )),
    # numbers that are none, or too large
    *(((command, "small.yaml", "--replay", HUGE), "") for command in ("run", "train")),
    *((("run", "small.yaml", "--seed", number), "") for number in (HUGE, DIGITS)),
    (("run", "small.yaml", "--replications", HUGE), ""),
    (varying("costs.save=1 s,2 s", "--workers", HUGE), ""),
    *((varying(over), "") for over in (
        f"simulation.replications=1:{HUGE}:lin3", "costs.save=1 s:1e308 h:log3",
        "costs.save=1 s,1e308 h", "costs.²=1 s,2 s", f"costs.{150 * '1'}=1 s,2 s",
    )),
    *((("measure", "small.yaml", option, HUGE), "") for option in ("--seeds", "--workers")),
    (("reproduce", "fleet", "--workers", HUGE), ""),
    *((changed(override), "") for override in (
        "recovery.²=1", "recovery.٣.interval=1 h", f"recovery.{DIGITS}.interval=1 h",
        "simulation.seed=" + 401 * "9",
    )),
    (("validate", "small.yaml", "--x²"), ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"), REFUSED, ids=[" ".join(words)[:60] for words, _ in REFUSED]
)
def test_what_is_wrong_is_said_and_nothing_is_written(scenario, tmp_path, arguments, said) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    before = contents(tmp_path)
    called = call(*arguments)
    assert isinstance(called.exception, SystemExit), repr(called.exception)
    assert called.exit_code == 2
    assert called.stderr
    assert said in called.stderr
    assert "Traceback" not in called.output
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes | None]:
    """Everything below a folder."""
    return {one: one.read_bytes() if one.is_file() else None for one in folder.rglob("*")}
