"""What the columns of a table mean: which one ends outages, which others could change the count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from shlex import quote

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, TraceError, one_line
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.log import BEGIN, END, NEITHER
from cprsim.failures.traces.spec import COLUMNS, NODE_COLUMNS, OTHERS, LogSpec
from cprsim.failures.traces.times import HOURS, read_lengths, read_times
from cprsim.records import Bools, Floats, Ints

UNKNOWN = -2  # a word of which is not known what it says

UNIT = re.compile(
    r"(?:^|[ _(\[])(ns|us|ms|s|sec|seconds|min|minutes|h|hours|d|days)[)\]]?$", re.IGNORECASE
)
UNIT_OF = {"sec": "s", "seconds": "s", "minutes": "min", "hours": "h", "days": "d"}
LENGTH = re.compile(
    r"(?:.*\.|outage[ _])?(?:duration|down[ _]?time|repair[ _]?time|elapsed)(?:[ _(\[].*)?"
)
DOWN = {
    "down", "notready", "nodenotready", "fail", "failed", "failing", "failure", "offline",
    "unreachable", "dead", "firing", "problem", "unhealthy", "unavailable", "notresponding",
    "noresponse", "crashed", "lost", "drain", "drained", "draining", "drng",
}  # fmt: skip
UP = {
    "up", "ready", "nodeready", "recovered", "recovery", "online", "reachable", "alive", "ok",
    "resolved", "repaired", "healthy", "available", "idle", "alloc", "allocated", "mix", "mixed",
    "comp", "completing", "resv", "reserved", "running", "pass", "passed", "cleared",
}  # fmt: skip
PLANNED = {
    "", "maint", "maintenance", "planned", "scheduled", "poweredoff", "powereddown", "poweroff",
    "powerdown", "poweringdown", "poweringup", "powerup",
}  # fmt: skip
OF_OUTAGES = {  # of an outage with an end, not of a node
    "resolved", "repaired", "recovered", "cleared", "closed", "open", "fixed", "done", "completed",
    "solved", "ongoing", "active", "inprogress", "new", "pending", "acknowledged", "finished", "",
}  # fmt: skip
FLAGS = {
    "1": True, "true": True, "yes": True, "y": True, "t": True, "on": True, "x": True,
    "0": False, "false": False, "no": False, "n": False, "f": False, "off": False, "": False,
}  # fmt: skip
OF_STATE = re.compile(
    r"(?:.*[._ ])?(?:state|status|health|condition|alert_?state|availability|zustand|etat|estado)"
)
PLACE = re.compile(  # in which nodes are
    r"(?:.*[._ ])?(?:rack|enclosure|chassis|cabinet|shelf|room|site|region|zone|"
    r"data ?center|dc|cluster|building)(?:[._ ]?(?:id|name|no|nr|number))?"
)
BY_NAME = {  # what no option reads
    r"(?:.*[._ ])?(?:count|occurrences|repeats?|times|num|quantity|qty|anzahl)|failures|events|"
    r"(?:n|num|no|number)[_ ](?:of[_ ])?\w+|outages|incidents": "a row may stand for several",
    r"(?:.*[._ ])?(?:nodes|hosts|machines|node_?list|host_?list)": "--column node={} reads nodes",
    r"(?:.*[._ ])?(?:age|up_?time|lifetime)(?:[ _(\[].*)?": "ages of the nodes",
    "|".join(NODE_COLUMNS): "--nodes dates reads dates of the nodes",
}
MOST_STATES = 30
FEW = 3
SAME_H = 1 / 60
YEAR_H = 8766.0
BY_CHANCE = 0.02  # rarer is no chance
MOST_SHOWN = 6


def unit_of(name: str) -> str | None:
    """The unit that a column's name ends with: downtime_s, Duration (h)."""
    match = UNIT.search(name)
    return UNIT_OF.get(match[1].lower(), match[1].lower()) if match else None


# ------------------------------------------------------------------------------------------- words


def plain(cell: object) -> str:
    """A word without capitals, blanks, signs and the decimals of a whole number."""
    text = "" if pd.isna(cell) else str(cell).casefold().strip()  # type: ignore[call-overload]
    return re.sub(r"[\W_]", "", text.removesuffix(".0"))


def meaning(cell: object, column: str, down: frozenset[str] = frozenset()) -> int:
    """What a cell says of its node: `BEGIN`, `END`, `NEITHER` or `UNKNOWN`.

    0 and 1, no and yes, by the name of their column. If `down` is given, all other words are up.
    """
    word = plain(cell)
    if down and word:
        is_planned = word in PLANNED and word not in down
        return BEGIN if word in down else NEITHER if is_planned else END
    name = re.sub(r"^(?:is|node|host|server|instance)", "", plain(column)) or plain(column)
    if word and word in FLAGS and name in DOWN | UP:
        return BEGIN if FLAGS[word] == (name in DOWN) else END
    parts = [plain(part) for part in str(cell).split("+")] if word else [""]  # IDLE+DRAIN
    for words, says in ((DOWN, BEGIN), (PLANNED, NEITHER), (UP, END)):
        if all(part in DOWN | PLANNED | UP for part in parts) and words.intersection(parts):
            return says
    return UNKNOWN


def meanings(column: pd.Series[str], spec: LogSpec) -> dict[str, int]:
    """What each distinct cell says, the most frequent first; empty where there are too many."""
    distinct = column.fillna("").value_counts().index
    down = frozenset(map(plain, spec.down_words))
    few = distinct if len(distinct) <= MOST_STATES else ()
    return {str(cell): meaning(cell, str(column.name), down) for cell in few}


def words_in(column: pd.Series[str]) -> str:
    """Distinct cells and how often each occurs."""
    n = column.fillna("empty").value_counts()
    more = f" and {len(n) - MOST_SHOWN} more" if len(n) > MOST_SHOWN else ""
    return ", ".join(f"{one_line(word)} {n[word]}" for word in n.index[:MOST_SHOWN]) + more


def states(column: pd.Series[str], spec: LogSpec, path: PathLike[str]) -> Ints:
    """What each cell says of its node, (n_rows,); raises TraceError for unknown words."""
    place, distinct = pd.factorize(column.fillna(""))
    name, down = str(column.name), frozenset(map(plain, spec.down_words))
    says = np.array([meaning(cell, name, down) for cell in distinct], dtype=np.int64)
    if (is_unknown := (says == UNKNOWN)[place]).any():
        message = (
            "it is not known whether these words say that a node is down: "
            f"{words_in(column[is_unknown])}. --down WORDS names those of the column that do "
            f"(a,b), all others then say that it is up; --ignore {name}=WORDS leaves rows out"
        )
        raise trace_error(path, None, message, name)
    return np.asarray(says[place], dtype=np.int64)


# ------------------------------------------------------------------------- which columns are read


def ends_of(table: pd.DataFrame, names: Mapping[str, str], spec: LogSpec) -> dict[str, str]:
    """The columns of lengths and of states, by our names: those declared, or recognised."""
    found = {name: names[name] for name in OTHERS if name in names}
    has_end = "end" in names or "end" in table
    used = {names.get(name, name) for name in ("node", "start", *(("end",) if has_end else ()))}
    free = [str(name) for name in table if name not in used]
    if not found and not has_end and (of := [one for one in free if LENGTH.fullmatch(one.lower())]):
        found["duration"] = of[0]
    if "state" not in found:
        has_end |= "duration" in found
        free = [one for one in free if one not in found.values()]
        of = [one for one in free if _is_state(table[one], spec)]
        if len(of) == 1 and (not has_end or spec.down_words or _tiles(table, names)):
            found["state"] = of[0]
    if spec.down_words and "state" not in found:
        message = f"no column has {spec.down!r} alone: --column state=NAME says which it is"
        raise ParameterError(f"--down: {message}")
    return found


def _is_state(column: pd.Series[str], spec: LogSpec) -> bool:
    """Whether every word of a column is known, and some say down, others up."""
    if spec.down_words:
        return set(map(plain, spec.down_words)) <= set(map(plain, meanings(column, spec)))
    return {BEGIN, END} <= (says := set(meanings(column, spec).values())) and UNKNOWN not in says


def _tiles(table: pd.DataFrame, names: Mapping[str, str]) -> bool:
    """Whether most rows begin where the row before of their node ends: spans of every state."""
    node, start, end = (table.get(names.get(name, name)) for name in ("node", "start", "end"))
    if node is None or start is None or end is None:
        return False
    ends = set(zip(node, end, strict=True))
    n_follow = sum(row in ends for row in zip(node, start, strict=True))
    return bool(2 * n_follow >= len(node) - node.nunique() > 0)


def not_read(
    table: pd.DataFrame, rows: pd.DataFrame, read: set[str], spec: LogSpec, path: PathLike[str]
) -> list[str]:
    """The columns that are not read; raises TraceError for one that could change the count.

    `rows` are what was read of the table's rows: node, start and end [h].
    """
    unread = [str(name) for name in table if name not in read]
    unread = [name for name in unread if not re.fullmatch(r"Unnamed: \d+|", name)]
    found = {name: why for name in unread if (why := _could_count(table[name], rows, spec))}
    if unread and not found and "state" not in rows and _is_grid(rows):
        message = (
            "each node has a row at each instant: samples are no failures. --column state=NAME"
        )
        which = f"is the column that says which are, of {', '.join(unread[:MOST_SHOWN])}"
        raise trace_error(path, 1, f"{message} {which}", "state")
    if found:
        listed = "; ".join(f"{one_line(name)!r} ({why})" for name, why in found.items())
        message = (
            f"not read, but could change the count: {listed}. --ignore NAME leaves a column out, "
            "--ignore NAME=WORDS the rows with these words"
        )
        raise trace_error(path, 1, message, "columns")
    return [one_line(name) for name in unread]


def _is_grid(rows: pd.DataFrame) -> bool:
    """Whether each of some nodes has a row at each of some instants, and none an end."""
    n_nodes, n_starts = rows["node"].nunique(), rows["start"].nunique()
    is_grid = min(n_nodes, n_starts) >= FEW and n_nodes * n_starts == len(rows)
    return bool(is_grid and rows.index.is_unique and rows["end"].isna().all())


def _could_count(column: pd.Series[str], rows: pd.DataFrame, spec: LogSpec) -> str:
    """What a column could mean for the number or the length of outages, and what reads it."""
    name, low = quote(str(column.name)), str(column.name).strip().lower()
    is_filled = column.notna().to_numpy()
    filled, of_filled = column[is_filled].astype(str).str.strip(), rows[is_filled]
    if filled.empty:
        return ""
    differs = _changes(column, rows)
    if PLACE.fullmatch(low) and differs.any():
        node = spec.names.get("node", "node")
        return f"differs within one node: --column {quote(f'node={column.name}+{node}')}"
    for pattern, why in BY_NAME.items():
        if re.fullmatch(pattern, low) and (filled != "1").any():
            return why.format(name)
    if filled.str.contains(r"\w\[\d+[-,\d]*\]").any():
        return f"--column node={name} reads nodes"
    is_open = bool(rows["end"].isna().all())
    is_of_file = not is_open and filled.nunique() == 1
    if (at_h := _instants_h(filled, of_filled, spec)) is not None:
        if len(differs) >= FEW and not (differs.any() or is_of_file):
            return f"a date of each node: --column installed={name} --nodes dates"
        late = at_h > of_filled["end"].fillna(of_filled["start"]).to_numpy() + SAME_H
        is_end = is_open or (late.any() and not is_of_file)
        return f"instants: --column end={name}" if is_end else ""
    lasted_h = (of_filled["end"] - of_filled["start"]).to_numpy()
    if (are_right := _are_lengths(filled, lasted_h, spec)) is not None:
        return "" if are_right else f"lengths: --column duration={name}"
    if _could_be_states(column, rows, differs, spec):
        return f"{words_in(column)}: --column state={name}"
    return ""


def _changes(column: pd.Series[str], rows: pd.DataFrame) -> Bools:
    """Whether the cell differs from that of the row before of the same node, by time."""
    order = np.lexsort((rows["start"].to_numpy(), pd.factorize(rows["node"])[0]))
    node, cell = (np.asarray(pd.factorize(one)[0])[order] for one in (rows["node"], column))
    return np.asarray((cell[1:] != cell[:-1])[node[1:] == node[:-1]], dtype=bool)


def _instants_h(filled: pd.Series[str], rows: pd.DataFrame, spec: LogSpec) -> Floats | None:
    """The cells as instants; None where they are none."""
    try:
        read_times(filled.iloc[:FEW], None, Path(), None, spec.date_format, spec.tz)
        times = read_times(filled, None, Path(), None, spec.date_format, spec.tz)
    except TraceError:
        return None
    is_near = np.abs(times.hours - rows["start"].to_numpy()).max() < YEAR_H
    return times.hours if times.dated or is_near else None  # else it is a number of an item


def _are_lengths(filled: pd.Series[str], lasted_h: Floats, spec: LogSpec) -> bool | None:
    """Whether the cells are how long the outages last that have ends; None: they are no lengths."""
    is_named, known = LENGTH.fullmatch(str(filled.name).lower()), ~np.isnan(lasted_h)
    units = [unit_of(str(filled.name)) or spec.time_unit] if is_named else []
    result = False if is_named else None
    for unit in units if any(units) else [None, *(HOURS if is_named else ())]:
        with suppress(TraceError):
            read_lengths(filled.iloc[:FEW], unit, Path())
            off_h = np.abs(read_lengths(filled, unit, Path()) - lasted_h)[known]
            if len(off_h) and (off_h <= 1 / 60 + 0.01 * lasted_h[known]).all():
                return True
            result = False
    return result


def _could_be_states(
    column: pd.Series[str], rows: pd.DataFrame, differs: Bools, spec: LogSpec
) -> bool:
    """Whether the cells could be states of nodes, or say which rows are failures."""
    says = meanings(column, spec)
    words = set(map(plain, says)) - {""}
    has_end = bool(rows["end"].notna().any())
    if not says or (has_end and words <= OF_OUTAGES):
        return False
    of_word = rows.get("state", rows["start"]).groupby(column.fillna("").to_numpy()).nunique()
    if "state" in rows and (of_word == 1).all():
        return False  # it says no more than the column of states
    known = {said for word, said in says.items() if plain(word)}
    is_change = len(words) == 2 and BEGIN in known and len(differs) > 0 and differs.all()
    if END in known or {BEGIN, NEITHER} <= known or is_change:
        return 2 * column.notna().sum() >= len(column)
    if len(says) == 1 or (len(differs) >= FEW and not differs.any()):
        return False
    share = column.fillna("").value_counts(normalize=True).to_numpy()
    by_chance = (1 - (share**2).sum()) ** len(differs)  # that no two in a row are alike
    return bool(
        (OF_STATE.fullmatch(str(column.name).lower()) and UNKNOWN in known)
        or words <= FLAGS.keys()
        or (differs.all() and by_chance < BY_CHANCE and (not has_end or _tiles(rows, {})))
    )


def how_read(
    names: Mapping[str, str], found: Mapping[str, str], has_end: bool, said: Mapping[str, int]
) -> str:
    """What each row is, in a sentence."""
    column = {name: one_line(names.get(name, name)) for name in COLUMNS} | dict(found)
    until = f" to {column['end']!r}" if has_end else ""
    if "duration" in found:
        until = f", lasting {found['duration']!r}"
    if "state" in found:
        of = {
            way: [one_line(word) for word in sorted(said) if said[word] == says]
            for says, way in ((BEGIN, "down"), (END, "up"), (NEITHER, "left out"))
        }
        words = "; ".join(f"{way}: {', '.join(of[way])}" for way in of if of[way])
        what = f"a state of {column['node']!r} from {column['start']!r}{until or ' on'}"
        return f"each row: {what}, by {found['state']!r} ({words})"
    what = f"an outage of {column['node']!r} from {column['start']!r}{until}"
    if not until:
        what = f"a failure of {column['node']!r} at {column['start']!r}, without an end"
    return f"each row: {what}"
