"""Failures of kind `correlated`, and hazards in pieces: what they come to, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cprsim.scenario.failures import CorrelatedFailures, JobFailures, NodeFailures
from tests.scenario.writing import changed, problems, scenario, write

CORRELATED = """\
failures:
  kind: correlated
  mtbf: 300 d
  shape: 0.4
  frailty: {shape: 0.8}
  lemons: {share: 12 %, factor: 5.5}
  shocks:
    every: 280 h
    sizes: {2: 20, 8: 5}
    nodes: 400
  start: fresh
  watched: 349 d
"""
LINE = {"kind": 8, "mtbf": 9, "frailty": 11, "lemons": 12, "every": 14, "sizes": 15, "nodes": 16}
PIECES = "kind: job, family: piecewise, ages: [0 h, 2 h], hazards: [1 failures/d, 12 failures/year]"


def correlated(*replacements: tuple[str, str]) -> str:
    return changed(
        ("failures: {kind: injected, count: 5, together: 4}\n", CORRELATED), *replacements
    )


def pieces(*replacements: tuple[str, str]) -> str:
    return changed(("kind: injected, count: 5, together: 4", PIECES), *replacements)


def test_everything_that_a_fit_says_has_its_unit_inside() -> None:
    failures = scenario(
        failures={
            "kind": "correlated", "mtbf": "300 d", "shape": 0.4, "frailty": {"shape": 0.8},
            "lemons": {"share": "12 %", "factor": 5.5}, "watched": "10 d",
            "shocks": {"every": "2 d", "sizes": {"2": 20, "8": 0.5}, "nodes": 400},
        }
    ).failures  # fmt: skip
    assert isinstance(failures, CorrelatedFailures)
    assert (failures.mtbf_h, failures.watched_h) == (7200.0, 240.0)
    assert failures.lemons is not None
    assert failures.lemons.share_fraction == 0.12
    assert failures.shocks is not None
    assert (failures.shocks.every_h, failures.shocks.sizes) == (48.0, {2: 20.0, 8: 0.5})


def test_nodes_are_alike_and_alone_by_default() -> None:
    failures = scenario(failures={"kind": "correlated", "mtbf": "9 h", "shape": 1}).failures
    assert isinstance(failures, CorrelatedFailures)
    assert (failures.frailty, failures.lemons, failures.shocks) == (None, None, None)
    assert (failures.start, failures.watched_h, failures.clock) == ("stationary", 0.0, "wall")


WRONG = {
    "bare share": (("12 %", "0.12"), LINE["lemons"], "failures.lemons.share", "write its unit"),
    "only lemons": (("12 %", "100 %"), LINE["lemons"], "failures.lemons.share", "99.999 %"),
    "misspelt": (("share:", "n: 3, share:"), LINE["lemons"], "failures.lemons.n", "Known: share"),
    "bare rate": (("every: 280 h", "every: 280"), LINE["every"], "failures.shocks.every", "unit"),
    "no number of nodes": (
        ("{2: 20", "{two: 20"), LINE["sizes"], "failures.shocks.sizes.two", "valid integer"),
    "shock of more than all": (
        ("8: 5", "401: 5"), LINE["sizes"], "failures.shocks.sizes.401", "only 400 nodes"),
    "job larger than the cluster": (
        ("nodes: 400", "nodes: 37"), LINE["nodes"], "failures.shocks.nodes", "the job has 38"),
}  # fmt: skip


@pytest.mark.parametrize(("replacement", "line", "key", "hint"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_has_its_line_and_remedy(
    tmp_path: Path, replacement: tuple[str, str], line: int, key: str, hint: str
) -> None:
    (found,) = problems(write(tmp_path, correlated(replacement)))
    assert (found.place.line, found.key) == (line, key)
    assert hint in found.message


# ------------------------------------------------------------------ hazards in pieces


def test_pieces_have_their_mean_from_ages_and_hazards() -> None:
    flat = {"family": "piecewise", "ages": ["0 h", "3 h"], "hazards": ["2 failures/h"] * 2}
    job = scenario(failures={"kind": "job", **flat}).failures
    assert isinstance(job, JobFailures)
    assert job.mtbf_h == pytest.approx(0.5)  # the hazard does not change: exponential
    node = scenario(failures={"kind": "node", "roles": {"emb_ps": flat}}).failures
    assert isinstance(node, NodeFailures)
    assert node.roles["emb_ps"].hazards_per_h == (2.0, 2.0)


PIECES_WRONG = {
    "late": (("0 h, 2 h", "1 h, 2 h"), "failures.ages", "pieces begin at 0"),
    "backwards": (("0 h, 2 h", "0 h, 0 h"), "failures.ages", "then ever later"),
    "too few": (("0 h, 2 h", "0 h"), "failures.ages", "each piece needs the age where"),
    "no ages": ((" ages: [0 h, 2 h],", ""), "failures.ages", "is missing"),
    "no hazards": ((", hazards: [1 failures/d, 12 failures/year]", ""), "failures.hazards", "is"),
    "a mean besides": (("ages:", "mtbf: 3 h, ages:"), "failures.mtbf", "leave it out"),
    "a shape besides": (("ages:", "shape: 3, ages:"), "failures.shape", "no parameter"),
    "a bare hazard": (("1 failures/d", "1"), "failures.hazards.0", "bare number"),
    "a time for a hazard": (("1 failures/d", "1 h"), "failures.hazards.0", "no unit of a hazard"),
    "a hazard of nothing": (("1 failures/d", "0 failures/d"), "failures.hazards.0", "range"),
    "too many failures": (
        ("1 failures/d, 12 failures/year", "3600 failures/h, 3600 failures/h"),
        "failures.hazards", "failures per job"),
    "pieces of another family": (
        ("piecewise", "exponential, mtbf: 3 h"), "failures.ages", "no parameter of exponential"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("replacement", "key", "hint"), PIECES_WRONG.values(), ids=list(PIECES_WRONG)
)
def test_pieces_that_do_not_fit_are_refused(
    tmp_path: Path, replacement: tuple[str, str], key: str, hint: str
) -> None:
    found = {p.key: p for p in problems(write(tmp_path, pieces(replacement)))}
    assert found[key].place.line == 7
    assert hint in found[key].message
