"""What a table says beside node, start, end and cause: how long outages took, states, the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.failures.traces.reading import LIKE_A_TIME, often_called, trace_error
from cprsim.failures.traces.times import TIME_OF_DAY, Times
from cprsim.foreign import one_line
from cprsim.records import Floats, Ints

# ------------------------------------------------------------------------------------------ lengths

UNITS = {
    "ms": "ms milliseconds millis msec",
    "s": "s sec secs second seconds sekunden",
    "min": "min mins minute minutes minuten",
    "h": "h hr hrs hour hours std stunden",
    "d": "d day days tage",
}
UNIT_OF = {word: unit for unit, words in UNITS.items() for word in words.split()}
LENGTHS = frozenset({
    "duration", "downtime", "down time", "time down", "outage duration", "outage time", "length",
    "elapsed", "ttr", "repair time", "time to repair", "dauer", "ausfalldauer", "ausfallzeit",
})  # fmt: skip
LENGTHS_IN_A_UNIT = frozenset({"down", "outage", "repair", "out"})  # hours_down
_WORD = re.compile(r"[A-Z]?[a-zäöüß]+|[A-Z]+(?![a-z])")


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name) if word.lower() not in ("in", "of")]


def unit_of(name: str) -> str | None:
    """The unit that a column's name ends or begins with: downtime_s, Dauer (h), hours_down."""
    return next((UNIT_OF[word] for word in reversed(_words(name)) if word in UNIT_OF), None)


def _is_length(name: str) -> bool:
    words = _words(name)
    rest = " ".join(word for word in words if word not in UNIT_OF)
    return rest in LENGTHS or (rest in LENGTHS_IN_A_UNIT and unit_of(name) is not None)


# ------------------------------------------------------------------------------------------- states

_BEGINS = (
    "down notready nodenotready fail failed failure offline unavailable unreachable dead critical "
    "firing problem lost start started begin began unhealthy outage broken crashed"
)
_ENDS = (
    "up ready nodeready recovered recovery online available reachable alive ok resolved end ended "
    "finish finished restored repaired back healthy running normal"
)
BEGINS, ENDS = frozenset(_BEGINS.split()), frozenset(_ENDS.split())
ONE = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
MOST_STATES = 30
BEGIN, END, NEITHER = 1, 0, -1


def _meaning(cell: object, column: str) -> int:
    """What a cell says of the node; 0 and 1 by the name of their column."""
    text = re.sub(r"[^a-z0-9]", "", str(cell).lower().removesuffix(".0"))
    if text in ONE:
        name = "".join(_words(column))
        if name in BEGINS | ENDS:
            return BEGIN if ONE[text] == (name in BEGINS) else END
    return BEGIN if text in BEGINS else END if text in ENDS else NEITHER


def states(column: pd.Series[str]) -> Ints:
    """What each cell says of its node, (n_rows,): `BEGIN`, `END` or `NEITHER` of an outage."""
    place, found = pd.factorize(column.fillna(""))
    meant = np.array([_meaning(cell, str(column.name)) for cell in found], dtype=np.int64)
    return np.asarray(meant[place], dtype=np.int64)


def _tells_states(column: pd.Series[str]) -> bool:
    """Whether every cell begins or ends an outage, and some do either."""
    found = column.fillna("").unique()
    if len(found) > MOST_STATES:
        return False
    return {_meaning(cell, str(column.name)) for cell in found} == {BEGIN, END}


def outages_between(node: Ints, at_h: Floats, state: Ints) -> tuple[Ints, Floats]:
    """Outages from changes of state.

    Parameters
    ----------
    node, at_h, state : (n_rows,) in any order

    Returns
    -------
    the rows that begin an outage of a node that was up, (n_outages,), and the instant at which the
    node's next row ends it [h], NaN where there is none
    """
    order = np.lexsort((state, at_h, node))  # at one instant an end comes first
    order = order[state[order] != NEITHER]
    by_node, begins = node[order], state[order] == BEGIN
    first = np.append(True, by_node[1:] != by_node[:-1])
    changes = np.where(first, begins, np.append(True, begins[1:] != begins[:-1]))
    order = order[changes]
    at = np.flatnonzero(state[order] == BEGIN)
    follows = np.append(order, order[:1])[at + 1]
    ended = (at + 1 < len(order)) & (node[follows] == node[order[at]]) & (state[follows] == END)
    return order[at], np.where(ended, at_h[follows], np.nan)


# ---------------------------------------------------------------------------------------- all of it


def ends_told(table: pd.DataFrame, columns: Mapping[str, str]) -> dict[str, str]:
    """The column that says when outages end where none is called so: ``duration`` or ``state``.

    Parameters
    ----------
    table : the first rows
    columns : the file's names of those columns that it calls something else
    """
    asked = {name: columns[name] for name in ("duration", "state") if name in columns}
    if asked or "end" in columns or "end" in table:
        return asked
    taken = {columns.get(name, name) for name in ("node", "start")}
    names = [str(name) for name in table if name not in taken]
    lengths = [name for name in names if _is_length(name)]
    if lengths:
        return {"duration": lengths[0]}
    of_states = [name for name in names if _tells_states(table[name])]
    return {"state": of_states[0]} if of_states else {}


MELT = (
    "python -c \"import pandas; pandas.read_csv('FILE').melt('{}', var_name='node', "
    "value_name='up').to_csv('log.csv', index=False)\""
)


def require_no_matrix(table: pd.DataFrame, columns: Mapping[str, str], path: Path) -> None:
    """Raise TraceError for a table with a column of states for each node, with what to do.

    Parameters
    ----------
    table : the first rows
    columns : the file's names of those columns that it calls something else
    path : for the message
    """
    if "node" in table or "node" in columns or len(table.columns) < 3:
        return
    names = [str(name) for name in table]
    times = table[names[0]].dropna()
    states_alone = all(_holds_states(table[name]) for name in names[1:])
    if states_alone and all(LIKE_A_TIME.match(cell) for cell in times[:MOST_STATES]):
        first = one_line(names[0])
        message = (
            f"has a column of states for each node: {MELT.format(first)} makes a row of each; "
            f"then --column 'start={first}'"
        )
        raise trace_error(path, 1, message)


def _holds_states(column: pd.Series[str]) -> bool:
    found = column.dropna().unique()
    return 0 < len(found) <= MOST_STATES and all(_meaning(cell, "up") != NEITHER for cell in found)


def require_whole_instants(
    table: pd.DataFrame, read: Mapping[str, str], start: Times, path: Path
) -> None:
    """Raise TraceError where starts are days alone, and another column has the times of day."""
    starts = table[read["start"]].dropna()
    if not start.dated or starts.str.contains(":", regex=False).any():
        return
    for name in map(str, table):
        cells = table[name].dropna()
        if name not in read.values() and len(cells) and cells.str.fullmatch(TIME_OF_DAY).all():
            time = one_line(name)
            message = (
                f"holds days, and '{time}' times of day: join them in one column, such as "
                f"2024-05-01 10:00:00 (or leave '{time}' out, if days are enough)"
            )
            raise trace_error(path, 1, message, one_line(read["start"]))


def alike(names: tuple[str, ...]) -> tuple[str, ...]:
    """A note on nodes' names that differ in case alone, or by a domain after the name."""
    lower: dict[str, str] = {}
    for name in names:
        lower.setdefault(name.lower(), name)
    pairs = [
        (lower[short], name)
        for name in names
        for short in {name.lower(), name.lower().partition(".")[0]}
        if lower.get(short, name) != name
    ]
    if not pairs:
        return ()
    one, other = (one_line(name) for name in pairs[0])
    return (
        f"{len(pairs)} name(s) of nodes differ from another's in case or domain alone, such as "
        f"{one} and {other}: if they are one node, write one name",
    )


MOST_NAMED, LONGEST_NAMED = 6, 40
NAMELESS = re.compile(r"Unnamed: \d+")  # as pandas calls it
LIVES = ("installed", "entry", "exit")


def not_read(table: pd.DataFrame, read: Mapping[str, str]) -> tuple[str, ...]:
    """A note on the columns that say nothing of node, start, end and cause.

    Parameters
    ----------
    table : the first rows
    read : what the file calls the columns that were read, by our names
    """
    unread = (str(name) for name in table if name not in read.values())
    names = [name for name in unread if not NAMELESS.fullmatch(name)]
    if not names:
        return ()
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    shown = ", ".join(one_line(name)[:LONGEST_NAMED] for name in names[:MOST_NAMED])
    ends = {} if read.keys().isdisjoint(("duration", "state")) else {"end": ""}
    hints = [f"{one_line(hint)} would" for hint in often_called(table[names], {**read, **ends})]
    if read.keys().isdisjoint(("end", "duration", "state")):
        flags = [name for name in names if set(table[name].dropna().unique()) == {"0", "1"}]
        hints += [
            f"'{one_line(name)}' holds 0 and 1: called up, or down, it would say when a node is"
            for name in flags[:1]
        ]
    if not set(names).isdisjoint(LIVES):
        hints.append("--node-dates reads installed, entry and exit")
    said = f" ({'; '.join(hints)})" if hints else ""
    return (f"column(s) not read as node, start, end or cause: {shown}{more}{said}",)
