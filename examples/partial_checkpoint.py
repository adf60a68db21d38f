"""Partial checkpoints of a PyTorch loop: the rows that were looked up most since they were saved.

    checkpoint = PartialCheckpoint("saved", module, optimizers)
    for number, batch in enumerate(batches, 1):
        ...  # forward, backward, the steps of the optimisers
        if number % 500 == 0:  # eight sub-saves make an interval
            checkpoint.save(ends_interval=number % 4000 == 0)
    checkpoint.restore([3], n_shards=8)  # shard 3 was lost

Row i of all tables, one after the other, lies on shard i mod n, as with `cprsim.torch`. This is
`mfu` of docs/kernel.md: a sub-save writes an eighth of the rows of each table, the most frequently
used; the one that ends an interval also writes everything else. Each file is written
under another name, flushed, and renamed: a killed process leaves what was saved before. `restore`
reads all files in their order; `compact` makes one file of them. Make it after the first step, when
optimisers have their state. Rows that move without a look-up (momentum, weight decay) are missed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

FRACTION = 0.125


class PartialCheckpoint:
    """Saves and restores the Embedding and EmbeddingBag tables of a module, and its other state."""

    def __init__(self, folder: str | Path, module: Any, *optimizers: Any) -> None:
        self.folder, self.module, self.optimizers = Path(folder), module, optimizers
        self.folder.mkdir(parents=True, exist_ok=True)
        kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        tables = {name: one for name, one in module.named_modules() if isinstance(one, kinds)}
        self.tables = {name: one.weight for name, one in tables.items()}
        self.uses = {name: torch.zeros(len(one)) for name, one in self.tables.items()}
        ends = accumulate((len(one) for one in self.tables.values()), initial=0)
        self.first = dict(zip(self.tables, ends, strict=False))  # number of each table's first row
        for name, one in tables.items():
            one.register_forward_pre_hook(self._listener(name))
        if not self._files():
            self._write(self._whole())

    def _listener(self, name: str) -> Any:
        def listen(module: Any, inputs: tuple[Any, ...]) -> None:
            if module.training:
                rows = inputs[0].detach().reshape(-1).cpu()
                self.uses[name] += torch.bincount(rows, minlength=len(self.uses[name]))

        return listen

    def save(self, ends_interval: bool = True) -> None:
        """Write the rows that were used most since they were saved, and at the end all else."""
        saved = {"rows": {}, "rest": self._rest() if ends_interval else None}
        for name, uses in self.uses.items():
            n_rows = max(1, int(FRACTION * len(uses)))
            rows = torch.topk(uses, n_rows).indices
            rows = rows[uses[rows] > 0]
            saved["rows"][name] = rows, [one[rows].cpu() for one in self._parts(name)]
        self._write(saved)
        for name, (rows, _) in saved["rows"].items():
            self.uses[name][rows] = 0

    def restore(self, shards: Iterable[int], n_shards: int = 1) -> None:
        """The rows of some shards become what was last saved; with all shards all else too."""
        lost = set(shards)
        rest = None
        with torch.no_grad():
            for file in self._files():
                saved = torch.load(file, weights_only=True)
                rest = saved["rest"] or rest
                for name, (rows, parts) in saved["rows"].items():
                    shards_of = (rows + self.first[name]) % n_shards
                    ours = torch.tensor([int(one) in lost for one in shards_of], dtype=bool)
                    for live, part in zip(self._parts(name), parts, strict=True):
                        live[rows[ours]] = part[ours].to(live.device)
            if len(lost) == n_shards:
                for live, part in zip(self._rest(copy=False), rest, strict=True):
                    live.copy_(part)
        for name, uses in self.uses.items():
            first = self.first[name]
            uses[[row for row in range(len(uses)) if (row + first) % n_shards in lost]] = 0

    def compact(self) -> None:
        """Save everything as it is now, and remove the older files."""
        old = self._files()
        self._write(self._whole())
        for uses in self.uses.values():
            uses.zero_()
        for file in old:
            file.unlink()

    def _whole(self) -> dict[str, Any]:
        every = {name: torch.arange(len(one)) for name, one in self.tables.items()}
        rows = {
            name: (at, [one.cpu().clone() for one in self._parts(name)])
            for name, at in every.items()
        }
        return {"rows": rows, "rest": self._rest()}

    def _parts(self, name: str) -> list[Any]:
        """A table and what its optimiser keeps of each row, live."""
        weight = self.tables[name]
        states = [one.state[weight] for one in self.optimizers if weight in one.state]
        by_row = [
            s
            for state in states
            for s in state.values()
            if torch.is_tensor(s) and s.shape[:1] == weight.shape[:1]
        ]
        return [weight.data, *by_row]

    def _rest(self, copy: bool = True) -> list[Any]:
        """Everything that is no row."""
        rows = {id(one) for name in self.tables for one in self._parts(name)}
        tables = {id(one) for one in self.tables.values()}
        found = [p.data for p in self.module.parameters() if id(p) not in tables]
        found += self.module.buffers()
        for optimizer in self.optimizers:
            states = [s for state in optimizer.state.values() for s in state.values()]
            found += [s for s in states if torch.is_tensor(s) and id(s) not in rows]
        return [one.detach().cpu().clone() for one in found] if copy else found

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.pt"))

    def _write(self, saved: dict[str, Any]) -> None:
        last = self._files()
        number = int(last[-1].stem) + 1 if last else 0
        path = self.folder / f"{number:012d}.pt"
        with path.with_suffix(".part").open("wb") as file:
            torch.save(saved, file)
            file.flush()
            os.fsync(file.fileno())
        path.with_suffix(".part").rename(path)
