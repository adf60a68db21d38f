"""Content of a failure log: which node was down from when to when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, expm1, inf, lgamma, log, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.records import Bools, Floats, Ints

ROUNDING_H = 1e-8  # 36 us: what a start and a length since 1970, added up, may be off

RARE = 1e-3  # a probability
MUCH, FEW_FAILURES = 0.1, 2  # of the rows or failures: without more the answer is another
AGAIN_H = 1.0  # failures of one node within this may be repeats
PLANNED_WORK = (  # words of what is no failure
    r"(?i:(?<!un)(?:planned|scheduled|geplant)|maint(?!ain)|wartung|計画(?!外)|メンテ|decommis|"
    r"(?<!failed )upgrad(?!\w*\W+(?:has |had )?(?:fail|crash|error))|"
    r"scal(?:e|ed|ing)[ _-]?(?:in|down)\b)"
)

Kind = Literal["dropped", "merged", "assumed", "inferred", "read_as", "no_failure"]
Counted = Counter[tuple[Kind, str]]
"""How often a reader had to decide something: by kind and words."""
OF_ROWS = ("dropped", "merged", "no_failure")  # kinds of notes that count rows of the log


class Note(NamedTuple):
    """A decision or finding of the reader of a log."""

    kind: Kind
    n: int | None  # how often; rows of the log, where the kind is one of `OF_ROWS`
    words: str  # "row(s)" agrees with n

    def __str__(self) -> str:
        if self.n is None:
            return self.words
        return f"{self.n} {self.words.replace('(s)', '' if self.n == 1 else 's')}"


def n_rows(notes: Iterable[Note], *kinds: str) -> int:
    """Rows of the log that notes of these kinds count."""
    return sum(note.n or 0 for note in notes if note.kind in (kinds or OF_ROWS))


def notes_of(counted: Mapping[tuple[Any, str], int]) -> tuple[Note, ...]:
    """What occurred, as notes."""
    return tuple(Note(kind, n, words) for (kind, words), n in counted.items() if n)


def next_failure_h(node: Ints, start_h: Floats) -> Floats:
    """When the node of each outage fails next, later than at its start [h], (n,); inf if never."""
    order = np.lexsort((start_h, node))
    by_node, by_start_h = node[order], start_h[order]
    new_node = np.diff(by_node) != 0
    last_of_instant = np.append(new_node | (np.diff(by_start_h) > 0), True)
    lasts = np.flatnonzero(last_of_instant)
    follows_h = np.append(np.where(new_node, inf, by_start_h[1:]), inf)[lasts]
    next_h = np.empty(len(node))
    next_h[order] = np.repeat(follows_h, np.diff(lasts, prepend=-1))
    return next_h


def with_ends(rows: Outages, unended_h: float | None, seen_open: Bools | None) -> Outages:
    """Give every outage an end; a node's next failure closes an outage at the latest.

    Those `seen_open` (n_outages,) were under way when the log ended, if no failure of the node
    follows. How many ends are none of the log's is noted.
    """
    if rows.ended.all():
        return rows
    none, next_h = ~rows.ended, next_failure_h(rows.node, rows.start_h)
    if unended_h is None:
        closed = none & (next_h <= rows.window_h)
        under_way = none & ~closed & (False if seen_open is None else seen_open)
        until_h = np.where(closed, next_h, np.maximum(rows.window_h, rows.start_h))
        guessed = none & ~under_way
        how_many = {
            "closed by the next failure of the node": closed,
            "still under way at the end of the observation": under_way,
            "taken to last to the end of the observation: their repairs are not fitted":
                guessed & ~closed,
        }  # fmt: skip
    else:
        until_h, guessed = np.minimum(rows.start_h + unended_h, next_h), none
        how = f"taken to last {unended_h:.6g} h" if unended_h > 0 else "taken as points in time"
        cut = none & (next_h < rows.start_h + unended_h)
        how_many = {how: none, "of these cut at the node's next failure": cut}
    assumed = {
        ("assumed", f"outage(s) without an end, {how}"): int(which.sum())
        for how, which in how_many.items()
    }
    end_h = np.where(none, until_h, rows.end_h)
    return replace(rows, end_h=end_h, guessed=guessed, notes=(*rows.notes, *notes_of(assumed)))


# ------------------------------------------------------------------------------------------ the log


@dataclass(frozen=True, slots=True)
class Outages:
    """Outages of the nodes of a real cluster, sorted by (start, node).

    Those of a node do not overlap, nor begin together: a node that is down can't fail.
    Time 0 is the start of the observation, which ends at `window_h`. An outage that was under way
    at 0 has a negative start: it is no failure within the window, but its node was down.
    """

    node: Ints  # (n_outages,) number of the node, from 0
    start_h: Floats  # (n_outages,)
    end_h: Floats  # (n_outages,) maybe after window_h; equal to it where the node was still down
    ended: Bools  # (n_outages,) False where no end was seen
    guessed: Bools  # (n_outages,) True where the log has no end and `end_h` stands for it
    cause_code: Ints  # (n_outages,) place in `cause_names`
    chosen: Bools  # (n_outages,) whether it is of the cause that is asked about; the others compete
    placed: Bools  # (n_outages,) False where one of several nodes failed: `node` is any of them
    cause_names: tuple[str, ...]
    n_nodes: int  # observed, also those that never failed
    window_h: float
    origin: str  # what time 0 is, as the log writes it
    node_names: tuple[str, ...] = ()  # of those that the log names
    notes: tuple[Note, ...] = ()
    n_read: int = 0  # rows of the log, which outages and notes account for
    window_given: tuple[bool, bool] = (False, False)  # begin and end said, not taken from the log
    lives: Lives | None = None  # of nodes that join and leave
    unseen_h: float = 0.0  # node-hours in which nobody looked
    # n_nodes, begins, ends, ages: given, read or inferred, and how
    facts: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def n_outages(self) -> int:
        return len(self.node)

    @property
    def node_hours(self) -> float:
        """Hours that all nodes were watched together [h], down ones included."""
        if self.lives is None:
            return self.n_nodes * self.window_h - self.unseen_h
        return float((self.lives[2] - self.lives[1]).sum()) - self.unseen_h

    @property
    def cause(self) -> tuple[str, ...]:
        """The cause of each outage, (n_outages,); empty where the log names none."""
        return tuple(self.cause_names[code] for code in self.cause_code.tolist())

    @property
    def down_h(self) -> Floats:
        """Length of each outage [h], (n_outages,)."""
        return self.end_h - self.start_h

    @property
    def in_window(self) -> Bools:
        """Which outages began within the observation, (n_outages,)."""
        return self.start_h >= 0

    @property
    def dropped(self) -> list[str]:
        """The notes that say what of the log does not count: left out, not read, or merged."""
        return [str(note) for note in self.notes if note.kind in OF_ROWS]

    @property
    def balance(self) -> dict[str, int]:
        """Rows read, and their numbers by outcome, which sum to the rows read.

        Raises RuntimeError where they do not, which is an error of a reader.
        """
        became = {
            "outages": self.n_outages,
            "merged": n_rows(self.notes, "merged"),
            "no_failures": n_rows(self.notes, "no_failure"),
            "left_out": n_rows(self.notes, "dropped"),
        }
        if sum(became.values()) != self.n_read:
            raise RuntimeError(f"{self.n_read} rows were read, which became {became}")
        return {"read": self.n_read, **became}

    @property
    def failed_at_h(self) -> Floats:
        """When the chosen ones began within the observation [h], (n_failures,) in order."""
        failures = self.in_window & self.chosen
        return self.start_h if failures.all() else self.start_h[failures]

    def where(self, mask: Bools) -> Outages:
        """Those outages that `mask` (n_outages,) keeps; nodes and window stay as they are."""
        return self if mask.all() else self._rows(np.flatnonzero(mask))

    def in_order(self) -> Outages:
        """By start and node."""
        before = np.diff(self.start_h) < 0
        before |= (np.diff(self.start_h) == 0) & (np.diff(self.node) < 0)
        return self._rows(np.lexsort((self.node, self.start_h))) if before.any() else self

    def _rows(self, index: Ints) -> Outages:
        """The outages of these numbers, in this order."""
        return replace(self, **{name: getattr(self, name)[index] for name in _COLUMNS})

    def of_node(self, name: str) -> Outages:
        """The outages of one node alone."""
        if name not in self.node_names:
            raise ParameterError(f"the log names no node {name!r}")
        place = self.node_names.index(name)
        chosen = self.where(self.node == place)
        row = slice(place, place + 1)
        n_others = self.n_outages - chosen.n_outages
        return replace(
            chosen,
            node=np.zeros_like(chosen.node),
            n_nodes=1,
            unseen_h=self.unseen_h / self.n_nodes,
            node_names=(name,),
            lives=self.lives and (self.lives[0][row], self.lives[1][row], self.lives[2][row]),
            notes=(*self.notes, *notes_of({("no_failure", "outage(s) of other nodes"): n_others})),
        )

    def choosing(self, text: str, but: str | None = None) -> Outages:
        """All outages, those `chosen` whose cause contains a text and not another, in any case."""
        names = [name.lower() for name in self.cause_names]
        has_but, has_text = (
            np.array([word is not None and word.lower() in name for name in names], dtype=bool)
            for word in (but, text)
        )
        out = has_but[self.cause_code]
        chosen = has_text[self.cause_code] & ~out & self.chosen
        codes = np.unique(self.cause_code).tolist()
        causes = ", ".join(sorted({self.cause_names[code] for code in codes} - {""})[:12]) or "none"
        if but is not None and not out.any():
            raise ParameterError(f"no outage has a cause with {but!r}; there are: {causes}")
        if not (chosen & self.in_window).any():
            criterion = f"with {text!r}" if text else "but that"
            raise ParameterError(f"no outage has a cause {criterion}; there are: {causes}")
        if but is None:
            return replace(self, chosen=chosen)
        words = f"outage(s) of a cause with {but!r} counted as none, but ending up-times"
        note = Note("assumed", int(out.sum()), words)
        return replace(self, chosen=chosen, notes=(*self.notes, note))

    def merged(self, within_h: float | None = None) -> Outages:
        """Overlapping outages of a node made one, as a node that is down can't fail.

        Outages without length are kept; an outage that begins where another of the same node
        begins, or before that one ends, joins it, and the first one's cause holds for both (of
        those that begin together a chosen one's). Where none overlap, these outages themselves.

        With `within_h`, so does one that begins no later than that after the end of another, or
        after its start where the log gives no end.
        """
        order = by_node(self)
        node, start_h = self.node[order], self.start_h[order]
        new_node, later = node[1:] != node[:-1], start_h[1:] > start_h[:-1]
        if not (new_node | later).all():  # some of a node begin together
            order = np.lexsort((self.end_h, ~self.chosen, self.start_h, self.node))
        up_to_h = _running_end(node, self.end_h[order])
        begins = np.ones(len(order), dtype=bool)
        apart_h = start_h[1:] - up_to_h[:-1]
        if within_h is not None:
            known_h = np.where(self.guessed[order], start_h, self.end_h[order])
            apart_h = start_h[1:] - _running_end(node, known_h)[:-1]
        begins[1:] = apart_h >= -ROUNDING_H if within_h is None else apart_h > within_h
        begins[1:] = new_node | (begins[1:] & later)
        if begins.all():
            return self
        firsts = np.flatnonzero(begins)
        first_rows = order[firsts]
        end_h, ended, guessed = self.end_h.copy(), self.ended.copy(), self.guessed.copy()
        end_h[first_rows] = up_to_h[np.append(firsts[1:], self.n_outages) - 1]
        ended[first_rows] = np.logical_and.reduceat(self.ended[order], firsts)
        guessed[first_rows] = np.logical_or.reduceat(self.guessed[order], firsts)
        del order, up_to_h, firsts, node, start_h, apart_h, begins, new_node, later  # they are long
        merged = replace(self, end_h=end_h, ended=ended, guessed=guessed)
        return merged._rows(np.sort(first_rows))  # by start and node, as they were


_COLUMNS = ("node", "start_h", "end_h", "ended", "guessed", "cause_code", "chosen", "placed")


def outages_of(
    node: Ints, start_h: Floats, end_h: Floats, cause: Sequence[str] | Ints, *,
    unended_h: float | None = None, seen_open: Bools | None = None, planned: Bools | None = None,
    placed: Bools | None = None, **observed: Any,
) -> Outages:  # fmt: skip
    """Outages from columns in any order: those that touch the window ``[0, window_h]``.

    Rows of a node that overlap, or begin together, are one outage (`Outages.merged`). Causes are
    texts, or places in `cause_names`. Those `planned` (n,) are no failures, but end up-times.
    `observed` are the other fields of `Outages`.
    """
    code, n = np.asarray(cause), len(node)
    if "cause_names" not in observed:
        names, code = np.unique(np.asarray(cause, dtype=object), return_inverse=True)
        observed["cause_names"] = tuple(names.tolist())
    rows = Outages(
        node=node, start_h=start_h, end_h=end_h, ended=~np.isnan(end_h),
        guessed=np.zeros(n, dtype=bool), cause_code=code,
        chosen=np.ones(n, dtype=bool) if planned is None else ~planned,
        placed=np.ones(n, dtype=bool) if placed is None else placed, **{"n_read": n, **observed},
    )  # fmt: skip
    rows = with_ends(rows, unended_h, seen_open)
    del node, start_h, end_h, cause, code  # they are long
    inside = (rows.start_h <= rows.window_h) & ((rows.start_h >= 0) | (rows.end_h > 0))
    n_outside = int((~inside).sum())
    rows = rows.where(inside).in_order()
    outages = rows.merged()
    down_already = "outage(s) of nodes that were down already, merged into the outage under way"
    if unended_h == 0:
        down_already = "failure(s) at one instant with another of the same node, taken for it"
    counted = {("dropped", "outage(s) outside the observation left out"): n_outside,
               ("merged", down_already): rows.n_outages - outages.n_outages}  # fmt: skip
    return replace(outages, notes=(*outages.notes, *notes_of(counted)))


def by_node(outages: Outages) -> Ints:
    """Their order by node and start, (n_outages,); they are sorted by start."""
    small = outages.n_nodes <= np.iinfo(np.uint16).max  # numbers of 16 bits sort much faster
    return np.argsort(outages.node.astype(np.uint16) if small else outages.node, kind="stable")


def coalesced(outages: Outages, within_h: float) -> Outages:
    """Failures of one node that follow each other within a window, made one.

    An outage (or an instant) that begins no later than `within_h` after the end of its node's
    previous one joins that; so do later ones. The start and the cause are those of the first, the
    end is the last. The number of merged outages is noted.
    """
    merged = outages.merged(within_h)
    n_merged = outages.n_outages - merged.n_outages
    words = f"failure(s) within {within_h:.4g} h of one of the same node merged into it"
    return replace(merged, notes=(*outages.notes, Note("merged", n_merged, words)))


def n_repeats(outages: Outages) -> int:
    """How many are within an hour of another of the same node; 0 where these are few."""
    n_again = outages.n_outages - outages.merged(AGAIN_H).n_outages
    return n_again if n_again > max(MUCH * outages.n_outages, FEW_FAILURES) else 0


def brought_together(outages: Outages, within_h: float) -> Outages:
    """Move failures within a window of the one before to the start of the first of their chain.

    Functions that look for simultaneous failures then find nearly simultaneous ones, in chains.
    """
    start_h = outages.start_h
    near = np.append(False, np.diff(start_h) <= within_h)[: len(start_h)] & (start_h >= 0)
    first = np.maximum.accumulate(np.where(near, 0, np.arange(len(near))))
    n_moved = int((start_h > start_h[first]).sum())
    words = f"failure(s) within {within_h:.4g} h of the one before taken as one event with it"
    note = Note("assumed", n_moved, words)
    moved = replace(outages, start_h=start_h[first], notes=(*outages.notes, note))
    together = moved.in_order().merged()
    same = "of these on a node that failed already: one failure of it"
    merged = notes_of({("merged", same): moved.n_outages - together.n_outages})
    return replace(together, notes=(*moved.notes, *merged))


def spread(outages: Outages, over_h: float, most: float = inf) -> Outages:
    """Outages that begin at one instant, which is known to an hour, a day or so, spread over it.

    In equal parts, and no further than until their node leaves; lengths stay, and so do more than
    `most` at one instant.
    """
    start_h = np.round(outages.start_h, 3)
    _, group, n = np.unique(start_h, return_inverse=True, return_counts=True)
    place = np.arange(len(group)) - (np.cumsum(n) - n)[group]  # they are sorted by start
    later_h = np.where(n[group] > most, 0.0, over_h * place / n[group])
    leaves_h = outages.window_h if outages.lives is None else outages.lives[2][outages.node]
    later_h = np.where(outages.start_h + later_h < leaves_h, later_h, 0.0)
    moved = replace(
        outages, start_h=outages.start_h + later_h,
        end_h=np.where(outages.ended, outages.end_h + later_h, outages.end_h),
    ).in_order()  # fmt: skip
    end_h = np.minimum(moved.end_h, next_failure_h(moved.node, moved.start_h))
    n_moved = int((later_h > 0).sum())
    if most < inf and not n_moved:
        return outages
    how = f", {Note('dropped', n_moved, 'outage(s)')} spread over that" if n_moved else ""
    note = Note("dropped", None, f"begins are known to {over_h:g} h alone{how}")
    return replace(moved, end_h=np.maximum(end_h, moved.start_h), notes=(*outages.notes, note))


def most_by_chance(start_h: Floats, over_h: float, window_h: float) -> float:
    """Most failures that begin at one instant by chance, if that is known to `over_h` [h] alone.

    0 if more than those few do not fail together, yet more instants are shared than by chance.
    """
    sizes = np.unique(start_h, return_counts=True)[1]
    n_cells = max(window_h / over_h, len(sizes))
    mean, most = len(start_h) / n_cells, 1
    while n_cells * exp(most * log(mean) - mean - lgamma(most + 1)) > RARE or most < mean:
        most += 1
    sizes = sizes[sizes <= most]
    n = int(sizes.sum())
    n_shared = n + n_cells * expm1(-n / n_cells)  # expected, in cells that others have
    return most if n - len(sizes) <= 1.5 * n_shared + 3 * sqrt(n_shared) else 0


def _running_end(node: Ints, end_h: Floats) -> Floats:
    """Until when each node is down, outage after outage, (n,); `node` is sorted.

    Each step looks back twice as far; where one changes nothing, none that follows does.
    """
    up_to_h, back = end_h.copy(), 1
    while back < len(node):
        longer = (node[back:] == node[:-back]) & (up_to_h[:-back] > up_to_h[back:])
        if not longer.any():
            break
        up_to_h[back:][longer] = up_to_h[:-back][longer]
        back *= 2
    return up_to_h


# ------------------------------------------------------------------------ nodes that join and leave


Lives = tuple[Floats, Floats, Floats]
"""When each node's age was 0, from when on it was watched, and until when [h], (n_nodes,) each.

On the clock of the log (0 is where the observation begins). One that was installed earlier is of
age 0 before 0; none is watched before its age is 0.
"""


def with_lives(outages: Outages, names: tuple[str, ...], lives: Lives) -> Outages:
    """The log of these nodes, each watched while it was there.

    Nodes that the log does not name count too: they never failed. Outages that began before their
    node entered or after it left are left out and counted; so are nodes that were not there within
    the observation.
    """
    born_h, enters_h, exit_h = lives
    enters_h = np.maximum(enters_h, 0.0)
    leaves_h = np.minimum(exit_h, outages.window_h)
    number = {name: place for place, name in enumerate(names)}
    if unknown := [name for name in outages.node_names if name not in number]:
        raise ParameterError(
            f"the log names node {unknown[0]!r} (and {len(unknown) - 1} more), of which the list "
            "of nodes says nothing"
        )
    place = np.array([number[name] for name in outages.node_names], dtype=np.int64)
    node = place[outages.node] if outages.n_outages else outages.node
    # a failure at a node's exit took it out: the node was there until just after
    out = node[(outages.start_h == exit_h[node]) & (outages.start_h >= 0)]
    leaves_h[out] = np.nextafter(leaves_h[out], inf)
    observed = enters_h < leaves_h
    if not observed.any():
        raise ParameterError("no node was there within the observation: are both on one clock?")
    present = observed[node] & (outages.start_h < leaves_h[node])
    present &= (outages.start_h >= enters_h[node]) | (outages.start_h < 0)
    # a node that left while it was down was down until then, at least
    end_h = np.where(outages.ended, outages.end_h, np.minimum(outages.end_h, leaves_h[node]))
    inside = replace(outages, node=node, end_h=np.maximum(end_h, outages.start_h)).where(present)
    shift = np.cumsum(observed) - 1
    n_late = int((enters_h[observed] > 0).sum())
    n_early = int((leaves_h < outages.window_h)[observed].sum())
    joined = f"node(s) joined after the observation began, {n_early} left before its end"
    while_absent = "outage(s) left out that began while their node was not there"
    absent = "node(s) left out that were not there within the observation"
    counted = {("dropped", while_absent): int((~present).sum()),
               ("assumed", absent): int((~observed).sum())}  # fmt: skip
    return replace(
        inside,
        node=shift[inside.node],
        n_nodes=int(observed.sum()),
        window_h=float(leaves_h[observed].max()),  # nothing is watched once all have left
        node_names=tuple(np.array(names, dtype=object)[observed].tolist()),
        lives=(born_h[observed], enters_h[observed], leaves_h[observed]),
        notes=(*outages.notes, Note("assumed", n_late, joined), *notes_of(counted)),
    ).in_order()
