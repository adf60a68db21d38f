"""Partial checkpoints of a training loop of one's own: the rows that matter most, first.

    base-N   every row and the dense state; supersedes all files with lower numbers
    rows-N   rows that moved since they were saved last, chosen by a tracker; the dense state where
             the save ends its interval

Each file ends in its SHA-256, is written under another name, flushed, and renamed: a killed process
leaves what was saved before. A restore reads the newest base and what was saved after it, in order.
Rows are those of this process's tables; several processes need a folder each.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.errors import CheckpointError
from cprsim.kernel.array_file import read_arrays, write_arrays
from cprsim.kernel.loops import Array
from cprsim.kernel.saving import Priorities, changed_rows
from cprsim.kernel.shards import Shards
from cprsim.kernel.trials import sub_saves_of
from cprsim.kernel.weights import Parcel
from cprsim.measuring.plugged import CopiedTable, TableRows, split_by_table
from cprsim.records import Bools, Ints, ShardBy
from cprsim.torch.following import Followed

SUFFIX = ".cpr"
BASE, ROWS = "base", "rows"
AT_ONCE = 1 << 20  # rows written or read at once
COMPACT_AT = 2.0  # bytes since the base over those of the base, beyond which a new base is written


@dataclass(frozen=True, slots=True)
class RestoredShards:
    """What a restore did."""

    n_rows: int  # that were read
    dense: bool  # whether the dense state went back too
    damaged: tuple[str, ...]  # files that were passed over, and why


class PriorityCheckpoint:
    """Saves and restores the tables of a module in a training loop.

    Call `step` after each step of the optimisers and `save` when a save is due: 1 / fraction times
    per interval, the last time with `ends_interval`. What was saved before is in the folder, from
    the first moment on: where it is empty, everything is saved.

    Parameters
    ----------
    folder : of the files; made where it is not there
    module, optimizers : what is trained
    strategy : partial (whole saves), mfu, ssu, scar or round-robin; with a `+` the small tables go
        out with every sub-save. SCAR keeps a copy of the tables in memory.
    n_shards : embedding servers that the rows are dealt out to
    shard_by : rows (row i on shard i mod n), or tables
    fraction : share of the rows of a large table that a sub-save may write
    n_large_tables : tables that a tracker watches, the largest; others are saved whole

    Raises
    ------
    ParameterError : an unknown strategy, a module without tables
    CheckpointError : the folder holds files of other tables
    """

    def __init__(
        self,
        folder: Path | str,
        module: Any,
        optimizers: Any,
        *,
        strategy: str = "mfu",
        n_shards: int = 1,
        shard_by: str = "rows",
        fraction: float = 0.125,
        n_large_tables: int = 7,
        seed: int = 0,
    ) -> None:
        self.folder = Path(folder)
        self.followed = Followed(module, optimizers, seed)
        self.shards = Shards(self.followed.layout, n_shards, ShardBy(shard_by))
        sub_saves = sub_saves_of(strategy)
        self.sub_saves = sub_saves and replace(
            sub_saves, fraction=fraction, n_large_tables=n_large_tables
        )
        self._copies = self._copied() if strategy.startswith("scar") else None
        self._priorities = self._prioritise()
        self.bytes_written = 0
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(f".*{SUFFIX}*"):  # of a process that was killed
            left.unlink()
        if not self._numbers(BASE):
            self.save_all()

    def _copied(self) -> TableRows:
        """SCAR's copy of the vectors as last saved."""
        pool = self.followed.weights.pool
        tables = self.followed.tables.values()
        vectors = [CopiedTable(CopiedTable.of(one, pool).parts[:1]) for one in tables]
        return TableRows(self.followed.layout, vectors)

    def _prioritise(self) -> Priorities:
        live = self.followed.weights.table
        chosen = Priorities(
            self.shards, self.sub_saves, live, self._copies or live, self.followed.seed
        )
        self.followed.observe = chosen.observe
        return chosen

    def step(self, n: int) -> None:
        """A step on n samples has been made."""
        self.followed.step(n)

    # ------------------------------------------------------------------ saving

    def save(self, ends_interval: bool = True) -> int:
        """Write what is due; returns the bytes written.

        Raises CheckpointError where that fails: then nothing counts as saved that was not before.
        """
        parts = self._priorities.parts(ends_interval)
        moved = (changed_rows(self.followed.changed, part) for part in parts)
        rows = np.concatenate([np.zeros(0, np.int64), *moved])
        arrays: dict[str, Array] = {"rows": rows}
        parcel = self.followed.weights.read(rows)
        arrays |= {f"parcel/{i}": np.ascontiguousarray(part) for i, part in enumerate(parcel)}
        if ends_interval:
            arrays["dense"] = np.frombuffer(self.followed.get_dense(), np.uint8)
        try:
            n_bytes = self._write(ROWS, arrays)
        except CheckpointError:
            self._priorities.abandoned()
            raise
        self.followed.changed[rows] = 0
        if self._copies is not None:
            self._copies.write(rows, self._vectors_of(rows, parcel))
        self._priorities.committed()
        if self._grown():
            self.compact()
        return n_bytes

    def _vectors_of(self, rows: Ints, parcel: Parcel) -> Parcel:
        """What a parcel holds of each table's vectors, which come first of its parts."""
        tables = list(self.followed.tables.values())
        n_parts = [
            len(tables[number].parts) for number, *_ in split_by_table(self.followed.layout, rows)
        ]
        return tuple(parcel[i] for i in np.cumsum([0, *n_parts])[:-1])

    def save_all(self) -> int:
        """Write every row and the dense state, as a new base; returns the bytes written."""
        arrays: dict[str, Array] = {"dense": np.frombuffer(self.followed.get_dense(), np.uint8)}
        for number, table in enumerate(self.followed.tables.values()):
            for i, part in enumerate(table.parts):
                arrays[f"{number}/{i}"] = part.detach().cpu().contiguous().numpy()
        n_bytes = self._write(BASE, arrays)
        self.followed.changed[:] = 0
        if self._copies is not None:
            self._copies = self._copied()
            self._priorities = self._prioritise()
        self._remove_superseded()
        return n_bytes

    def compact(self) -> None:
        """A new base of what is saved; takes memory for one copy of the tables.

        Where a save since the last base is damaged, every row is saved as it is now.

        Raises CheckpointError where the last base is damaged, or of other tables.
        """
        base = self._read(self._path(BASE, self._numbers(BASE)[-1]))
        arrays = {name: np.array(one) for name, one in base.items()}
        try:
            for path in self._since_base():
                self._into(arrays, self._read(path))
        except CheckpointError as error:
            warnings.warn(f"{error}; every row is saved anew", stacklevel=3)
            self.save_all()
            return
        self._write(BASE, arrays)
        self._remove_superseded()

    def _into(self, arrays: dict[str, Array], saved: dict[str, Array]) -> None:
        """What a save holds, put into arrays of a base."""
        rows = np.asarray(saved["rows"])
        parts = [saved[f"parcel/{i}"] for i in range(len(saved)) if f"parcel/{i}" in saved]
        for number, _, ours in split_by_table(self.followed.layout, rows):
            i = 0
            while f"{number}/{i}" in arrays:
                arrays[f"{number}/{i}"][ours] = parts.pop(0)
                i += 1
        if "dense" in saved:
            arrays["dense"] = np.array(saved["dense"])

    def _grown(self) -> bool:
        base = self._path(BASE, self._numbers(BASE)[-1]).stat().st_size
        return sum(path.stat().st_size for path in self._since_base()) > COMPACT_AT * base

    # ------------------------------------------------------------------ restoring

    def restore(self, shards: Iterable[int]) -> RestoredShards:
        """The rows of some shards become what was last saved of them.

        Where these are all shards the dense state goes back too. A damaged file is passed over and
        named; what it held is older then.

        Raises CheckpointError where the base is damaged, ParameterError for a shard that is none.
        """
        lost = sorted(set(shards))
        wanted = np.zeros(self.followed.layout.n_rows, bool)
        for segment in self.shards.of_servers(lost):
            wanted[segment.rows] = True
        every = len(lost) == self.shards.n_servers
        base = self._read(self._path(BASE, self._numbers(BASE)[-1]))
        n_rows, dense = self._restore_base(base, lost), base["dense"]
        damaged = []
        for path in self._since_base():
            try:
                saved = self._read(path)
            except CheckpointError as error:
                damaged.append(str(error))
                continue
            n_rows += self._restore_rows(saved, wanted)
            dense = saved.get("dense", dense)
        if every:
            self.followed.set_dense(np.asarray(dense).tobytes())
        self.followed.changed[wanted] = 0
        self._priorities.forget(lost)
        return RestoredShards(n_rows, every, tuple(damaged))

    def restore_all(self) -> RestoredShards:
        """Everything becomes what was last saved of it: a new process goes on."""
        return self.restore(range(self.shards.n_servers))

    def _restore_base(self, base: dict[str, Array], lost: list[int]) -> int:
        n_rows, tables = 0, list(self.followed.tables.values())
        every = len(lost) == self.shards.n_servers
        layout = self.followed.layout
        parts = [(t, layout.of(t)) for t in range(layout.n_tables)]
        if not every:
            parts = [(one.table, one.rows) for one in self.shards.of_servers(lost)]
        for number, rows in parts:
            first = layout.of(number).start
            stored = [base[f"{number}/{i}"] for i in range(len(tables[number].parts))]
            step = rows.step or 1
            for start in range(rows.start - first, rows.stop - first, AT_ONCE * step):
                stop = min(start + AT_ONCE * step, rows.stop - first)
                some = slice(start, stop, step)
                tables[number].set_slice(some, [part[some] for part in stored])
            n_rows += len(range(rows.start, rows.stop, step))
        return n_rows

    def _restore_rows(self, saved: dict[str, Array], wanted: Bools) -> int:
        rows = np.asarray(saved["rows"])
        parts = [saved[f"parcel/{i}"] for i in range(len(saved)) if f"parcel/{i}" in saved]
        tables = list(self.followed.tables.values())
        for number, at, ours in split_by_table(self.followed.layout, rows):
            n_parts = len(tables[number].parts)
            of_table, parts = parts[:n_parts], parts[n_parts:]
            some = np.flatnonzero(wanted[rows[at]])
            tables[number].set_rows(ours[some], [np.asarray(part[some]) for part in of_table])
        return int(wanted[rows].sum())

    # ------------------------------------------------------------------ files

    def _identity(self) -> dict[str, Any]:
        return {
            "tables": {
                name: [[list(part.shape), str(part.dtype)] for part in table.parts]
                for name, table in self.followed.tables.items()
            }
        }

    def _write(self, kind: str, arrays: dict[str, Array]) -> int:
        number = max([-1, *self._numbers(BASE), *self._numbers(ROWS)]) + 1
        path = self._path(kind, number)
        try:
            write_arrays(path, number, arrays, self._identity())
        except OSError as error:
            message = f"{path} can't be written: {error.strerror or error}"
            raise CheckpointError(message) from error
        n_bytes = path.stat().st_size
        self.bytes_written += n_bytes
        return n_bytes

    def _read(self, path: Path) -> dict[str, Array]:
        return read_arrays(path, self._identity())

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number:012d}{SUFFIX}"

    def _numbers(self, kind: str) -> list[int]:
        names = (path.name for path in self.folder.glob(f"{kind}-*{SUFFIX}"))
        return sorted(int(name[len(kind) + 1 : -len(SUFFIX)]) for name in names)

    def _since_base(self) -> list[Path]:
        base = self._numbers(BASE)[-1]
        return [self._path(ROWS, number) for number in self._numbers(ROWS) if number > base]

    def _remove_superseded(self) -> None:
        newest = self._numbers(BASE)[-1]
        for kind in (ROWS, BASE):
            for number in self._numbers(kind):
                if number < newest:
                    self._path(kind, number).unlink()
