"""Rows that say from when on nodes were down, or up: who was watched, and the outages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cprsim.failures.outages import ROUNDING_H, Counted, Kind

BEGIN, END, NEITHER = 1, 0, -1  # what a row says of an outage of its node
BETWEEN_LOOKS = 1.5  # steps, at most: a longer time is one in which nobody looked
UNDER_WAY = "outage(s) under way when their node was first seen: no failures"
NO_STATE = "row(s) left out whose state is empty"


def watch(
    rows: pd.DataFrame, known_to_h: float = 0.0, *, are_looks: bool = False
) -> dict[str, Any]:
    """Who was watched, and when, by rows that say when nodes were up.

    Rows that are spans cover the observation; a node that is looked at again and again is watched
    from the first look to the last. Rows that are changes name nodes alone.
    """
    rows = in_order(rows)
    node, is_up, before = rows["node"].astype(object), rows["state"] == END, rows.shift()
    again = node == before["node"].astype(object)
    n_changes = (again & (rows["state"] != before["state"])).sum()
    is_looks = are_looks or (again & is_up & (before["state"] == END)).sum() > n_changes
    are_spans = bool(rows["end"][is_up].notna().any())
    watch = dict[str, Any](nodes=frozenset(node), evidence={})
    if is_looks or are_spans or len(watch["nodes"]) > node[~is_up].nunique():
        watch["evidence"] = {"n_nodes": "the nodes that it has rows of"}
    if is_looks or are_spans:
        last_h = rows["end"].fillna(rows["start"] + known_to_h)  # a day is one until its end
        watch["watched"] = float(rows["start"].min()), float(last_h.max())
        watch["evidence"] |= {"begins": "its first row", "ends": "its last row"}
    if is_looks and not are_spans:
        looks = pd.DataFrame({"node": node, "entry": rows["start"], "exit": last_h})
        dates = looks.groupby("node").agg({"entry": "min", "exit": "max"}).reset_index()
        watch["dates"] = dates.assign(installed=np.nan)
        apart_h = (rows["start"] - before["start"])[again]
        watch["step_h"] = step_h = float(apart_h.median())
        holes = pd.DataFrame({"from": before["start"][again] + step_h, "to": rows["start"][again]})
        watch["holes_h"] = holes[apart_h > BETWEEN_LOOKS * step_h].to_numpy(float)
    return watch


def outages_of_states(
    rows: pd.DataFrame, counted: Counted, *, are_looks: bool = False
) -> pd.DataFrame:
    """Outages of rows that say from when on, or until when, a node was down, or up.

    One lasts until its own end, or else until its node's next row that says that it is up. Those
    under way at the first look at their node, or when a log begins with the states of all, are
    `planned`: no failures.
    """
    n_planned = int((rows["state"] == NEITHER).sum()) - counted["dropped", NO_STATE]
    counted["no_failure", "row(s) of planned work"] += n_planned
    rows = in_order(rows)
    is_up, is_open = rows["state"] == END, rows["end"].isna()
    again = is_up & is_up.shift(fill_value=False) & (rows["node"] == rows["node"].shift())
    n_again = 0 if are_looks or not is_open.all() else int(again.sum())
    counted["no_failure", "row(s) of nodes that are up"] += int(is_up.sum()) - n_again
    counted["no_failure", "row(s) of nodes that were up already: are some missing?"] += n_again
    # spans that touch are one outage, and one without an end lasts to the next failure at most;
    # of changes, a node is down until a row says that it is up, if only for an instant
    if has_end := not is_open.all():
        next_h = rows["start"].where(is_up | is_open).groupby(rows["node"], observed=True).shift(-1)
    else:
        next_h = rows["start"].where(is_up).groupby(rows["node"], observed=True).bfill()
        next_h = next_h.fillna(np.inf)
    within_h = ROUNDING_H if has_end else -ROUNDING_H
    is_first, at_begin = ~rows["node"].duplicated(), rows["start"] == rows["start"].min()
    seen = is_first & (at_begin & (is_first & at_begin & is_up).any() | are_looks)
    counted["assumed", UNDER_WAY] += int((seen & ~is_up).sum())
    down = rows.assign(end=rows["end"].fillna(next_h), open=True, planned=seen)[~is_up]
    kind: Kind = "merged" if has_end or are_looks else "dropped"  # its end before may be missing
    words = "row(s) say that a node is down that was down already"
    down = joined(down, within_h, words, counted, kind)
    return down.assign(end=down["end"].replace(np.inf, np.nan))


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that say that a node is down, or up, by node and instant; at one they take turns.

    The end of an outage comes first if the node is down before, or up afterwards, else the begin.
    """
    rows = rows[rows["state"] != NEITHER].sort_values(["node", "start", "state"], kind="stable")
    if not rows.duplicated(["node", "start"]).any():
        return rows
    more_down = rows.groupby(["node", "start"], observed=True)["state"].transform("mean") - 0.5
    others = more_down.where(more_down != 0).groupby(rows["node"], observed=True)
    keeps = (more_down != 0) | (others.ffill() > 0) | (others.bfill() < 0)
    turned = rows["state"].where(keeps, 1 - rows["state"])
    number = rows.groupby(["node", "start", "state"], observed=True).cumcount()
    by = ["node", "start", "number", "turned"]
    return rows.assign(number=number, turned=turned).sort_values(by, kind="stable")[list(rows)]


def joined(
    rows: pd.DataFrame, within_h: float, note: str, counted: Counted, kind: Kind = "merged"
) -> pd.DataFrame:
    """Merge outages of a node that begin within a time of the end of the one before.

    The first one's cause holds for all; the number that joined another is counted under `note`.
    """
    rows = rows.sort_values(["node", "start"], kind="stable")
    again = rows["node"] == rows["node"].shift()
    again &= rows["start"] - rows["end"].shift() <= within_h
    counted[kind, f"of {len(rows)} {note.replace('(s)', 's')}"] += int(again.sum())
    ends = np.maximum.reduceat(rows["end"].to_numpy(), np.flatnonzero(~again))  # NaN: not yet
    return rows[~again].assign(end=ends)
