"""A first scenario, made of four answers, is a scenario: whatever the answers are."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import assemble
from cprsim.scenario.answers import (
    Answers,
    FailuresSection,
    JobKind,
    Rate,
    read_failures,
    read_kind,
    read_nodes,
    read_saves,
)
from cprsim.scenario.first import first_scenario, n_assumed
from cprsim.scenario.loading import load_scenario
from cprsim.units import TIME

FILE = Path("first.yaml")
CORRELATED = """\
# fitted to log.csv
failures:
  kind: correlated
  mtbf: 3000 h
  shape: 0.6
  shocks: {every: 300 h, sizes: {2: 3.0}, nodes: 400}
# under cluster, with spares: repair: {family: exponential, mean: 2 h}
"""
NODES = {JobKind.recommender: ("1", "12", "0+3"), JobKind.llm: ("1", "3", "128x8")}
FAILURES = ("28 h", "1 s", "20 yr per node", "10 min per node", "unknown")
SAVES = ("unknown", "30 min, 2 min", "unknown, 100 ms", "1 s, unknown")
CASES = [
    (kind, nodes, failures, saves)
    for kind, failures, saves in product(JobKind, (*FAILURES, "a fit"), SAVES)
    for nodes in NODES[kind]
]


def answers(kind: JobKind, nodes: str, failures: str, saves: str) -> Answers:
    section = FailuresSection(CORRELATED, "log.csv")
    rate = section if failures == "a fit" else read_failures(failures)
    assert not isinstance(rate, Path)
    return Answers(kind, read_nodes(nodes, kind), rate, read_saves(saves))


def test_a_first_scenario_of_any_answers_is_valid_and_can_be_assembled() -> None:
    for case in CASES:
        text = first_scenario(answers(*case), "first")
        loaded = load_scenario(FILE, text=text)
        assert loaded.scenario.name == "first", case
        experiment = assemble(loaded)
        assert len(experiment.policies) == text.partition("\nrecovery:")[2].count("\n  - "), case


@pytest.mark.parametrize("kind", JobKind)
def test_numbers_that_were_given_stand_in_the_scenario(kind) -> None:
    made = answers(kind, "7", "333 h", "17 min, 3 min")
    scenario = load_scenario(FILE, text=first_scenario(made, "x")).scenario
    assert scenario.cluster.n_nodes_of["any"] == 7
    assert scenario.failures.mtbf_h == 333  # type: ignore[union-attr]
    assert scenario.costs.save.stall == pytest.approx(TIME.parse("3 min"))
    today = next(entry for entry in scenario.recovery if entry.name == "today")
    assert today.interval == pytest.approx(TIME.parse("17 min"))


@pytest.mark.parametrize("kind", JobKind)
def test_the_state_in_all_is_dealt_out_and_what_nobody_says_is_guessed(kind) -> None:
    made = answers(kind, "128x8" if kind is JobKind.llm else "24", "8 h", "30 min, 1 min")
    told = replace(made, state_bytes=6e12, storage_bytes_per_h=3.6e14, useful_h=240.0)
    text = first_scenario(told, "x")
    cluster = load_scenario(FILE, text=text).scenario.cluster
    n_nodes = 128 if kind is JobKind.llm else 8
    assert cluster.shard_bytes == pytest.approx(6e12 / n_nodes, rel=1e-3)
    assert f"state of 6 TB in all, {6e12 / n_nodes / 1e9:.3g} GB on each" in cluster.state_said
    assert "storage: {bandwidth: 800 Gbit/s}  # given" in text
    assert "useful: 10 d                  # given" in text
    assert ("nodes of 8 GPUs" in text) == (kind is JobKind.llm)
    assert n_assumed(first_scenario(made, "x")) == n_assumed(text) + 3


@pytest.mark.parametrize("kind", JobKind)
def test_a_share_of_the_failures_takes_a_rack_or_the_whole_job(kind) -> None:
    text = first_scenario(answers(kind, "12", "28 h", "30 min, 2 min"), "x")
    scenario = load_scenario(FILE, text=text).scenario
    assert [one.reach for one in scenario.scopes] == ["process", "node", "rack", "all"]
    assert sum(one.share or 0.0 for one in scenario.scopes) == pytest.approx(1.0)
    lines = [line for line in text.splitlines() if "share: 0" in line]
    assert all("derived:" in line or "recalled:" in line for line in lines)
    alone = load_scenario(FILE, text=first_scenario(answers(kind, "1", "28 h", "unknown"), "x"))
    assert alone.scenario.scopes == ()


def test_whatever_was_not_given_is_marked() -> None:
    known = first_scenario(answers(JobKind.recommender, "8+4", "28 h", "30 min, 2 min"), "x")
    unknown = first_scenario(answers(JobKind.recommender, "12", "unknown", "unknown"), "x")
    assert n_assumed(unknown) == n_assumed(known) + 3  # two roles and the cost of a save
    assert "cpr (recalled;" in unknown
    assert "cpr (recalled;" not in known


def test_every_line_with_a_number_of_ones_own_to_check_has_a_comment() -> None:
    for case in CASES:
        if case[2] == "a fit":
            continue
        body = first_scenario(answers(*case), "x").partition("name: x")[2]
        for line in body.splitlines():
            key = line.split("#")[0].strip().rstrip(":")
            covered = ("mtbf" in key) or key.startswith(("shape", "family", "kind", "roles"))
            assert "#" in line or not line[:1].isspace() or covered, line


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (read_kind, "lllm", "did you mean `llm`?"),
        (lambda text: read_nodes(text, JobKind.llm), "8+4", "a whole number such as 12"),
        (lambda text: read_nodes(text, JobKind.recommender), "4+0", "8+4"),
        (lambda text: read_nodes(text, JobKind.recommender), "1e3", "8+4"),
        (lambda text: read_nodes(text, JobKind.llm), "100001", "1 to 100000"),
        (lambda text: read_nodes(text, JobKind.llm), "٣", "a whole number"),
        (read_failures, "28", "has no unit"),
        (read_failures, "log.csv", "no file"),
        (read_failures, "-3 h", "out of range"),
        (read_failures, "per node", "is not a time"),
        (read_saves, "30 min", "'30 min, 2 min'"),
        (read_saves, "0 s, 2 min", "out of range"),
        (read_saves, "1 h, 2", "has no unit"),
    ],
)
def test_a_wrong_answer_is_refused_with_what_would_be_right(read, text, said) -> None:
    with pytest.raises(ParameterError, match="(?s)" + "|".join([_literal(said)])):
        read(text)


def _literal(text: str) -> str:
    return "".join(f"[{c}]" if c in "?+.`()'" else c for c in text)


def test_answers_are_read_as_people_write_them() -> None:
    assert read_kind(" LLM ") is JobKind.llm
    assert read_failures("1000 d  per node") == Rate(24_000.0, per_node=True)
    assert read_failures("Unknown") is None
    nodes = read_nodes("8 + 4", JobKind.recommender)
    assert (nodes.trainers, nodes.servers, nodes.split_known) == (8, 4, True)
