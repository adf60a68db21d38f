"""Every section that not each scenario has: one clear line for whatever does not fit."""

from pathlib import Path

import pytest

from cprsim.job.sync_setting import SyncSetting
from cprsim.scenario.reading import load_scenario
from cprsim.training.train_in_step import sync_setting
from tests.making import small_scenario
from tests.scenario.writing import GOOD_TEXT, changed, load, problems, write

INJECTED = "injected, count: 5, together: 4"
SHOCKS = "shocks: {every: 280 h, sizes: {2: 20}, nodes: 400}"
PIECES = "ages: [0 h, 2 h], hazards: [1 failures/d, 9 failures/year]"
SYNC = """\
sync:
  algorithm: fr-easgd
  iteration: 36 ms
  dense_size: 8 MB
  servers: 2
  server_bandwidth: 8 Gbit/s
  every: 5
"""
SHARDS = """\
  shards:
    - {servers: 17, size: 70 GB, access: 0.05}
    - {servers: 1, size: 10 GB, access: 0.15}
"""
ROLES = """\
job: {useful: 40 h, step: 10 s}
cluster:
  roles: {stage: {nodes: 8, state: 40 GB}, expert: {nodes: 4, state: 250 GB}}
  others: {reader: 2}
  link: 400 Gbit/s
  links: {pcie: 25 GB/s}
failures: {kind: node, roles: {expert: {family: exponential, mtbf: 60 h}}}
scopes:
  - {name: node, share: 1, detect: 3 min}
  - {name: stages, failures: {kind: job, family: exponential, mtbf: 30 h, role: stage}}
storage: {bandwidth: 200 Gbit/s}
costs: {save: {stall: {link: pcie}, background: transfer}, load: transfer, reschedule: 4 min}
recovery: [full]
simulation: {seed: 1, replications: 60}
"""
INSTANTS = "failures={kind: injected, at: [3 h, 9 h], servers: "
AT_ONCE = "failures={kind: injected, count: 1, "
JOB = "failures={kind: job, family: "
NODE = "failures={kind: node, roles: "
BASES = {
    "good": GOOD_TEXT,
    "correlated": changed((INJECTED, f"correlated, mtbf: 300 d, shape: 0.4, {SHOCKS}")),
    "pieces": changed((INJECTED, f"job, family: piecewise, {PIECES}")),
    "trace": changed((INJECTED, "trace, format: infinitehbd, nodes: 400, file: t.json")),
    "sync": GOOD_TEXT + SYNC,
    "shards": changed(("  shard_size: 50 GB\n", SHARDS)),
    "roles": ROLES,
    "silent": small_scenario()
    + "silent: {mtbf: 8 h, latency: {family: exponential, mean: 1 h}}\n"
    + "planned: {every: 9 h, length: 0 h}\n",
}
WRONG = {
    "good": {
        "cluster.others={trainer: 2}": ("cluster.others.trainer", "choose another"),
        "cluster.others.reader=99999": ("cluster", "at most 100000"),
        "cluster.spares=2": ("cluster.repair", "comes back"),
        "cluster.repair={family: lognormal, mean: 1 h, median: 2 h}": (
            "cluster.repair.median", "below the mean"),
        "cluster={emb_ps: 4, shard_size: 1 GB, tables: criteo-kaggle}": (
            "cluster.shard_size", "not both"),
        "costs.detect={mix: [{share: 60%, value: 5 min}]}": ("costs.detect.mix", "up to 60 %"),
        "costs.restart={fails: 1}": ("costs.restart.fails", "`1` is out of range"),
        "costs.restart={fails: 30 %, operator: 8 h}": ("costs.restart.gives_up_after", "together"),
        "planned={every: 1 h, length: 2 h}": ("planned.every", "longer than `length`, 2 h"),
        "planned={every: 1 s, length: 0 s}": ("planned.every", "between 1 min"),
        "failures.together=19": ("", "the cluster has 18"),
        "failures.role=reader": ("", "it has: emb_ps, trainer, any"),
        "failures.at=[3 h, 60 h]": ("failures.at.1", "beyond the job of 50 h"),
        "failures.at=[3 h, 180 min]": ("", "twice"),
        "failures.count=null": ("", "either"),
        AT_ONCE + "at: [3 h]}": ("failures.count", "either"),
        AT_ONCE + "role: any, servers: [2]}": ("failures.servers", "cannot be `any`"),
        AT_ONCE + "servers: [1, 1]}": ("failures.servers", "twice"),
        AT_ONCE + "servers: [2], together: 1}": ("failures.together", "either"),
        AT_ONCE + "servers: [[1], [2]]}": ("failures.servers", "goes with `at`"),
        INSTANTS + "[[1], [18]]}": ("failures.servers.1", "numbered 0 to 17"),
        INSTANTS + "[[1], 2]}": ("failures.servers.1", "a valid list"),
        INSTANTS + "[[1]]}": ("failures.servers", "1 lists for 2 instants"),
        "failures={kind: injected, clock: wall, at: [60 h, 5000 h]}": (
            "failures.at.1", "beyond 100 times the job of 50 h"),
        JOB + "exponential, nodes: 16, mtbf: 9 h, role: any}": (
            "failures.nodes", "this is the rate at 16 nodes, the job has 38"),
        JOB + "gamma, mtbf: 9 h}": ("failures.shape", "gamma needs it"),
        JOB + "exponential, mtbf: 9 h, shape: 2}": ("failures.shape", "no parameter of"),
        JOB + "exponential, mtbf: 1 s}": ("failures.mtbf", "failures per job"),
        NODE + "{reader: {family: exponential, mtbf: 900 h}}}": (
            "failures.roles.reader", "it has: emb_ps, trainer"),
        NODE + "{any: {family: exponential, mtbf: 900 h}}}": (
            "failures.roles.any", "name each role"),
        NODE + "{emb_ps: {family: exponential, mtbf: 10 s}}}": (
            "failures.roles.emb_ps.mtbf", "failures per job"),
        "costs.load={family: gamma, mean: 3 h, median: 1 h, shape: 1}": (
            "costs.load.median", "no parameter of gamma"),
        "costs.load={family: lognormal, mean: 3 h, median: 1 s}": (
            "costs.load.median", "spreads too far"),
        "job={useful: 50 h, samples: 4e9}": ("job.samples", "either"),
        "job={samples: 4e9}": ("job.useful", "throughput"),
        "job={samples: 4e15, throughput: 1 samples/s}": ("job.samples", "100000 h"),
        "recovery=[{strategy: partial, assumed: true}]": (
            "recovery.0.assumed", "goes with `target_pls`"),
        "recovery.full.target_pls=0.1": ("recovery.0.target_pls", "leave it out"),
        "recovery.full.costs={}": ("recovery.0.costs", "says nothing"),
        "recovery=[{strategy: cpr-mfu, target_pls: 0.1, costs: {load: 5 s}}]": (
            "recovery.0.costs", "saves rows first"),
        "recovery.full.interval=yuong": ("recovery.0.interval", "a rule: young"),
        "recovery.full.interval=cpr": ("recovery.0.interval", "no target PLS"),
        "recovery=[{strategy: none, interval: 1 h}]": ("recovery.0.interval", "does not take it"),
        "recovery.full.interval=1 ms": ("recovery.0.interval", "saves in 50 h"),
        "simulation={replications: 9, precision: 1 %}": ("simulation.replications", "either"),
        "simulation.at_most=1000": ("", "goes with `precision`"),
    },
    "correlated": {
        "failures.shocks.sizes={401: 5}": ("failures.shocks.sizes.401", "only 400 nodes"),
        "failures.shocks.nodes=37": ("", "the job has 38"),
    },
    "pieces": {
        "failures.ages=[1 h, 2 h]": ("", "pieces begin at 0"),
        "failures.ages=[0 h, 0 h]": ("", "then ever later"),
        "failures.ages=[0 h]": ("", "each piece needs the age where"),
        "failures.hazards=null": ("", "is missing"),
        "failures.hazards=[3600 failures/h, 3600 failures/h]": ("", "failures per job"),
        "failures.family=exponential": ("failures.ages", "no parameter of exponential"),
    },
    "trace": {
        "failures.system=2": ("", "belongs to format `lanl`"),
        "failures.time_unit=h": ("", "belongs to format `jsonl`, `parquet`, `tidy`"),
        "failures.period={from: soon, to: 2000-01-01}": ("failures.period.from", "2000-01-01"),
        "failures.nodes=37": ("", "the trace has 37 nodes, the job 38"),
        "cluster.repair=2 h": ("", "its own repair"),
        "failures.file='${CPRSIM_DATA}/fault_trace.json'": ("", "CPRSIM_DATA is not set"),
        "failures={kind: trace, format: lanl, system: 2, file: x.csv}": ("failures.file", "CFDR"),
        f"failures.file={900 * 'x'}": ("", "is not there"),
    },
    "sync": {
        "sync.every=null": ("", "is missing: fr-easgd synchronises at a fixed rate"),
        "sync.algorithm=shadow-easgd": ("sync.every", "shadow-easgd has no rate"),
        "sync.algorithm=fr-ma": ("sync.trainer_bandwidth", "is missing: fr-ma averages over it"),
        "sync.servers=null": ("", "keeps its central copy on sync servers"),
        "sync.iteration=0 s": ("", "takes no time"),
        "sync={algorithm: shadow-ma, elastic: 1, iteration: 1 s, dense_size: 8 MB, "
        "trainer_bandwidth: 1 Gbit/s}": ("sync.elastic", "undoes all updates of its workers"),
        "sync.momentum=0.9": ("", "is of shadow-bmuf and fr-bmuf alone"),
        "sync.stragglers={trainers: 30, factor: 2}": ("sync.stragglers.trainers", "30 of 20"),
        "cluster.trainers=0": ("", "`sync` says how trainers stay in step"),
        "recovery.full.costs.load=5 s": ("recovery.0.costs", "does not go with `sync`"),
    },
    "shards": {
        "cluster.emb_ps=5": ("cluster.shards", "are on 18 servers, and `emb_ps` is 5"),
        "cluster.shards.0.access=0.1": ("cluster.shards", "for 1.85 of the look-ups in all"),
        "cluster.shard_size=10 GB": ("cluster.shards", "leave out `tables` and `shard_size`"),
        "cluster.shards.0.access=null": ("cluster.shards", "give it for all, or for none"),
    },
    "roles": {
        "cluster.workers=3": ("cluster.emb_ps", "give one of `emb_ps` (embedding servers)"),
        "cluster.state=3 GB": ("", "of `roles` give the `state` of each"),
        "cluster.roles.any={nodes: 1, state: 1 GB}": ("", "a name that has a meaning"),
        "cluster.others.stage=2": ("", "is one of `roles` already; choose another name"),
        "costs.save.stall={link: ssd}": ("costs.save", "no link `ssd` in `cluster.links`"),
        "scopes.node.failures={kind: job, family: exponential, mtbf: 9 h}": (
            "scopes.0.share", "give either `share`"),
        "scopes.stages.failures.clock=uptime": ("scopes.1.failures.clock", "age on one clock"),
        "scopes.stages.failures.mtbf_95=[20 h, 50 h]": (
            "scopes.1.failures", "leave them out here"),
        "scopes.stages.failures.role=stag": ("scopes.1.failures.role", "no node of role `stag`"),
        "recovery.full.costs.detect=5 s": ("recovery.0.costs.detect", "each scope has its own"),
        "recovery=[partial]": ("recovery.0", "workers go back together"),
        **{f"recovery.full.interval={wrong}": ("recovery.0.interval", f"`{wrong}` ")
           for wrong in ("-3 steps", "10 stepps", "0 steps")},
    },
    "silent": {
        "silent={mtbf: 8 h}": ("silent.latency", "is missing: say how errors are noticed"),
        "fleet={jobs: 10}": ("silent", "does not go with `fleet` (section or"),
        "scopes=[{name: silent, share: 1}]": ("scopes.0.name", "`silent` is what errors"),
        "scopes=[{name: planned, share: 1}]": ("scopes.0.name", "`planned` is what stops"),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("base", "override"), [(base, one) for base, wrong in WRONG.items() for one in wrong]
)
def test_what_does_not_fit_is_one_line_that_says_what_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, override: str
) -> None:
    """An empty key: that of the override."""
    monkeypatch.delenv("CPRSIM_DATA", raising=False)
    write(tmp_path, "[]", "t.json")
    key, hint = WRONG[base][override]
    found = {one.key: one.message for one in problems(write(tmp_path, BASES[base]), override)}
    assert hint in found.get(key or override.split("=")[0], ""), found


def test_a_variable_is_replaced_for_reading_and_a_relative_trace_stands_beside_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, path = write(tmp_path, "[]", "t.json"), write(tmp_path, BASES["trace"])
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    for file in ("${CPRSIM_DATA}/t.json", "t.json"):
        loaded = load_scenario(path, [f"failures.file='{file}'"])
        assert loaded.trace_path == trace
        assert loaded.scenario.failures.file == file  # type: ignore[union-attr]


# ------------------------------------------------------------------ trainers in step


def in_step(*sets: str) -> SyncSetting:
    return sync_setting(load(*sets, text=BASES["sync"]))


@pytest.mark.parametrize(
    ("algorithm", "elastic"), [("shadow-easgd", 0.5), ("shadow-ma", 0.1), ("shadow-bmuf", 0.1)]
)
def test_an_average_pulls_less_because_it_undoes_what_workers_learn(
    algorithm: str, elastic: float
) -> None:
    sets = ("sync.trainer_bandwidth=25 Gbit/s", "sync.every=null", f"sync.algorithm={algorithm}")
    assert in_step(*sets).elastic == elastic
    assert in_step(*sets, "sync.elastic=0.3").elastic == 0.3
