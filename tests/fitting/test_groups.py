"""Groups of nodes: truths that are found, what can't be said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cprsim.failures.outages import NodeGroups, Outages, outages_of
from cprsim.fitting.by_group import hazard_ratios
from cprsim.fitting.coalescing import brought_together
from cprsim.fitting.correlation import togetherness
from cprsim.fitting.lifetimes import lifetimes_of, uptimes
from tests.making import call

WINDOW_H = 4000.0
N_EACH, EVERY_H, STRUCK, WITHIN_H = 6, 1500.0, 0.7, 1 / 30


def racks(seed: int, n_racks: int = 20) -> tuple[Outages, NodeGroups]:
    """Racks of 6 nodes that fail every 1,000 h each; a shock of each every 1,500 h strikes a node
    with 0.7, within two minutes.
    """
    rng = np.random.default_rng(seed)
    n_nodes = n_racks * N_EACH
    own = np.cumsum(rng.exponential(1000.0, (n_nodes, 40)), axis=1)
    node, number = np.nonzero(own < WINDOW_H)
    shocks = np.cumsum(rng.exponential(EVERY_H, (n_racks, 40)), axis=1)
    rack, of_rack = np.nonzero(shocks < WINDOW_H)
    event, place = np.nonzero(rng.random((len(rack), N_EACH)) < STRUCK)
    at_h = shocks[rack, of_rack][event] + rng.uniform(0, WITHIN_H, len(event))
    nodes = np.append(node, rack[event] * N_EACH + place)
    starts = np.append(own[node, number], at_h)
    return _log(nodes, starts, n_nodes), NodeGroups(
        "rack", np.arange(n_nodes) // N_EACH, tuple(f"r{k:02d}" for k in range(n_racks))
    )


def batches(seed: int, ratio: float = 2.0, shape: float = 0.7) -> tuple[Outages, NodeGroups]:
    """60 nodes of batch A, and 30 of batch B whose Weibull hazard is `ratio` times theirs."""
    rng = np.random.default_rng(seed)
    scale = np.where(np.arange(90) < 60, 500.0, 500.0 * ratio ** (-1 / shape))
    at = np.cumsum(scale[:, None] * rng.weibull(shape, (90, 120)), axis=1)
    node, number = np.nonzero(at < WINDOW_H)
    of = (np.arange(90) >= 60).astype(np.int64)
    return _log(node, at[node, number], 90), NodeGroups("batch", of, ("A", "B"))


def _log(node: np.ndarray, start_h: np.ndarray, n_nodes: int) -> Outages:
    return outages_of(
        node, start_h, start_h, ("",) * len(node), n_nodes=n_nodes, window_h=WINDOW_H,
        origin="0 h", node_names=tuple(f"n{k:03d}" for k in range(n_nodes)),
        window_given=(True, True),
    )  # fmt: skip


def written(path: Path, log: Outages, groups: NodeGroups) -> Path:
    """The log as a table that names each node's group."""
    rows = zip(log.node.tolist(), log.start_h.tolist(), strict=True)
    lines = [f"n{k:03d},{at!r},{at!r},{groups.names[groups.code[k]]}" for k, at in rows]
    path.write_text("\n".join([f"node,start,end,{groups.column}", *lines]) + "\n")
    return path


OPTIONS = ("--time-unit", "h", "--from", 0, "--to", WINDOW_H, "--bootstrap", 0, "--age", "new")


def test_the_ratio_of_hazards_is_found_whatever_the_shape() -> None:
    log, groups = batches(1)
    times = uptimes(log)
    (ratio,) = hazard_ratios(times, groups.code[times.unit], 2)
    assert ratio is not None
    assert ratio.low < 2.0 < ratio.high
    assert ratio.high / ratio.low < 1.5


def test_the_ratio_by_hand() -> None:
    times = lifetimes_of(
        np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4, dtype=bool), unit=np.arange(4)
    )  # fmt: skip
    (ratio,) = hazard_ratios(times, np.array([1, 0, 1, 0]), 2)
    # likelihood r/(2+2r) * 1/(2+r) * r/(1+r) * 1: its maximum solves 2/r = 2/(1+r) + 1/(2+r)
    assert ratio is not None
    assert 2 / ratio.mean == pytest.approx(2 / (1 + ratio.mean) + 1 / (2 + ratio.mean))
    assert hazard_ratios(times, np.array([1, 1, 1, 1]), 2) == [None]


def test_the_command_fits_each_group_and_writes_its_fragment(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", *batches(2))
    said = json.loads(call("fit", path, *OPTIONS, "--by", "batch", "--json").stdout)["by_group"]
    assert said["column"] == "batch"
    shapes = [one["uptimes"]["shape"] for one in said["groups"]]
    assert all(shape["low"] < 0.7 < shape["high"] for shape in shapes)
    first, second = said["groups"]
    truth = 2.0 if second["group"] == "B" else 0.5
    assert first["hazard_ratio"] is None
    assert second["hazard_ratio"]["low"] < truth < second["hazard_ratio"]["high"]
    assert f"# nodes: {second['nodes']} (read: those of batch" in second["fragment"]
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("node,batch\n" + "".join(f"n{k:03d},{'AB'[k >= 60]}\n" for k in range(90)))
    shown = call("fit", path, *OPTIONS, "--by", "batch", "--nodes", nodes)
    assert shown.exit_code == 0, shown.output
    assert "ratio of hazards" in shown.stdout


def test_failures_near_in_time_are_one_event() -> None:
    log, _ = racks(3)
    assert togetherness(log).larger.size == 0
    near = brought_together(log, WITHIN_H)
    assert togetherness(near).larger.mean() == pytest.approx(N_EACH * STRUCK, abs=0.5)
    assert "taken as one event with it" in near.notes[-1]
    assert near.n_outages == log.n_outages


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--by", "bach"), "log.csv:1: bach: there is no column 'bach'; did you mean 'batch'?"),
        (("--together", "soon"), "--together: 'soon'"),
        (("--by", "start"), "the node was said to be in another group"),
    ],
)
def test_what_can_not_be_said_of_groups(
    tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    path = written(tmp_path / "log.csv", *batches(2))
    found = call("fit", path, *OPTIONS, *options)
    assert (found.exit_code, found.stdout) == (2, "")
    assert complaint in found.stderr.replace("\n", " ")
