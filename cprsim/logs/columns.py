"""Meanings of a table's columns: which one ends outages, which others could change the count."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from shlex import quote

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, TraceError, one_line
from cprsim.failures.outages import PLANNED_WORK
from cprsim.job.records import Ints
from cprsim.logs.files import trace_error
from cprsim.logs.reading import header_line, named_columns
from cprsim.logs.slurm import SACCT
from cprsim.logs.spec import LOG_COLUMNS, NODE_COLUMNS, UNKNOWN_WORDS, LogSpec
from cprsim.logs.states import BEGIN, END, NEITHER
from cprsim.logs.times import read_lengths, read_times

UNKNOWN_STATE = -2  # a word of which is not known what it says

UNIT = re.compile(r"(?:^|[ _(\[])(ns|us|ms|s|min|h|d)(?:ec|econd|ute|r|our|ay)?s?[)\]]?$", re.I)
LENGTH_COLUMN = re.compile(
    r"(?:.*\.|outage[ _])?(?:duration|down[ _]?time|repair[ _]?time|elapsed)(?:[ _(\[].*)?"
)
BETWEEN = re.compile(r"interval|between|uptime|(?:time[ _]?to[ _]?|t[tb])f", re.IGNORECASE)
DOWN = {
    "down", "notready", "nodenotready", "fail", "failed", "failing", "failure", "offline",
    "unreachable", "dead", "firing", "problem", "unhealthy", "unavailable", "notresponding",
    "noresponse", "crashed", "lost", "drain", "drained", "draining", "drng",
}  # fmt: skip
UP = {
    "up", "ready", "nodeready", "online", "reachable", "alive", "ok", "healthy", "available",
    "recovery", "idle", "alloc", "allocated", "mix", "mixed", "comp", "completing", "resv",
    "reserved", "running", "pass", "passed", "plnd",
}  # fmt: skip
MAINT = {"maint", "maintenance"}
PLANNED = MAINT | {
    "", "planned", "scheduled", "poweredoff", "powereddown", "poweroff", "powerdown",
    "poweringdown", "poweringup", "powerup",
}  # fmt: skip
TIME_OF_DAY = r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?"
OF_SLURM = {"idle", "alloc", "allocated", "mix", "mixed"}
OVER = {"resolved", "repaired", "recovered", "cleared"}  # of a node, or an outage
OF_JOBS = {"completed", "failed", "cancelled", "timeout", "outofmemory", "preempted"}
JOB_COLUMN = re.compile(r"(?:job|task|run|trial|worker|submission|pod)[ _]?(?:id|name)?", re.I)
FLAGS = {
    "1": True, "true": True, "yes": True, "y": True, "t": True, "on": True, "x": True,
    "0": False, "false": False, "no": False, "n": False, "f": False, "off": False, "": False,
}  # fmt: skip
MOST_STATES = 30
NEARLY_ALL, FEW, SURELY = 0.9, 3, 7
FAILURE_COUNTS = re.compile(  # names of columns that say how many failures a row stands for
    r"(?:n|num|fail\w*|event|error)?[ _]?(?:count|failures|events|anzahl)", re.I
)
WITH_DIGITS = r"\S*\d\S*"
STATE_SIGNS = re.compile("[+,]")  # of a state: IDLE+DRAIN of Slurm, offline,down of PBS
MOST_LISTED = 6


def unit_of(name: str) -> str | None:
    """The unit that a column's name ends with: downtime_s, Duration (h)."""
    match = UNIT.search(name)
    return match[1].lower() if match else None


# ------------------------------------------------------------------------------------------- words


def plain(cell: object) -> str:
    """A word without capitals, blanks, signs and the decimals of a whole number."""
    text = "" if pd.isna(cell) else str(cell).casefold().strip()  # type: ignore[call-overload]
    return re.sub(r"[\W_]", "", text.removesuffix(".0"))


def signed(word: str) -> str:
    """A word of ``--down``: with signs it means itself alone, such as idle*; else all its forms."""
    text = word.casefold().strip().removesuffix(".0")
    return plain(text) if re.fullmatch(r"[^\W_]+(?: [^\W_]+)*", text) else text


def forms_of(cell: object) -> set[str]:
    """The forms in which ``--down`` may name the word of a cell, or one of several: IDLE+DRAIN."""
    whole = str(cell).casefold().strip().removesuffix(".0")
    return {form for part in (whole, *STATE_SIGNS.split(whole)) for form in (plain(part), part)}


def meaning(cell: object, column: str, down: frozenset[str] = frozenset()) -> int:
    """Return the meaning of a cell for its node: `BEGIN`, `END`, `NEITHER` or `UNKNOWN_STATE`.

    The column's name decides on 0 and 1, no and yes. If `down` is given, all other words are up.
    """
    word, text = plain(cell), str(cell).strip()
    if down and text:
        is_none = word in PLANNED if word else text in UNKNOWN_WORDS  # not a sign, such as +
        return BEGIN if not down.isdisjoint(forms_of(cell)) else NEITHER if is_none else END
    name = re.sub(r"^(?:is|node|host|server|instance)", "", plain(column)) or plain(column)
    if word and word in FLAGS and name in DOWN | UP:
        return BEGIN if FLAGS[word] == (name in DOWN) else END
    split = STATE_SIGNS.split(re.sub(r"\$$", "+maint", text))  # $: Slurm reserves it for that
    parts = [part for part in map(plain, split) if part not in ("", "planned")] or [""]
    for words, says in ((MAINT, NEITHER), (DOWN, BEGIN), (PLANNED, NEITHER), (UP | OVER, END)):
        if all(part in DOWN | PLANNED | UP | OVER for part in parts) and words.intersection(parts):
            return UNKNOWN_STATE if says == END and text.endswith("*") else says  # of Slurm
    return UNKNOWN_STATE


def meanings(column: pd.Series[str], spec: LogSpec) -> dict[str, int]:
    """Return the meaning of each distinct cell; planned in a column of Slurm is a job's: up."""
    down, cells = frozenset(map(signed, spec.down_words)), list(column.fillna("").unique())
    says = {cell: meaning(cell, str(column.name), down) for cell in cells}
    if not OF_SLURM.isdisjoint(map(plain, cells)):
        says |= {cell: END for cell in cells if plain(cell) == "planned" and says[cell] == NEITHER}
    return says


def words_in(column: pd.Series[str]) -> str:
    """Distinct cells and how often each occurs."""
    n = column.fillna("empty").value_counts()
    more = f" and {len(n) - MOST_LISTED} more" if len(n) > MOST_LISTED else ""
    return ", ".join(f"{one_line(word)} {n[word]}" for word in n.index[:MOST_LISTED]) + more


def is_free(text: pd.Series[str]) -> bool:
    """Whether it is another text in nearly each row: a comment, a ticket."""
    return text.nunique() >= NEARLY_ALL * len(text)


def with_words(table: pd.DataFrame) -> list[str]:
    """Names of columns, with the words of those that have few."""
    words = {str(name): "" if is_free(of) else f" ({words_in(of)})" for name, of in table.items()}
    return [one_line(name) + words[name] for name in words]


def states(column: pd.Series[str], says: Mapping[str, int], path: PathLike[str]) -> Ints:
    """Return each cell's meaning for its node, (n_rows,); raises TraceError for unknown words."""
    state = np.asarray(column.fillna("").map(says), dtype=np.int64)
    if (is_unknown := state == UNKNOWN_STATE).any():
        name = str(column.name)
        message = (
            "it is not known whether these words say that a node is down: "
            f"{words_in(column[is_unknown])}. --down WORDS names those that do (a,b), all others "
            f"then say that it is up; --ignore {name}=WORDS leaves rows out"
        )
        raise trace_error(path, None, message, name)
    return state


# ------------------------------------------------------------------------- which columns are read


def columns_of(table: pd.DataFrame, spec: LogSpec, path: PathLike[str]) -> dict[str, str]:
    """The columns of a table by our names: those declared, those of our names, or recognised."""
    out = {*NODE_COLUMNS, *(ours for ours, of in spec.names.items() if of in spec.ignored)}
    declared = {ours: of for ours, of in spec.names.items() if ours not in out}
    state = declared.pop("state", None)  # which may be the column of causes too
    if spec.nodes_file and declared.get("node") not in table and "node" in table:
        declared.pop("node", None)  # of the table of nodes
    found = {ours: declared.get(ours, ours) for ours in (*LOG_COLUMNS, "duration")}
    named_columns(table, declared, path, tuple(found), {"end", "cause", "duration"})
    named_columns(table, {}, path, () if state is None else (state,), ())
    found = {ours: name for ours, name in found.items() if name in table}
    free = [str(name) for name in table if name not in {*found.values()} - {found.get("cause")}]
    lengths = [name for name in free if LENGTH_COLUMN.fullmatch(name.lower())]
    if "duration" not in found and len(lengths) == 1:
        found["duration"] = lengths[0]
    but = OVER if found.keys() & {"end", "duration"} else set()
    of_state = [name for name in free if name not in lengths and _is_state(table[name], spec, but)]
    if state is not None or len(of_state) == 1:
        found["state"] = of_state[0] if state is None else state
    if spec.down_words and "state" not in found:
        message = f"no column has {spec.down!r} alone: --column state=NAME says which it is"
        raise ParameterError(message, option="--down")
    if {"state", "duration"} <= found.keys() and "end" not in found:
        one, other = (quote(found[ours]) for ours in ("state", "duration"))
        message = "both say when an outage ends: --ignore leaves one out"
        raise trace_error(path, header_line(table), message, f"{one}, {other}")
    return found


def _is_state(column: pd.Series[str], spec: LogSpec, but: set[str]) -> bool:
    """Whether every word of a column is known, and some say down, others up, `but` these."""
    if column.nunique() > MOST_STATES:
        return False
    says = {plain(cell): says for cell, says in meanings(column, spec).items()}
    if spec.down_words:
        cells = set[str]().union(*map(forms_of, column.dropna().unique()))
        return set(map(signed, spec.down_words)) <= cells
    known = {says[word] for word in says.keys() - but}
    return {BEGIN, END} <= known and UNKNOWN_STATE not in known


def require_no_jobs(table: pd.DataFrame, path: PathLike[str], spec: LogSpec) -> None:
    """Raise TraceError for a table of jobs: how long they ran is no length of an outage."""
    for name in (name for name in table if name != spec.names.get("node")):
        words = {plain(word) for word in table[name].unique()[:MOST_STATES]}
        is_id = JOB_COLUMN.fullmatch(str(name)) and len(table) > FEW and table[name].is_unique
        if is_id or "nodefail" in words or len(words & OF_JOBS) > 1:
            shown = "" if is_id else f" ({words_in(table[name])})"
            message = (
                f"each row is a job{shown}, whose length is no outage's: write them with {SACCT}, "
                "or a table with node and start, the ends of the jobs that a node took down; if "
                f"each row is an outage, --ignore {quote(str(name))}"
            )
            raise trace_error(path, header_line(table), message, str(name))


def not_read(
    table: pd.DataFrame, rows: pd.DataFrame, read: set[str], spec: LogSpec, path: PathLike[str]
) -> list[str]:
    """Columns that are not read, with their only cell; refuses those that could change the count.

    `rows` are the table's rows as read: node, start and end [h].
    """
    unread = [str(name) for name in table if name not in read]
    unread = [name for name in unread if not re.fullmatch(r"Unnamed: \d+|", name)]
    found = {name: why for name in unread if (why := _could_count(table[name], rows, spec))}
    turns = [] if "state" in rows or rows["end"].notna().any() else _turns(table, rows, spec)
    for name in turns:
        way = f"{words_in(table[name])}: --column state={quote(name)} --down WORDS, or where two "
        way += f"sources tell each failure, --ignore {quote(name)}=WORDS of one"
        way = way if table[name].nunique() <= MOST_STATES else "write a column of such words"
        found[name] = f"words that take turns, as where nodes go down and up: {way}"
    if found:
        listed = "; ".join(f"{one_line(name)!r} ({why})" for name, why in found.items())
        message = f"not read, but could change the count: {listed}."
        if ignore := [f"--ignore {quote(name)}" for name in found if name not in turns]:
            message += f" {' '.join(ignore)} leaves out what does not matter, "
            message += "--ignore NAME=WORDS rows with these words"
        raise trace_error(path, header_line(table), message, "columns")
    begins = table[np.asarray(rows["state"] == BEGIN)] if "state" in rows else table
    return with_words(begins[unread])


def _turns(table: pd.DataFrame, rows: pd.DataFrame, spec: LogSpec) -> list[str]:
    """Columns whose words take turns for each node, which a part of its name may not tell."""
    found, parts = list[str](), spec.names.get("node", "").split("+")
    for name in map(str, table):
        others = [part for part in parts if part != name] if name in parts[1:] + parts[:-1] else []
        node = table[others].fillna("").agg("/".join, axis=1) if others else rows["node"]
        if _take_turns(table[name], rows.assign(node=node.to_numpy())):
            found.append(name)
    return found


def _take_turns(column: pd.Series[str], rows: pd.DataFrame) -> bool:
    """Whether two texts, but for numbers and names, take turns in the rows of nearly each node.

    Or whether one hardly ever follows itself, though by chance it would.
    """
    words = column.fillna("").astype(str)
    if words.nunique() > 2 or words.str.contains(":").any():  # else they may be 0 and 1
        words = words.str.replace(WITH_DIGITS, "", regex=True)
    of = rows[["node", "start"]].assign(words=words.to_numpy())
    of = of.sort_values(["node", "start"], kind="stable")
    one, two = (of[["node", "words"]].shift(n) for n in (1, 2))
    pairs = of.assign(before=one["words"])[of["node"] == one["node"]]
    itself = (pairs["words"] == pairs["before"]).groupby(pairs["words"].to_numpy())
    returns = (of["words"] == two["words"])[of["node"] == two["node"]]
    n, n_itself = itself.size(), itself.sum()
    by_chance = n**2 / n.sum()
    is_rare = (by_chance > SURELY) & (n_itself <= (1 - NEARLY_ALL) * by_chance)
    changes = 1 - n_itself.sum() / max(n.sum(), 1)
    return bool(is_rare.any() or (len(returns) > FEW and min(changes, returns.mean()) > NEARLY_ALL))


def _could_count(column: pd.Series[str], rows: pd.DataFrame, spec: LogSpec) -> str:
    """What reads a column that could change the number or the length of outages; else nothing.

    It can't if it is the same in all rows, or of each node, or if it is another text in nearly
    each row, or a number that counts them; nor if it says no more than the column of states.
    """
    name, text = quote(str(column.name)), column.fillna("").astype(str).str.strip()
    if FAILURE_COUNTS.fullmatch(str(column.name)) and text.str.match(r"[2-9]|1\d").any():
        return f"{words_in(column)}: write a row for each failure"
    begins = column[np.asarray(rows["state"] == BEGIN)] if "state" in rows else column
    cells: Collection[str] = () if is_free(begins) else begins.dropna().unique()
    flagged = {cell: f"{name} {cell}" if FLAGS.get(plain(cell)) else cell for cell in cells}
    if planned := [cell for cell in cells if re.search(PLANNED_WORK, flagged[cell])]:
        way = quote(f"{column.name}={','.join(planned)}")
        return f"{words_in(begins)}: planned work is no failure, --ignore {way} leaves it out"
    if text.nunique() == 1:
        says = NEITHER if plain(text.iloc[0]) in OVER else meaning(text.iloc[0], name)
        if "state" in rows:
            return ""
        if says == BEGIN and rows["end"].isna().all():
            return f"{words_in(column)}, which nothing ends; see --coalesce, if rows repeat it"
        return f"{words_in(column)}: --column state={name}" if says == END else ""
    filled = text[text != ""]
    if len(filled) and filled.str.fullmatch(TIME_OF_DAY).all():
        start = quote(f"start={spec.names.get('start', 'start').partition('+')[0]}+{column.name}")
        return f"times of the day: --column {start}, end=DATE+{name} or duration={name}"
    is_time = filled.str.contains(r"(?<!\d)\d\d?:\d\d").all() or column.name in NODE_COLUMNS
    if is_time or is_read(read_times, filled, None, Path(), None, spec.date_format, spec.tz):
        return f"instants: --column end={name}, or installed={name} or exit={name} --nodes dates"
    of_each = text.groupby(rows["node"].to_numpy(), observed=True).nunique()
    is_flag = set(map(plain, text.unique()[:MOST_STATES])) <= FLAGS.keys()
    if len(of_each) < len(rows) and (of_each == 1).all() and not is_flag:
        return ""
    if "state" in rows and (rows["state"].groupby(text.to_numpy()).nunique() == 1).all():
        return ""
    is_number = is_read(read_lengths, filled, "h", Path())  # or a length of time
    counts_rows = text.str.isdigit().all() and text.astype(float).diff().iloc[1:].gt(0).all()
    if filled.str.contains("Xid (", regex=False).any():
        return "Xids, of which most lose no node: write the lines of the kernel's log instead"
    if counts_rows if is_number else is_free(filled):
        kinds = filled.str.replace(WITH_DIGITS, "", regex=True).str.strip()
        has_kinds = 1 < kinds.nunique() <= MOST_LISTED and kinds.value_counts().min() > FEW
        return f"{words_in(kinds)}, but for numbers" if has_kinds else ""
    node = quote(f"node={column.name}+{spec.names.get('node', 'node')}")
    ours = f"state={name}, cause={name}, {f'duration={name}, ' if is_number else ''}{node}"
    counts = "; if it counts failures, a row for each" * bool(text.str.isdigit().all())
    counts = "; if 1 is a failure, --down 1" if set(text) == {"0", "1"} else counts
    return f"{words_in(column)}: --column {ours}{counts}"


def is_read(read: Callable[..., object], cells: pd.Series[str], *options: object) -> bool:
    """Whether all cells are such times."""
    with suppress(TraceError):
        read(cells.iloc[:3], *options)
        read(cells, *options)
        return True
    return False


def how_read(columns: Mapping[str, str], said: Mapping[str, int]) -> str:
    """Return the interpretation of each row, in a sentence."""
    column = {ours: repr(one_line(name)) for ours, name in columns.items()}
    until = f" to {column['end']}" if "end" in columns else ""
    if "duration" in columns and not until:
        until = f", lasting {column['duration']}"
    if "state" in columns:
        of = {
            way: [one_line(word) for word in sorted(said) if said[word] == says]
            for says, way in ((BEGIN, "down"), (END, "up"), (NEITHER, "left out"))
        }
        words = "; ".join(f"{way}: {', '.join(of[way])}" for way in of if of[way])
        what = f"a state of {column['node']} from {column['start']}{until or ' on'}"
        return f"each row: {what}, by {column['state']} ({words})"
    if until:
        return f"each row: an outage of {column['node']} from {column['start']}{until}"
    return f"each row: a failure of {column['node']} at {column['start']}, without an end"
