"""Names of nodes: lists in every notation, and one name for each node of several spellings."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from os import PathLike

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import Counted
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.reading import FIRST_ROW
from cprsim.failures.traces.slurm import MOST_NODES, expanded

NO_NODE = {
    "unknown", "null", "none", "nan", "nat", "n/a", "na", "-", "--", "?", "(null)", "<unknown>",
    "none assigned", "<none>", "undefined", "unspecified", "tbd", "<na>", "<null>", "[]", "{}",
}  # fmt: skip
LEFT_OUT = "row(s) left out whose node is unknown, NULL, - or the like"
SEVERAL = r"[\[\]{}(),;|&+/:\s]|\.\.|\d[-–]\D"  # what a list of nodes has
BRACKETS = re.compile(r"\[[^\[\]]*\]?")
SPAN = re.compile(r"(.*?\D)(\d+)\s*(?:-|–|\.\.|:| to )\s*\1(\d+)")  # gpu001-gpu003
SAME_H = 5 / 60  # two sources report one outage within this
MOST_SHOWN = 3


# ------------------------------------------------------------------------------------------- lists


def one_node_each(
    table: pd.DataFrame, column: str, path: PathLike[str], counted: Counted
) -> pd.DataFrame:
    """The rows whose cell in `column` names a node, those that name several once for each."""
    cells = table[column].astype(object).str.strip()
    none = cells.str.lower().isin(NO_NODE).to_numpy(dtype=bool)
    counted["dropped", LEFT_OUT] += int(none.sum())
    table, cells = table[~none], cells[~none]
    has_sign = cells.str.contains(SEVERAL).fillna(False).astype(bool)
    if not has_sign.any():
        return table
    singles, lists = set(cells[~has_sign]), {}
    for row, cell in cells[has_sign].drop_duplicates().items():
        try:
            lists[cell] = nodes_in(cell, singles)
        except ParameterError as error:
            raise trace_error(path, int(str(row)) + FIRST_ROW, str(error), column) from None
    several = cells.isin([cell for cell, nodes in lists.items() if nodes != [cell]])
    if not several.any():
        return table
    counted["assumed", "row(s) that name several nodes, an outage of each"] += int(several.sum())
    return table.assign(
        **{column: cells.where(~several, cells.map(lists))}  # a list where there are several
    ).explode(column)


def nodes_in(text: str, known: Collection[str] = ()) -> list[str]:
    """The nodes that a cell names: ``n[1-3,7]``, ``a;b``, ``n1 n2``, ``['a', 'b']``, ``n{1..3}``.

    Blanks and the signs + / : separate nodes where the parts are alike, such as n1/n2, or `known`.
    """
    if not text.replace("\n", ",").isprintable():  # a name, whatever it is; no list
        return [text]
    plain = text.strip().rstrip(",;").strip()
    if re.fullmatch(r"\[[^\[\]]*\]|\{[^{}]*\}|\([^()]*\)", plain):  # of Python, JSON, PostgreSQL
        plain = re.sub(r"['\"]", "", plain[1:-1]).strip().rstrip(",")
    plain = plain.replace("{", "[").replace("}", "]")
    plain = BRACKETS.sub(lambda found: re.sub(r"\.\.|:", "-", found[0].replace(" ", "")), plain)
    parts = re.split(r"\s*(?:[,;|&\n]|\s(?:and|und)\s)\s*(?![^\[\]]*\])", plain)
    names: list[str] = []
    for part in parts:
        span = SPAN.fullmatch(part)
        if "[" in part or "]" in part:
            for one in re.split(r"[\s+]+", part):
                names += expanded(one)
        elif span and 0 < int(span[3]) - int(span[2]) < MOST_NODES:
            names += expanded(f"{span[1]}[{span[2]}-{span[3]}]")
        elif pieces := _apart(part, known):
            names += pieces
        elif re.search(r"\s", part):  # "Rack 5, left" is a name
            return [text.strip()]
        else:
            names.append(part)
    return names if len(names) > 1 or "[" in text else [text.strip()]


def _apart(text: str, known: Collection[str]) -> list[str]:
    """The names between blanks, +, / or :, if they are names; else none."""
    for sign in (r"\s+", r"\s*\+\s*", r"\s*/\s*", ":"):
        parts = re.split(sign, text)
        alike = {re.sub(r"\d+", "#", part) for part in parts}
        pattern = alike.pop() if len(alike) == 1 else ""
        are_alike = "#" in pattern and re.search("[^\\W\\d_]", pattern)
        if len(parts) > 1 and (are_alike or all(part in known for part in parts)):
            return parts
    return []


# ------------------------------------------------------------------------------- several spellings


def spellings(rows: pd.DataFrame, more: Iterable[str], counted: Counted) -> dict[str, str]:
    """The name to use, by each of the other spellings of a node: GPU3, gpu3.site:9100, 3.0.

    `rows` are outages: node, start, end [h]. Spellings that are down at one time, but neither
    begin nor end it together, are different nodes.
    """
    n_rows = {str(name): int(n) for name, n in rows["node"].value_counts().items()}
    groups = defaultdict[str, list[str]](list)
    for name in {*n_rows, *more}:
        groups[_bare(name)].append(name)
    hosts = Counter(key.partition(".")[0] for key in groups)
    for key in list(groups):  # n1.site is n1, where that is there, and no other n1.*
        host, dot, _ = key.partition(".")
        if dot and host in groups and hosts[host] == 2 and re.search("[a-z]", host):
            groups[host] += groups.pop(key)
    several = [forms for forms in groups.values() if len(forms) > 1]
    if not several:
        return {}
    rows = rows[rows["node"].isin([form for forms in several for form in forms])]
    by_name = dict(list(rows.groupby(rows["node"].astype(object))))
    same, one, apart = dict[str, str](), list[str](), list[str]()
    for forms in several:
        forms.sort(key=lambda name: (-n_rows.get(name, 0), len(name), name))
        of_each = [by_name[name] for name in forms if name in by_name]
        if len(of_each) > 1 and _are_different(pd.concat(of_each)):
            apart.append(" = ".join(forms))
        else:
            one.append(" = ".join(forms))
            same |= dict.fromkeys(forms[1:], forms[0])
    for words, texts in (("as one", one), ("as different nodes, as outages overlap", apart)):
        shown = ", ".join(map(one_line, texts[:MOST_SHOWN]))
        counted["assumed", f"node(s) of several spellings taken {words}: {shown}"] += len(texts)
    return same


def _bare(name: str) -> str:
    """A name without capitals, port and the decimals of a whole number."""
    low = re.sub(r"(?<!127\.0\.0\.1)(?<!localhost):\d{4,5}$", "", name.strip().casefold())
    return low.removesuffix(".0") if re.fullmatch(r"\d+\.0", low) else low


def _are_different(rows: pd.DataFrame) -> bool:
    """Whether some outages of two spellings overlap without being the same one."""
    rows = rows.sort_values("start", kind="stable")
    start_h, end_h = rows["start"].to_numpy(), rows["end"].fillna(rows["start"]).to_numpy()
    name = rows["node"].to_numpy()
    other = name[1:] != name[:-1]
    same = (np.diff(start_h) <= SAME_H) | (np.abs(np.diff(end_h)) <= SAME_H)
    return bool((other & ~same & (start_h[1:] < end_h[:-1])).any())
