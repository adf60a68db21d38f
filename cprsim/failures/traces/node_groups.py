"""A column that says of each node what it belongs to: a batch, a model, a rack."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.failures.outages import NodeGroups, Outages
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.formats import FORMATS
from cprsim.failures.traces.reading import FIRST_ROW


def read_groups(
    path: Path, form: str, column: str, outages: Outages, node_column: str = "node"
) -> NodeGroups:
    """What each node of a log belongs to.

    Parameters
    ----------
    path, form : a table that has the column, of nodes or of outages, and its format
    column : its name
    outages : the log
    node_column : what the table calls the nodes

    Raises
    ------
    ParameterError
        where the format has no such columns, or no node of the log is in one.
    TraceError
        for a column that is not there, or a node that is said to be in two groups.
    """
    if (pieces := FORMATS[form].pieces) is None:
        raise ParameterError(
            f"a log of format {form} has no column {column!r}: --nodes FILE names each node's "
            f"(a table with node,{column})"
        )
    pairs = pd.concat(_pairs(piece, path, column, node_column) for piece in pieces(path))
    pairs = pairs[(pairs != "").all(axis=1)].drop_duplicates()
    if len(twice := pairs[pairs["node"].duplicated()]):
        message = "the node was said to be in another group by an earlier row"
        raise trace_error(path, int(twice.index[0]) + FIRST_ROW, message, column)
    names, place = np.unique(pairs["group"].to_numpy(dtype=object), return_inverse=True)
    of_node = dict(zip(pairs["node"], place.tolist(), strict=True))
    code = np.full(outages.n_nodes, -1, dtype=np.int64)
    known = [of_node.get(name, -1) for name in outages.node_names]
    code[: len(known)] = known
    if not (code >= 0).any():
        raise ParameterError(f"{path}: no node of the log is in a group of {column!r}")
    return NodeGroups(column, code, tuple(names.tolist()))


def _pairs(piece: pd.DataFrame, path: Path, column: str, node_column: str) -> pd.DataFrame:
    for name in (node_column, column):
        if name not in piece:
            near = get_close_matches(name, [str(one) for one in piece.columns], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise trace_error(path, 1, f"there is no column {name!r}{hint}", name)
    texts = {"node": piece[node_column], "group": piece[column]}
    return pd.DataFrame({name: cells.fillna("").str.strip() for name, cells in texts.items()})
