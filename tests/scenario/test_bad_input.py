"""Every kind of wrong scenario: the line, the key and what would be right."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cprsim.errors import Problem, ScenarioError
from cprsim.scenario import load_scenario
from tests.scenario.writing import GOOD, GOOD_TEXT, write


def problems(path: Path, *overrides: str) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioError) as error:
        load_scenario(path, overrides)
    found = error.value.problems
    assert len(str(error.value).splitlines()) == len(found), "each problem is one line"
    return tuple(found)


def changed(*replacements: tuple[str, str]) -> str:
    text = GOOD_TEXT
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return text


# The line of each key is that of GOOD_TEXT: 2 job, 3 cluster, 7 failures, 9 costs, 13 recovery.
ONE_WRONG = {
    "unknown key": (("  trainers: 20", "  trainer: 20"), 4, "cluster.trainer", "`trainers`"),
    "unknown section": (("storage:", "storrage:"), 8, "storrage", "`storage`"),
    "missing unit": (("useful: 50 h", "useful: 50"), 2, "job.useful", "write its unit"),
    "missing unit in text": (('3 min', '"3"'), 11, "costs.load", "has no unit"),
    "wrong unit": (("load: 3 min", "load: 3 GB"), 11, "costs.load", "no unit of a time"),
    "negative": (("useful: 50 h", "useful: -50 h"), 2, "job.useful", "between 1 s and 100000 h"),
    "zero": (("useful: 50 h", "useful: 0 h"), 2, "job.useful", "between 1 s and"),
    "NaN": (("useful: 50 h", "useful: .nan"), 2, "job.useful", "not a finite number"),
    "NaN with unit": (("useful: 50 h", "useful: nan h"), 2, "job.useful", "not a finite number"),
    "infinite": (("load: 3 min", "load: .inf h"), 11, "costs.load", "not a finite number"),
    "absurd": (("useful: 50 h", "useful: 1e9 h"), 2, "job.useful", "between 1 s and 100000 h"),
    "overflow": (("load: 3 min", "load: 1e999 h"), 11, "costs.load", "not a finite number"),
    "expression": (("load: 3 min", "load: 10**10**10 h"), 11, "costs.load", "is not a time"),
    "no servers": (("emb_ps: 18", "emb_ps: 0"), 5, "cluster.emb_ps", "at least 1"),
    "negative count": (("trainers: 20", "trainers: -1"), 4, "cluster.trainers", "at least 0"),
    "half a node": (("trainers: 20", "trainers: 2.5"), 4, "cluster.trainers", "whole number"),
    "a text as count": (("emb_ps: 18", "emb_ps: many"), 5, "cluster.emb_ps", "whole number"),
    "truth as count": (("emb_ps: 18", "emb_ps: true"), 5, "cluster.emb_ps", "whole number"),
    "too many nodes": (("trainers: 20", "trainers: 1000000"), 4, "cluster.trainers", "at most"),
    "zero bytes": (("50 GB", "0 GB"), 6, "cluster.shard_size", "between 1 B"),
    "more failing than there are": (
        ("together: 4", "together: 19"), 7, "failures.together", "the cluster has 18"),
    "none fails together": (("together: 4", "together: 0"), 7, "failures.together", "at least 1"),
    "role that is not there": (
        ("together: 4", "role: reader"), 7, "failures.role", "it has: emb_ps, trainer, any"),
    "instant beyond the job": (
        ("count: 5", "at: [3 h, 60 h]"), 7, "failures.at.1", "beyond the job of 50 h"),
    "instant without unit": (("count: 5", "at: [3]"), 7, "failures.at.0", "write its unit"),
    "instant twice": (("count: 5", "at: [3 h, 180 min]"), 7, "failures.at", "twice"),
    "count and instants": (("count: 5", "count: 1, at: [3 h]"), 7, "failures.count", "either"),
    "neither count nor instants": (("count: 5, ", ""), 7, "failures.count", "either"),
    "server twice": (("together: 4", "servers: [1, 1]"), 7, "failures.servers", "twice"),
    "server out of range": (
        ("together: 4", "servers: [0, 18]"), 7, "failures.servers", "numbered 0 to 17"),
    "servers and together": (
        ("together: 4", "together: 1, servers: [2]"), 7, "failures.together", "either"),
    "no such kind": (("kind: injected", "kind: injcted"), 7, "failures.kind", "`injected`"),
    "no kind": (("kind: injected, ", ""), 7, "failures.kind", "job, node, injected, trace"),
    "key of another kind": (("count: 5", "count: 5, mtbf: 3 h"), 7, "failures.mtbf", "unknown key"),
    "family without shape": (
        ("kind: injected, count: 5", "kind: job, family: gamma, mtbf: 9 h"),
        7, "failures.shape", "gamma needs it"),
    "shape of exponential": (
        ("kind: injected, count: 5", "kind: job, family: exponential, mtbf: 9 h, shape: 2"),
        7, "failures.shape", "no parameter of exponential"),
    "no such family": (
        ("kind: injected, count: 5", "kind: job, family: normal, mtbf: 9 h"),
        7, "failures.family", "'exponential', 'gamma', 'weibull' or 'lognormal'"),
    "zero MTBF": (
        ("kind: injected, count: 5", "kind: job, family: exponential, mtbf: 0 h"),
        7, "failures.mtbf", "between 1 s"),
    "absurdly many failures": (
        ("kind: injected, count: 5", "kind: job, family: exponential, mtbf: 1 s"),
        7, "failures.mtbf", "failures per job"),
    "node clocks for a role that is not there": (
        ("kind: injected, count: 5, together: 4",
         "kind: node, roles: {reader: {family: exponential, mtbf: 900 h}}"),
        7, "failures.roles.reader", "it has: emb_ps, trainer"),
    "node clocks for any": (
        ("kind: injected, count: 5, together: 4",
         "kind: node, roles: {any: {family: exponential, mtbf: 900 h}}"),
        7, "failures.roles.any", "name each role"),
    "absurdly many failures of nodes": (
        ("kind: injected, count: 5, together: 4",
         "kind: node, roles: {emb_ps: {family: exponential, mtbf: 10 s}}"),
        7, "failures.roles.emb_ps.mtbf", "failures per job"),
    "servers of any role": (
        ("together: 4", "role: any, servers: [2]"), 7, "failures.servers", "cannot be `any`"),
    "other role that every cluster has": (
        ("  emb_ps: 18", "  others: {trainer: 2}\n  emb_ps: 18"),
        5, "cluster.others.trainer", "choose another"),
    "other role with an odd name": (
        ("  emb_ps: 18", "  others: {a b: 2}\n  emb_ps: 18"),
        5, "cluster.others.a b", "is no name for a role"),
    "too many nodes together": (
        ("  emb_ps: 18", "  emb_ps: 18\n  others: {reader: 99999}"),
        3, "cluster", "at most 100000"),
    "median of gamma": (
        ("load: 3 min", "load: {family: gamma, mean: 3 h, median: 1 h, shape: 1}"),
        11, "costs.load.median", "goes with family lognormal"),
    "median far below the mean": (
        ("load: 3 min", "load: {family: lognormal, mean: 3 h, median: 1 s}"),
        11, "costs.load.median", "too far below"),
    "quantity that is a list": (("useful: 50 h", "useful: [50 h]"), 2, "job.useful", "not a time"),
    "simulation that is a number": (
        ("simulation: {seed: 1, replications: 100}", "simulation: 3"),
        16, "simulation", "not a section"),
    "spares without repair": (
        ("  emb_ps: 18", "  spares: 2\n  emb_ps: 18"), 3, "cluster.repair", "comes back"),
    "median above the mean": (
        ("  emb_ps: 18", "  repair: {family: lognormal, mean: 1 h, median: 2 h}\n  emb_ps: 18"),
        5, "cluster.repair.median", "below the mean"),
    "tables said twice": (
        ("  emb_ps: 18", "  tables: criteo-kaggle\n  emb_ps: 18"),
        7, "cluster.shard_size", "not both"),
    "no such preset": (
        ("  shard_size: 50 GB", "  tables: criteo"), 6, "cluster.tables", "'criteo-kaggle'"),
    "table without rows": (
        ("  shard_size: 50 GB", "  tables: [{dimension: 16}]"),
        6, "cluster.tables.0.rows", "missing"),
    "transfer without storage": (
        ("storage: {bandwidth: 25 Gbit/s}\n", ""), 9, "costs.save", "needs `storage"),
    "transfer without bytes": (
        ("  shard_size: 50 GB\n", ""), 9, "costs.save", "`cluster.shard_size`"),
    "bits that are barns": (("25 Gbit/s", "25 Gb/s"), 8, "storage.bandwidth", "25 Gbit/s"),
    "no bandwidth": (("25 Gbit/s", "0 Gbit/s"), 8, "storage.bandwidth", "between 1 kbit/s"),
    "no such cost": (("  load: 3 min", "  load: transfr"), 11, "costs.load", "`transfer`"),
    "missing cost": (("  reschedule: 2 min\n", ""), 9, "costs.reschedule", "is missing"),
    "target that the short form lacks": (
        ("- full", "- cpr"), 14, "recovery.0.target_pls", "is missing"),
    "no such strategy": (("- full", "- ful"), 14, "recovery.0", "`full`"),
    "strategies as text": (
        ("recovery:\n  - full\n  - {strategy: cpr, target_pls: 0.1}", "recovery: full"),
        13, "recovery", "is not a list"),
    "no strategy": (
        ("recovery:\n  - full\n  - {strategy: cpr, target_pls: 0.1}", "recovery: []"),
        13, "recovery", "at least 1"),
    "same name twice": (
        ("- full", "- {strategy: cpr, target_pls: 0.2}"), 15, "recovery.1", "name: cpr-2"),
    "no target": ((", target_pls: 0.1", ""), 15, "recovery.1.target_pls", "is missing"),
    "target in per cent": (("0.1", "10 %"), 15, "recovery.1.target_pls", "is not a number"),
    "target beyond 1": (("0.1", "1.5"), 15, "recovery.1.target_pls", "at most 1"),
    "target without use": (
        ("- full", "- {strategy: full, target_pls: 0.1}"),
        14, "recovery.0.target_pls", "leave it out"),
    "no such interval": (
        ("- full", "- {strategy: full, interval: yuong}"), 14, "recovery.0.interval", "`young`"),
    "interval of full from a target": (
        ("- full", "- {strategy: full, interval: cpr}"),
        14, "recovery.0.interval", "no target PLS"),
    "interval of none": (
        ("- full", "- {strategy: none, interval: 1 h}"), 14, "recovery.0.interval", "never saves"),
    "zero interval": (
        ("- full", "- {strategy: full, interval: 0 h}"), 14, "recovery.0.interval", "between 1 ms"),
    "more than a million saves": (
        ("- full", "- {strategy: full, interval: 1 ms}"),
        14, "recovery.0.interval", "saves in 50 h"),
    "negative seed": (("seed: 1", "seed: -1"), 16, "simulation.seed", "at least 0"),
    "no replications": (
        ("replications: 100", "replications: 0"), 16, "simulation.replications", "1"),
    "replications and precision": (
        ("replications: 100", "replications: 100, precision: 1 %"),
        16, "simulation.replications", "either"),
    "precision without unit": (
        ("replications: 100", "precision: 0.5"), 16, "simulation.precision", "0.5 %"),
    "precision of nothing": (
        ("replications: 100", "precision: 0 %"), 16, "simulation.precision", "between 0.01 %"),
    "at most without precision": (
        ("replications: 100", "at_most: 1000"), 16, "simulation.at_most", "goes with `precision`"),
    "section that is a number": (("job: {useful: 50 h}", "job: 50"), 2, "job", "not a section"),
    "section that is nothing": (("job: {useful: 50 h}", "job:"), 2, "job", "not a section"),
    "work said twice": (
        ("useful: 50 h", 'useful: 50 h, samples: 4e9'), 2, "job.samples", "either"),
    "samples without throughput": (("useful: 50 h", "samples: 4e9"), 2, "job.useful", "throughput"),
    "too much work": (
        ("useful: 50 h", "samples: 4e15, throughput: 1 samples/s"), 2, "job.samples", "100000 h"),
    "name with a slash": (("name: good", "name: a/b"), 1, "name", "characters"),
    "key twice": (("  shard_size: 50 GB", "  emb_ps: 4"), 6, "cluster.emb_ps", "line 5 has it"),
    "tag": (("name: good", "name: !!python/name:os.system good"), 1, "", "not allowed"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("replacement", "line", "key", "hint"), ONE_WRONG.values(), ids=list(ONE_WRONG)
)
def test_one_wrong_thing_is_named_with_line_key_and_remedy(
    tmp_path: Path, replacement: tuple[str, str], line: int, key: str, hint: str
) -> None:
    path = write(tmp_path, changed(replacement))
    found = {(p.place.line, p.key): p.message for p in problems(path)}
    assert hint in found.get((line, key), f"only {found}")


def test_a_role_that_is_not_there_is_one_problem_not_two(tmp_path: Path) -> None:
    path = write(tmp_path, changed(("together: 4", "together: 4, role: reader")))
    assert len(problems(path)) == 1


def test_all_wrong_things_come_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        changed(("useful: 50 h", "useful: 50"), ("trainers: 20", "trainer: 20"), ("- full", "- f")),
    )
    found = problems(path)
    assert [(p.place.line, p.key) for p in found] == [
        (2, "job.useful"),
        (4, "cluster.trainer"),
        (14, "recovery.0"),
    ]
    assert all(p.place.file == path for p in found)


def test_a_thousand_wrong_things_do_not_fill_the_screen(tmp_path: Path) -> None:
    found = problems(write(tmp_path, "".join(f"key{i}: 1\n" for i in range(1000))))
    assert len(found) == 51
    assert "more problems" in found[-1].message


def test_a_problem_stays_on_one_line_whatever_the_value(tmp_path: Path) -> None:
    path = write(tmp_path, changed(("load: 3 min", r'load: "3\n\e[31m min"')))
    (found,) = problems(path)
    assert str(found).isprintable()


# ------------------------------------------------------------------ files that are no scenario

NO_SCENARIO = {
    "empty": (b"", None, "is empty"),
    "only a comment": (b"# later\n", None, "is empty"),
    "a list": (b"- 1\n- 2\n", 1, "is not a mapping"),
    "a text": (b"\n\nhello", 3, "is not a mapping"),
    "broken YAML": (b"job: {useful: 50 h}\ncosts: {save: 1 h\nx", 3, "is not valid YAML"),
    "tab": (b"job:\n\tuseful: 1 h", 2, "is not valid YAML"),
    "unquoted variable in braces": (b"job: {{x}: 1}", 1, "key must be plain text"),
    "two documents": (b"job: {}\n---\njob: {}\n", 2, "second document"),
    "Latin-1": (b"name: caf\xe9", None, "is not UTF-8"),
    "UTF-16": ("job: {}".encode("utf-16"), None, "is not UTF-8"),
    "binary": (bytes(range(1, 128)), 1, "is not a text file"),
    "NUL": (b"job: 1\nx: \0", 2, "is not a text file"),
    "unknown alias": (b"a: *b", 1, "stands for nothing"),
    "alias of itself": (b"a: &a [*a]", 1, "stands for nothing"),
    "deep lists": (b"[" * 100_000, 1, "levels deep"),
    "deep mappings": (b"{a: " * 100_000, 1, "levels deep"),
    "deep blocks": (b"- " * 100_000, 1, "levels deep"),
    "many values": (b"- 1\n" * 100_000, 6000, "more than 6000 values"),
    "50 MB": (b"x" * 50_000_000, None, "has 50000000 bytes"),
    "exploding aliases": (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9))
            for i in range(9)
        ),
        1,
        "do aliases explode?",
    ),
    "aliases that nest deeply": (
        b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [*a%d]\n" % (i, i, i - 1) for i in range(1, 40)),
        1,
        "levels deep",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "line", "hint"), NO_SCENARIO.values(), ids=list(NO_SCENARIO))
def test_what_is_no_scenario_says_so(
    tmp_path: Path, content: bytes, line: int | None, hint: str
) -> None:
    path = write(tmp_path, content)
    found = problems(path)
    assert found[0].place.file == path
    assert found[0].place.line == line
    assert hint in found[0].message


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert "no such file" in problems(tmp_path / "none.yaml")[0].message
    assert "is a directory" in problems(tmp_path)[0].message
    assert "not a regular file" in problems(Path(os.devnull))[0].message
    assert "cannot be read" in problems(tmp_path / ("x" * 5000))[0].message


@pytest.mark.parametrize("content", ["exploding aliases", "50 MB", "many values"])
def test_a_fresh_process_answers_within_two_seconds(tmp_path: Path, content: str) -> None:
    path = write(tmp_path, NO_SCENARIO[content][0])
    program = (
        "import sys; from cprsim.errors import ScenarioError\n"
        "from cprsim.scenario import load_scenario\n"
        "try: load_scenario(sys.argv[1])\n"
        "except ScenarioError: sys.exit(2)"
    )
    before = os.times()
    done = subprocess.run([sys.executable, "-c", program, path], timeout=60, check=False)
    after = os.times()
    assert done.returncode == 2
    spent = after.children_user + after.children_system
    assert spent - before.children_user - before.children_system < 2.0, "seconds of one core"


# ------------------------------------------------------------------ anything else

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["transfer", "3 h", "any", "full", "\ud800", "x" * 2000, "${HOME}"]),
    st.recursive(
        st.sampled_from([1, "3 h", "full", None]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["family", "mean", "stall", "rows", "name", "strategy", "kind", "0"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=6,
    ),
)
BASES = (
    GOOD["failures"],
    {"kind": "job", "family": "gamma", "mtbf": "9 h", "shape": 2},
    {"kind": "node", "roles": {"emb_ps": {"family": "weibull", "mtbf": "900 h", "shape": 0.7}}},
    {"kind": "trace", "file": "t", "format": "lanl", "system": 2, "period": {"from": "x"}},
)


def key_paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    entries: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    if isinstance(value, list):
        entries = list(enumerate(value))
    return [path, *(deeper for key, below in entries for deeper in key_paths(below, (*path, key)))]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_junk_anywhere_is_a_problem_with_a_line_or_no_problem(data: st.DataObject) -> None:
    plain = copy.deepcopy(GOOD)
    plain["failures"] = copy.deepcopy(data.draw(st.sampled_from(BASES)))
    path = data.draw(st.sampled_from(key_paths(plain)[1:]))
    here: Any = plain
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = data.draw(JUNK)
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), yaml.safe_dump(plain, sort_keys=False))
        try:
            load_scenario(file)
        except ScenarioError as error:
            for problem in error.problems:
                assert problem.place.line is not None
                assert str(problem).isprintable()


# ------------------------------------------------------------------ the file of a trace


def with_trace(file: str, **keys: str) -> str:
    said = {"kind": "trace", "format": "infinitehbd", "nodes": "400", "file": f"'{file}'", **keys}
    section = ", ".join(f"{key}: {value}" for key, value in said.items())
    return changed(("kind: injected, count: 5, together: 4", section))


def test_a_variable_that_is_not_set_says_where_the_data_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CPRSIM_DATA", raising=False)
    (found,) = problems(write(tmp_path, with_trace("${CPRSIM_DATA}/fault_trace.json")))
    assert (found.place.line, found.key) == (7, "failures.file")
    assert "CPRSIM_DATA is not set" in found.message
    assert "InfiniteHBD" in found.message


def test_a_trace_that_is_missing_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    text = with_trace("${CPRSIM_DATA}/x.csv").replace("infinitehbd", "lanl, system: 2")
    (found,) = problems(write(tmp_path, text))
    assert str(tmp_path / "x.csv") in found.message
    assert "is not there" in found.message
    assert "is not there" in problems(write(tmp_path, with_trace("x" * 900)))[0].message
    assert "CFDR" in found.message


def test_a_variable_is_replaced_for_reading_and_kept_in_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write(tmp_path, "[]", "t.json")
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    loaded = load_scenario(write(tmp_path, with_trace("${CPRSIM_DATA}/t.json")))
    assert loaded.trace_path == trace
    assert loaded.scenario.failures.file == "${CPRSIM_DATA}/t.json"


def test_a_relative_trace_stands_beside_the_scenario(tmp_path: Path) -> None:
    trace = write(tmp_path, "[]", "t.json")
    assert load_scenario(write(tmp_path, with_trace("t.json"))).trace_path == trace


@pytest.mark.parametrize(
    ("keys", "key", "hint"),
    [
        ({"system": "2"}, "failures.system", "belongs to format `lanl`"),
        ({"time_unit": "h"}, "failures.time_unit", "belongs to format `tidy`"),
        ({"period": "{from: 2001-01-01, to: 2000-01-01}"}, "failures.period.to", "after `from`"),
        ({"period": "{from: soon, to: 2000-01-01}"}, "failures.period.from", "2000-01-01"),
        ({"clock": "wall"}, "failures.clock", "unknown key"),
        ({"format": "lanl"}, "failures.system", "is missing"),
    ],
)
def test_keys_of_a_trace(tmp_path: Path, keys: dict[str, str], key: str, hint: str) -> None:
    found = {p.key: p.message for p in problems(write(tmp_path, with_trace("t.json", **keys)))}
    assert hint in found.get(key, f"only {found}")


def test_a_trace_has_a_node_for_every_slot_and_its_own_repairs(tmp_path: Path) -> None:
    write(tmp_path, "[]", "t.json")
    text = with_trace("t.json").replace("nodes: 400", "nodes: 37")
    (found,) = problems(write(tmp_path, text))
    assert "the trace has 37 nodes, the job 38" in found.message
    text = with_trace("t.json").replace("emb_ps: 18", "emb_ps: 18\n  repair: 2 h")
    assert "its own repair" in problems(write(tmp_path, text))[0].message
    assert "37" not in str(load_scenario(write(tmp_path, with_trace("t.json"))).scenario.failures)
