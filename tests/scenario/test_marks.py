"""Marks of a scenario: which values are assumed, from comments and from the section `marks`."""

from pathlib import Path

import pytest

from cprsim.commands.init.first import Known, first_scenario, n_assumed
from cprsim.errors import ScenarioError
from cprsim.scenario.reading import load_scenario

TEXT = """\
name: marked
job: {useful: 20 h}  # given
cluster:
  workers: 8
  link: 10 Gbit/s  # assumed; a guess
failures:  # recalled: of others
  kind: node
  roles:
    worker: {family: weibull, shape: 0.7, mtbf: 400 h}
scopes:
  - {name: node, share: 0.9, reach: node}  # assumed; derived: the rest
  - {name: all, share: 0.1, reach: all}  # assumed; recalled: a paper
costs:  # assumed
  save: 1 min
  load: 4 min  # given
recovery: [full]
"""
MARKS = {
    "cluster.link": "assumed",
    "failures.roles.worker.shape": "recalled",
    "failures.roles.worker.mtbf": "recalled",
    "scopes.node.share": "assumed",
    "scopes.all.share": "recalled",
    "costs.save": "assumed",
}


def marks_of(*overrides: str, text: str = TEXT) -> dict[str, str]:
    return load_scenario("marked.yaml", overrides, text=text).scenario.marks or {}


def test_a_mark_is_of_the_line_of_a_number_or_of_the_section_around_it() -> None:
    assert marks_of() == MARKS


@pytest.mark.parametrize(
    ("override", "gone"),
    [
        ("cluster.link=20 Gbit/s", {"cluster.link"}),
        ("scopes.all.share=0.1", {"scopes.all.share"}),
        ("costs={save: 2 min, load: 4 min}", {"costs.save"}),
    ],
)
def test_a_value_that_is_overridden_is_no_longer_assumed(override: str, gone: set[str]) -> None:
    assert marks_of(override).keys() == MARKS.keys() - gone


def test_the_section_says_the_same_without_comments() -> None:
    lines = [line.partition("  #")[0] for line in TEXT.splitlines()]
    text = "\n".join([*lines, f"marks: {MARKS}"])
    assert marks_of(text=text) == MARKS
    assert marks_of("cluster.link=20 Gbit/s", text=text).keys() == MARKS.keys() - {"cluster.link"}


def test_the_accepted_limit_of_an_entry_that_says_assumed_is_marked() -> None:
    entry = "{strategy: cpr, target_pls: 0.05, assumed: true}"
    text = TEXT.replace("workers: 8", "emb_ps: 8").replace("worker:", "emb_ps:")
    assert marks_of(text=text.replace("[full]", f"[{entry}]"))["recovery.cpr.target_pls"]


def test_a_mark_of_no_number_is_one_error_with_its_line() -> None:
    with pytest.raises(ScenarioError) as raised:
        marks_of(text=f"{TEXT}marks:\n  costs.laod: assumed\n")
    (problem,) = raised.value.problems
    assert problem.place.line == 18
    assert problem.key == "marks.costs.laod"


@pytest.mark.parametrize("kind", ["recommender", "llm"])
def test_init_writes_each_input_that_every_job_has_and_marks_it(kind: str, tmp_path: Path) -> None:
    trainers = 20 if kind == "recommender" else 0
    text = first_scenario(Known(kind, 18, trainers), "mine")
    scenario = load_scenario(tmp_path / "mine.yaml", text=text).scenario
    assert {"job.step", "cluster.link", "cluster.repair", "costs.detect"} <= set(
        scenario.marks or ()
    )
    lines = [line for line in text.splitlines() if "assumed" in line]
    assert n_assumed(text) == len(lines) - 1  # the sentence on top
    in_words = {key.split(".")[-1] for key in scenario.marks or ()}
    in_words -= {"shape"}  # of the section that is marked
    assert all(any(name in line for line in text.splitlines()) for name in in_words)
    assert sum("share:" in line for line in lines) == 4
