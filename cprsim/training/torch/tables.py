"""The embedding tables of a module: their rows, optimiser state, and look-ups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from cprsim.errors import ParameterError
from cprsim.job.records import Ints
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.trackers import ABSENT

# of optimisers that leave rows without a gradient as they are, unless one of these is not 0
LEAVES_ROWS_STILL = {
    "SGD": ("momentum", "weight_decay"),
    "Adagrad": ("weight_decay",),
    "RowWiseAdagrad": (),
    "SparseAdam": (),
}


class EmbeddingTable:
    """The rows of one Embedding or EmbeddingBag, and their part of the optimiser's state."""

    def __init__(self, name: str, module: Any, optimizers: Sequence[Any]) -> None:
        self.name, self.weight = name, module.weight
        self.n_rows = int(module.weight.shape[0])
        # the optimiser that moves it, and the options by which it does; None if none does
        self.owner, self.options = owner_of(module.weight, optimizers)

    @property
    def parts(self) -> list[Any]:
        """Live tensors (n_rows, ...): the weights, then each state that has a value per row."""
        return [self.weight.data, *self.states(by_row=True)]

    def states(self, by_row: bool) -> list[Any]:
        """Of the optimiser, with a value per row or, such as a number of steps, without."""
        states = {} if self.owner is None else self.owner.state.get(self.weight, {})
        tensors = (states[key] for key in sorted(states) if isinstance(states[key], torch.Tensor))
        return [t for t in tensors if (t.shape[:1] == self.weight.shape[:1]) == by_row]

    def get_rows(self, rows: Ints) -> list[Array]:
        """Copies on the host."""
        at = torch.as_tensor(np.asarray(rows, np.int64), device=self.weight.device)
        return [part.index_select(0, at).cpu().numpy() for part in self.parts]

    def set_rows(self, rows: Ints, parts: Sequence[Array]) -> None:
        at = torch.as_tensor(np.asarray(rows, np.int64), device=self.weight.device)
        with torch.no_grad():
            for part, values in zip(self.parts, parts, strict=True):
                new = torch.as_tensor(np.ascontiguousarray(values), dtype=part.dtype)
                part.index_copy_(0, at, new.to(part.device))

    @property
    def moves_only_accessed(self) -> bool:
        """Whether a step leaves rows without a gradient as they are; False where unknown."""
        if self.owner is None:
            return True
        kind = type(self.owner).__name__
        if kind not in LEAVES_ROWS_STILL:
            return False
        return not any(self.options.get(key) for key in LEAVES_ROWS_STILL[kind])


def owner_of(parameter: Any, optimizers: Sequence[Any]) -> tuple[Any, Any]:
    """The optimiser of a parameter, and its group of parameters; None where it is not trained."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            if any(p is parameter for p in group["params"]):
                return optimizer, group
    return None, None


def embeddings_of(module: Any) -> Iterator[tuple[str, Any]]:
    """(name, module) of each Embedding and EmbeddingBag."""
    for name, submodule in module.named_modules():
        if isinstance(submodule, torch.nn.Embedding | torch.nn.EmbeddingBag):
            yield name or "embedding", submodule


def tables_of(module: Any, optimizers: Sequence[Any]) -> dict[str, EmbeddingTable]:
    """The tables of a module by name; modules that share a weight are one table."""
    tables: dict[int, EmbeddingTable] = {}
    for name, embedding in embeddings_of(module):
        tables.setdefault(id(embedding.weight), EmbeddingTable(name, embedding, optimizers))
    if not tables:
        raise ParameterError(
            "the module has no Embedding or EmbeddingBag (TorchRec's count before they are "
            "sharded): no shard could be lost"
        )
    return {table.name: table for table in tables.values()}


def make_states(module: Any, optimizers: Sequence[Any]) -> None:
    """Let optimisers make the state that they would make at their first step.

    A plain number of steps becomes a tensor, so that it is copied and put back with the others.
    """
    if any(g.get("momentum") and g.get("dampening") for o in optimizers for g in o.param_groups):
        raise ParameterError("SGD with dampening keeps nothing before its first step")
    sparse = {id(embedding.weight) for _, embedding in embeddings_of(module) if embedding.sparse}
    for optimizer in optimizers:
        every = [p for group in optimizer.param_groups for p in group["params"]]
        new = [p for p in every if p.requires_grad and not optimizer.state.get(p)]
        optimizer.zero_grad()
        values = [p.detach().clone() for p in new]
        for p in new:
            p.grad = _no_gradient(p, id(p) in sparse)
        if new:
            optimizer.step()
        with torch.no_grad():
            for p, value in zip(new, values, strict=True):
                p.copy_(value)
                for key, state in optimizer.state.get(p, {}).items():
                    if isinstance(state, torch.Tensor):
                        state.zero_()
                    elif isinstance(state, int | float) and key == "step":  # SparseAdam's
                        optimizer.state[p][key] = torch.zeros((), dtype=torch.float64)
        optimizer.zero_grad()


def _no_gradient(parameter: Any, sparse: bool) -> Any:
    if not sparse:
        return torch.zeros_like(parameter)
    indices = torch.zeros((1, 0), dtype=torch.long, device=parameter.device)
    values = torch.zeros((0, *parameter.shape[1:]), dtype=parameter.dtype, device=parameter.device)
    return torch.sparse_coo_tensor(indices, values, parameter.shape, check_invariants=True)


class Accesses:
    """Listens to a module's embeddings: which rows each sample of a batch looks up.

    Look-ups in evaluation mode are not counted. Inputs are taken to have the samples first; if an
    embedding is called with other inputs, its rows are still noted, and only the sample of each
    look-up is guessed.
    """

    def __init__(self, module: Any, tables: Mapping[str, EmbeddingTable]) -> None:
        self._seen: dict[str, list[Any]] = {}
        self.listens = False
        names = {id(table.weight): name for name, table in tables.items()}
        self._hooks = [
            embedding.register_forward_pre_hook(
                partial(self._note, names[id(embedding.weight)]), with_kwargs=True
            )
            for _, embedding in embeddings_of(module)
        ]

    def _note(self, name: str, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.listens and module.training:
            self._seen.setdefault(name, []).append(_looked_up(module, args, kwargs))

    def take(self, n: int) -> dict[str, Array]:
        """(n, k) rows of each table that a batch of n samples looked up; forgotten afterwards."""
        by_table, self._seen = self._seen, {}
        return {
            name: np.concatenate([_by_sample(rows, n) for rows in calls], axis=1)
            for name, calls in by_table.items()
        }

    def remove(self) -> None:
        """Remove the hooks from the embeddings."""
        for hook in self._hooks:
            hook.remove()


def _looked_up(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Array:
    """Rows (n, k), `ABSENT` in place of none."""
    inputs = dict(zip(("input", "offsets"), args, strict=False)) | kwargs
    rows = inputs["input"].detach().cpu().numpy()
    if module.padding_idx is not None:
        rows = np.where(rows == module.padding_idx, ABSENT, rows)
    offsets = inputs.get("offsets")
    if isinstance(module, torch.nn.EmbeddingBag) and offsets is not None:
        starts = offsets.detach().cpu().numpy()
        return _bags(rows, starts[:-1] if module.include_last_offset else starts)
    shape = (len(rows), -1) if rows.ndim and len(rows) else (-1, 1)
    return np.asarray(rows.reshape(shape))


def _bags(rows: Array, starts: Array) -> Array:
    """Bags of a flat list, filled up to the longest."""
    lengths = np.diff(np.append(starts, len(rows)))
    filled = np.full((len(starts), max(int(lengths.max(initial=0)), 1)), ABSENT, np.int64)
    bag = np.repeat(np.arange(len(starts)), lengths)
    filled[bag, np.arange(len(rows)) - np.repeat(starts, lengths)] = rows
    return filled


def _by_sample(rows: Array, n: int) -> Array:
    """The same (n, k), also where they came in another shape."""
    if len(rows) == n:
        return rows
    flat = rows.ravel()
    filled = np.full((n, max(-(-len(flat) // n), 1)), ABSENT, np.int64)
    filled.ravel()[: len(flat)] = flat
    return filled


class TrainedModule:
    """A module and its optimisers: rows of its tables, the rest as bytes, who looks rows up."""

    def __init__(self, module: Any, optimizers: Any) -> None:
        self.module = module
        self.optimizers = list(optimizers) if isinstance(optimizers, Sequence) else [optimizers]
        make_states(module, self.optimizers)
        self.tables = tables_of(module, self.optimizers)
        self.accesses = Accesses(module, self.tables)

    @property
    def moves_only_accessed(self) -> bool:
        """Whether no optimiser moves rows that a batch does not look up."""
        return all(table.moves_only_accessed for table in self.tables.values())

    def dense(self) -> list[Any]:
        """Live tensors of everything but rows: parameters, buffers, optimiser state."""
        rows = {id(table.weight) for table in self.tables.values()}
        tensors = [p.data for p in self.module.parameters() if id(p) not in rows]
        tensors += list(self.module.buffers())
        for optimizer in self.optimizers:
            for p in (p for group in optimizer.param_groups for p in group["params"]):
                if id(p) not in rows:
                    states = optimizer.state.get(p, {}).values()
                    tensors += [state for state in states if isinstance(state, torch.Tensor)]
        return tensors + [s for table in self.tables.values() for s in table.states(by_row=False)]

    def get_dense(self) -> bytes:
        """The bytes of all dense tensors, one after the other."""
        return b"".join(
            tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            for tensor in self.dense()
        )

    def set_dense(self, blob: bytes) -> None:
        """Restore a copied dense state; the learning rate stays as it is."""
        tensors, at = self.dense(), 0
        if len(blob) != sum(tensor.nbytes for tensor in tensors):
            raise ParameterError(f"{len(blob)} bytes are not those of the model's dense state")
        with torch.no_grad():
            for tensor in tensors:
                if tensor.nbytes:
                    raw = bytearray(blob[at : at + tensor.nbytes])
                    tensor.copy_(torch.frombuffer(raw, dtype=tensor.dtype).view(tensor.shape))
                at += tensor.nbytes
