"""Outages of one node that follow each other at once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd

ONE_FAULT_H = 1 / 60  # what a node reports within a minute is of one fault


def joined(rows: pd.DataFrame, within_h: float, what: str, counted: Counter[str]) -> pd.DataFrame:
    """Outages of a node that begin within a time of the end of the one before, made one.

    The first one's cause stands for all. How many of how many joined another is counted as `what`.
    """
    rows = rows.sort_values(["node", "start"], kind="stable")
    until_h = rows["end"].fillna(rows["start"]) if within_h else rows["end"]
    node = rows["node"].astype(object)
    again = (node == node.shift()) & (rows["start"] - until_h.shift() <= within_h)
    counted[f"of {len(rows)} {what}"] += int(again.sum())
    ends = np.maximum.reduceat(rows["end"].to_numpy(), np.flatnonzero(~again))  # NaN: not yet
    return rows[~again].assign(end=ends)
