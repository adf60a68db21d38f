"""What failed jobs cost a cluster, by Slurm's accounting: months, nodes, jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cprsim.history.slurm_jobs import BY_JOB, BY_NODE, NEAR_H, REQUEUED
from cprsim.present.answer import Answer
from cprsim.present.document import Document, Section, Table, row_columns
from cprsim.results.metrics import records_of
from cprsim.results.words import count, percent, significant
from cprsim.scenario.prices import Money, shown

WORST_NODES, MOST_ROWS, MOST_JOBS = 10, 10_000, 100  # in the answer; on the page
AT_MOST = (
    "A failed attempt lost at most what it ran since its start: sacct tells of no saves, and "
    "therefore not how much less."
)
SUMS = (
    "n_attempts", "n_failed", "n_node_failures", "node_h", "failed_node_h", "failed_cost"
)  # fmt: skip
HOW = (
    "A failure on n nodes counts 1/n for each of them, as sacct does not say which failed (newer "
    "versions do: column FailedNode); the node-hours of a failed attempt are shared alike."
)


def answer_of_slurm(attempts: pd.DataFrame, notes: Sequence[str], price: Money | None) -> Answer:
    """The node-hours of attempts, of which those of failed ones were lost in part or whole."""
    failed = attempts["kind"].isin((BY_NODE, BY_JOB))
    table = attempts.assign(
        n_attempts=1, n_failed=1 * failed, n_node_failures=1 * (attempts["kind"] == BY_NODE),
        node_h=attempts["hours"] * attempts["n_nodes"],
    )  # fmt: skip
    table["failed_node_h"] = table["node_h"] * failed
    if price is not None:
        table["failed_cost"] = table["failed_node_h"] * float(price)
    ended = pd.to_datetime(3600 * table["end_h"].to_numpy(dtype=np.float64), unit="s")
    frames = {
        "months": _summed(table, ended.strftime("%Y-%m").rename("month")),
        "quarters": _summed(table, ended.to_period("Q").astype(str).rename("quarter")),
        "nodes": _nodes(table),
        "states": _summed(table, ["kind", "state"]),
        "jobs": _summed(table, "job").sort_values("failed_node_h", ascending=False, kind="stable"),
    }
    values: dict[str, Any] = {
        **{name: table[name].sum() for name in SUMS if name in table},
        "n_jobs": int(table["job"].nunique()),
        "node_failed_node_h": float(table["node_h"][table["kind"] == BY_NODE].sum()),
        "unknown_node_h": float(table["node_h"][table["kind"] == REQUEUED].sum()),
        "node_hour_price": None if price is None else str(price),
        "worst_nodes": list(frames["nodes"].query("failures > 0")["node"][:WORST_NODES]),
        "notes": list(notes),
    }
    if n_shared := _n_shared(attempts):
        values["notes"].append(
            f"{count(n_shared, 'attempt')} began on a node that another one held: each counts "
            "whole nodes, so that shared ones count more than once"
        )
    name = count(values["n_jobs"], "job")
    return Answer(
        "ledger", name, lambda: _document(frames, values, price), frames, values,
        rows={"attempts": attempts},
    )  # fmt: skip


def _n_shared(attempts: pd.DataFrame) -> int:
    """Attempts that began on a node before the one before on it had ended."""
    of_node = attempts[attempts["hours"] > 0].explode("nodes").dropna(subset="nodes")
    of_node = of_node.sort_values(["nodes", "start_h"], kind="stable")
    until_h = of_node.groupby("nodes")["end_h"].cummax().groupby(of_node["nodes"]).shift()
    return int(of_node.index[of_node["start_h"] < until_h - NEAR_H].nunique())


def _summed(table: pd.DataFrame, by: Any) -> pd.DataFrame:
    """Attempts and node-hours of each group, and of those that failed."""
    return table.groupby(by)[[name for name in SUMS if name in table]].sum().reset_index()


def _nodes(table: pd.DataFrame) -> pd.DataFrame:
    """Each node by name, the worst first: its share of the failures, and of what they held."""
    hours = table.explode("nodes").groupby("nodes")["hours"].sum()
    failed = table[table["n_failed"] > 0]
    share = 1 / failed["blamed"].map(len).clip(lower=1)
    parts = failed.assign(node_failures=failed["n_node_failures"], failures=1)
    columns = ["node_failures", "failures", *[name for name in SUMS[-2:] if name in table]]
    parts[columns] = parts[columns].mul(share, axis=0)
    of_node = parts.explode("blamed").groupby("blamed")[["n_failed", *columns]].sum()
    frame = of_node.join(hours, how="outer").fillna(0.0).rename_axis("node").reset_index()
    return frame.sort_values(columns[:2], ascending=False, kind="stable")


# ------------------------------------------------------------------------------ the document


def _document(
    frames: dict[str, pd.DataFrame], values: dict[str, Any], price: Money | None
) -> Document:
    def money(node_h: float) -> str:
        return "" if price is None else f", {shown(100 * node_h * float(price), price.label)}"

    total_h, failed_h = values["node_h"], values["failed_node_h"]
    share = percent(failed_h / total_h if total_h else 0.0)
    if all_failed := values["n_failed"] == values["n_attempts"]:
        share = "all of the table"
    by_node_h, unknown_h = values["node_failed_node_h"], values["unknown_node_h"]
    nodes = frames["nodes"]
    share_of = "node_failures" if nodes["node_failures"].any() else "failures"
    worst = [
        f"{row['node']} {significant(row[share_of])}"
        for row in records_of(nodes[nodes[share_of] > 0][:WORST_NODES])
    ]
    blamed = f"Worst nodes, by their share of the {share_of.replace('_', ' ')}: {', '.join(worst)}."
    nameless = "No node is named by a failed attempt: print the column NodeList."
    single = (
        "No job has two attempts: without --duplicates, sacct leaves out those before a requeue."
    )
    answer = [
        f"Failed jobs held {significant(failed_h)} of {significant(total_h)} node-hours "
        f"({share}{money(failed_h)}): at most that was lost.",
        f"{count(values['n_jobs'], 'job')}, {count(values['n_attempts'], 'attempt')}; "
        f"{count(values['n_failed'], 'attempt')} failed, {values['n_node_failures']:,} of them by "
        f"a node ({significant(by_node_h)} node-hours{money(by_node_h)}).",
    ]
    filtered = (
        "Every attempt of the table failed: which share of all node-hours that is, it does not say "
        "(sacct without -s has all)."
    )
    requeued = f"Requeued without a cause: {significant(unknown_h)} node-hours, not in these."
    return Document(
        title="What failed jobs cost",
        question="How many node-hours did failed jobs hold, and where?",
        answer=answer,
        table=_table("By the month in which attempts ended", frames["months"], ["month"], price),
        remarks=[
            *([blamed if worst else nameless, AT_MOST] if values["n_failed"] else []),
            *([filtered] if all_failed else []),
            *([requeued] if unknown_h else []),
            *values["notes"],
            *([single] if values["n_attempts"] == values["n_jobs"] else []),
        ],
        sections=[
            Section("Quarters", [_table("By quarter", frames["quarters"], ["quarter"], price)]),
            Section("Nodes", [_table(HOW, nodes, ["node"], price)]),
            Section("Ends", [_table("By end", frames["states"], ["kind", "state"], price)]),
            Section("Jobs", [_table("By what failed", frames["jobs"], ["job"], price, MOST_JOBS)]),
        ],
    )  # fmt: skip


HEADINGS = {
    "n_attempts": "attempts", "hours": "hours", "node_h": "node-hours", "node_failures":
    "node failures", "failures": "failures", "n_failed": "failed", "n_node_failures": "by a node",
    "failed_node_h": "failed node-hours",
}  # fmt: skip


def _table(
    caption: str, frame: pd.DataFrame, names: Sequence[str], price: Money | None,
    most: int = MOST_ROWS,
) -> Table:  # fmt: skip
    """A row per group, as many as a page shows."""
    headings = {key: text for key, text in HEADINGS.items() if key in frame}
    rows = [
        [" / ".join(str(row[name]) for name in names),
         *(str(row[key]) if isinstance(row[key], int) else significant(row[key])
           for key in headings),
         *([] if price is None else [shown(100 * row["failed_cost"], price.label)])]
        for row in records_of(frame[:most])
    ]  # fmt: skip
    money = [] if price is None else ["cost of failed"]
    left = len(frame) - most
    caption += f"; {left} more are in the JSON" if left > 0 else ""
    return Table(caption, row_columns(names[0], *headings.values(), *money), rows)
