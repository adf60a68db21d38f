"""Synthetic logs for tests of sources and of fits."""

from math import gamma
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cprsim.failures.outages import Outages, outages_of
from cprsim.failures.sources import FailureSource
from cprsim.job.records import Cluster, Floats, Holds, Role
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from tests.making import small_scenario


def outages(
    *rows: tuple[Any, ...], n_nodes: int = 8, window_h: float = 100.0, **more: Any
) -> Outages:
    """A log of rows of node, start, end and perhaps cause."""
    node, start_h, end_h, *cause = (np.array(column) for column in zip(*rows, strict=True))
    return outages_of(
        node, start_h.astype(float), end_h.astype(float),
        tuple(cause[0].tolist()) if cause else ("",) * len(rows),
        n_nodes=n_nodes, window_h=window_h, origin="0 h", **more,
    )  # fmt: skip


def log_of(
    at_h: Floats, window_h: float, node: Floats | None = None, n_nodes: int = 1,
    down_h: float = 0.0, *, given: bool = False,
) -> Outages:  # fmt: skip
    """A log of failures at some instants within a window, of one node or of given ones."""
    inside = (at_h >= 0) & (at_h < window_h)
    at_h = at_h[inside]
    nodes = np.zeros(len(at_h)) if node is None else node[inside]
    return outages_of(
        nodes.astype(np.int64), at_h, at_h + down_h, ("",) * len(at_h),
        n_nodes=n_nodes, window_h=window_h, origin="0 h", window_given=(given, given),
    )  # fmt: skip


def log_drawn(source: FailureSource, n_nodes: int, window_h: float, seed: int) -> Outages:
    """A log of the failures that a source draws for a cluster."""
    cluster = Cluster((Role("node", n_nodes, Holds.NOTHING),))
    trace = next(source.draw(cluster, seed, 0, 1, [window_h]))
    at_h = np.repeat(trace.at_h, np.diff(trace.first_slot))
    return log_of(at_h, window_h, trace.slot, n_nodes, given=True)


def gaps_on_random_nodes(gaps_h: Floats, n_nodes: int, seed: int = 0) -> Outages:
    """A cluster whose failures have these gaps, each of a random node."""
    at_h = np.cumsum(gaps_h)
    node = np.random.default_rng(seed).integers(n_nodes, size=len(at_h))
    return log_of(at_h, float(at_h[-1]) * 1.001, node, n_nodes)


def lemons(
    seed: int, *, n_nodes: int = 60, mean_h: float, others_h: float, shape: float
) -> Outages:
    """Weibull nodes, three of which have a short mean; watched for 2,000 h."""
    rng = np.random.default_rng(seed)
    unit = rng.weibull(shape, (n_nodes, 400))
    mean = np.where(np.arange(n_nodes) < 3, mean_h, others_h)
    at_h = np.cumsum(unit * mean[:, None] / gamma(1 + 1 / shape), axis=1)
    node = np.repeat(np.arange(n_nodes), 400)
    return log_of(at_h.ravel(), 2000.0, node, n_nodes, down_h=1e-4)


def assembled(fragment: str, *overrides: str) -> Experiment:
    """The small scenario with what a fragment says."""
    said = tuple(f"{key}:" for key in yaml.safe_load(fragment))
    rest = [line for line in small_scenario("full").splitlines() if not line.startswith(said)]
    text = "\n".join([*rest, fragment])
    return assemble(load_scenario("fitted.yaml", list(overrides), text=text))


def write_log(path: Path, log: Outages) -> Path:
    """The log as a CSV in hours, nodes named by their numbers."""
    columns = (log.node.tolist(), log.start_h.tolist(), log.end_h.tolist(), log.cause)
    rows = zip(*columns, strict=True)
    lines = [f"n{node},{start!r},{end!r},{cause}" for node, start, end, cause in rows]
    path.write_text("\n".join(["node,start,end,cause", *lines]) + "\n")
    return path
