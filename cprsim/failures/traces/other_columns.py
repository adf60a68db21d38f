"""What a table says beside node, start, end and cause: how long outages took, states, the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from cprsim.failures.traces.reading import often_called
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
    text = re.sub(r"[^a-z0-9]", "", str(cell).lower())
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
    if not set(names).isdisjoint(LIVES):
        hints.append("--node-dates reads installed, entry and exit")
    said = f" ({'; '.join(hints)})" if hints else ""
    return (f"column(s) not read as node, start, end or cause: {shown}{more}{said}",)
