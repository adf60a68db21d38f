"""Cost of failed jobs of a cluster, by Slurm's accounting: months, quarters, nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cprsim.commands.options import parsed
from cprsim.logs.jobs.slurm_jobs import BY_JOB, BY_NODE, REQUEUED
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, Section, Table
from cprsim.results.words import count, percent, significant
from cprsim.scenario.prices import Money, shown

WORST_NODES = 10  # in the answer; the page and the JSON have all
HEADINGS = {
    "n_attempts": "attempts", "n_failed": "failed", "n_node_failures": "by a node",
    "node_h": "node-hours", "failed_node_h": "failed node-hours", "failed_cost": "cost of failed",
}  # fmt: skip
TABLES_OF_SLURM = {
    "quarters": "By quarter",
    "nodes": "Each node's share, 1/n of an attempt on n nodes; failures are all of the node in the "
    "column FailedNode, if sacct has it",
    "states": "By end",
}


def answer_of_slurm(attempts: pd.DataFrame, notes: Sequence[str], node_hour: str | None) -> Answer:
    """The node-hours of attempts, of which those of failed ones were lost in part or whole.

    Raises ParameterError where `node_hour` is no price.
    """
    price = None if node_hour is None else parsed("--node-hour", node_hour, Money)
    by_node, node_h = attempts["kind"] == BY_NODE, attempts["hours"] * attempts["n_nodes"]
    failed = by_node | (attempts["kind"] == BY_JOB)
    sums = pd.DataFrame({
        "n_attempts": 1, "n_failed": 1 * failed, "n_node_failures": 1 * by_node, "node_h": node_h,
        "failed_node_h": node_h * failed,
    })  # fmt: skip
    if price is not None:
        sums["failed_cost"] = sums["failed_node_h"] * float(price)
    ended = pd.to_datetime(3600 * attempts["end_h"].to_numpy(dtype=np.float64), unit="s")
    groups: dict[str, Any] = {
        "months": ended.strftime("%Y-%m").rename("month"),
        "quarters": ended.to_period("Q").astype(str).rename("quarter"),
        "states": [attempts["kind"], attempts["state"]],
    }
    frames = {name: sums.groupby(by).sum().reset_index() for name, by in groups.items()}
    held = _shares(sums[["n_attempts", "node_h"]], attempts["nodes"])
    lost = _shares(sums.drop(columns=held.columns), attempts["blamed"])
    nodes = held.join(lost, how="outer").fillna(0.0)[sums.columns].reset_index()
    worst_first = ["n_node_failures", "n_failed"]
    frames["nodes"] = nodes.sort_values(worst_first, ascending=False, kind="stable")
    values: dict[str, Any] = {
        **{str(name): sums[name].sum() for name in sums},
        "n_jobs": int(attempts["job"].nunique()),
        "node_failed_node_h": float(node_h[by_node].sum()),
        "unknown_node_h": float(node_h[attempts["kind"] == REQUEUED].sum()),
        "node_hour_price": None if price is None else str(price),
        "notes": [*notes, *_shared(attempts)],
    }
    make_document, name = partial(_document, frames, values, price), count(values["n_jobs"], "job")
    return Answer("ledger", name, make_document, frames, values, rows={"attempts": attempts})


def _shares(sums: pd.DataFrame, nodes: pd.Series[Any]) -> pd.DataFrame:
    """The share of each node in the sums of attempts, whose lists of nodes are given."""
    return (
        sums.div(nodes.str.len(), axis=0).assign(node=nodes).explode("node").groupby("node").sum()
    )


def _shared(attempts: pd.DataFrame) -> list[str]:
    """How many attempts began on a node before another one on it had ended."""
    on_node = attempts[attempts["hours"] > 0].explode("nodes").sort_values(["nodes", "start_h"])
    until_h = on_node.groupby("nodes")["end_h"].cummax().groupby(on_node["nodes"]).shift()
    n = on_node.index[on_node["start_h"] < until_h].nunique()
    note = f"{count(n, 'attempt')} began on a node that another one held: each counts whole nodes"
    return [f"{note}, so that shared ones count more than once"] * (n > 0)


def _document(
    frames: Mapping[str, pd.DataFrame], values: Mapping[str, Any], price: Money | None
) -> Document:
    def node_hours(node_h: float) -> str:
        money = "" if price is None else f", {shown(100 * node_h * float(price), price.label)}"
        return f"{significant(node_h)} node-hours{money}"

    total_h, failed_h = values["node_h"], values["failed_node_h"]
    n_failed, n_attempts = values["n_failed"], values["n_attempts"]
    share = percent(failed_h / total_h if total_h else 0.0)
    nodes, unknown_h = frames["nodes"].set_index("node"), values["unknown_node_h"]
    share_of = "n_node_failures" if nodes["n_node_failures"].any() else "n_failed"
    worst = nodes[share_of][nodes[share_of] > 0][:WORST_NODES].map(significant)
    by = " by a node" if share_of == "n_node_failures" else ""
    names = ", ".join(f"{node} {n}" for node, n in worst.items())
    remarks = {
        f"Worst nodes, by their share of the attempts that failed{by}: {names}.": names,
        "No node is named by a failed attempt: print the column NodeList.": n_failed and not names,
        "A failed attempt lost at most its run time since its start: sacct records no saves.":
            n_failed,
        "Every attempt of the table failed: which share of all node-hours that is, it does not say "
        "(sacct without -s has all).": n_failed == n_attempts,
        f"Requeued without a cause: {node_hours(unknown_h)}, not in these.": unknown_h,
        **dict.fromkeys(values["notes"], True),
        "No job has two attempts: without --duplicates, sacct leaves out those before a requeue.":
            n_attempts == values["n_jobs"],
    }  # fmt: skip
    return Document(
        title="What failed jobs cost",
        question="How many node-hours did failed jobs hold, and where?",
        answer=[
            f"Failed jobs held {node_hours(failed_h)}, {share} of {significant(total_h)}: at most "
            "that was lost.",
            f"{count(values['n_jobs'], 'job')}, {count(n_attempts, 'attempt')}; "
            f"{count(n_failed, 'attempt')} failed, {values['n_node_failures']:,} of them by a node "
            f"({node_hours(values['node_failed_node_h'])}).",
        ],
        table=_table("By the month in which attempts ended", frames["months"], price),
        remarks=[remark for remark, holds in remarks.items() if holds],
        sections=[
            Section(name.capitalize(), [_table(caption, frames[name], price)])
            for name, caption in TABLES_OF_SLURM.items()
        ],
    )


def _table(caption: str, frame: pd.DataFrame, price: Money | None) -> Table:
    """A row per group, the money with its currency."""
    cells, names = frame.copy(), [*frame.select_dtypes(exclude="number")]
    if price is not None:
        cells["failed_cost"] = [shown(100 * cost, price.label) for cost in frame["failed_cost"]]
    for name in cells.select_dtypes("float"):
        cells[name] = cells[name].map(significant)
    numbers = [HEADINGS.get(name, name) for name in map(str, frame) if name not in names]
    return Table(caption, [*names, *numbers], cells.astype(str).to_numpy().tolist(), names)
