"""A PyTorch model as a trainer that can be failed: see `cprsim.measuring.protocol`."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from cprsim.errors import ParameterError
from cprsim.measuring.protocol import Note, Predictions
from cprsim.torch.batches import DataLoaderBatches, Epochs, digest_of
from cprsim.torch.tables import Accesses, EmbeddingTable, make_states, tables_of


class Trainer:
    """A module, its optimisers and its batches.

    Parameters
    ----------
    module : has at least one Embedding or EmbeddingBag, which are its tables
    optimizers : one, or several that share the parameters between them
    batches : a sequence of batches (`TensorBatches`, a list), or a DataLoader of a map-style
        dataset
    loss : of the module and a batch: the mean loss that a step goes down
    evaluate : of the module: predictions on the evaluation set, or its `auc` and `log_loss`
    epochs : passes over the batches
    seed : of the order in which a DataLoader that shuffles gives its samples
    schedulers : stepped after each batch
    deterministic : ask PyTorch for algorithms that repeat, and use one thread

    Raises
    ------
    ParameterError : no table; batches that can't be taken up in their middle
    """

    def __init__(
        self,
        module: Any,
        optimizers: Any,
        batches: Any,
        loss: Callable[[Any, Any], Any],
        evaluate: Callable[[Any], Predictions | Mapping[str, float]],
        *,
        epochs: int = 1,
        seed: int = 0,
        schedulers: Iterable[Any] = (),
        deterministic: bool = True,
    ) -> None:
        if deterministic:
            _repeat()
        self.module, self._loss, self._evaluate = module, loss, evaluate
        self.optimizers = list(optimizers) if isinstance(optimizers, Sequence) else [optimizers]
        self.schedulers = list(schedulers)
        self.batches = _batches(batches, seed, epochs)
        self._ends = np.concatenate([[0], np.cumsum(self.batches.sizes)])
        make_states(module, self.optimizers)
        self.tables: dict[str, EmbeddingTable] = tables_of(module, self.optimizers)
        self._accesses = Accesses(module, self.tables)
        self._data = getattr(self.batches, "batches", self.batches)

    @property
    def n_samples(self) -> int:
        """Samples in the whole run."""
        return int(self._ends[-1])

    @property
    def moves_only_accessed(self) -> bool:
        """Whether no optimiser moves rows that a batch does not look up."""
        return all(table.moves_only_accessed for table in self.tables.values())

    def on_grid(self, samples: float) -> int:
        """The end of a batch that is nearest to a number of samples."""
        return int(self._ends[np.abs(self._ends - samples).argmin()])

    def train(self, first: int, last: int, note: Note) -> None:
        """Train on the batches from sample `first` to `last`.

        Raises ParameterError where the loss is no longer finite, or a position is off the grid.
        """
        start, stop = (int(np.searchsorted(self._ends, at)) for at in (first, last))
        if self._ends[start] != first or self._ends[stop] != last:
            raise ParameterError(f"samples {first} to {last} are no whole batches")
        self.module.train()
        for number in range(start, stop):
            self._accesses.listens = True
            loss = self._step(self.batches[number])
            self._accesses.listens = False
            note(self._accesses.take(int(self.batches.sizes[number])))
            if not np.isfinite(loss):
                raise ParameterError(f"training diverged in batch {number}: the loss is {loss}")

    def _step(self, batch: Any) -> float:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss = self._loss(self.module, batch)
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        for scheduler in self.schedulers:
            scheduler.step()
        return float(loss.detach())

    def evaluate(self) -> Predictions | Mapping[str, float]:
        """What the user's function says, the module in evaluation mode and without gradients."""
        self.module.eval()
        with torch.no_grad():
            found = self._evaluate(self.module)
        self.module.train()
        return found

    # ------------------------------------------------------------------ state

    def _dense(self) -> list[Any]:
        return dense_tensors(self.module, self.optimizers, self.tables)

    def get_dense(self) -> bytes:
        """The bytes of all dense tensors, one after the other."""
        return dense_bytes(self._dense())

    def set_dense(self, blob: bytes) -> None:
        """The same back; the learning rate goes on where it is."""
        write_dense(self._dense(), blob)

    def state(self) -> dict[str, Any]:
        """Weights, optimisers, schedulers and random numbers, copied to the host."""
        tables = [part for table in self.tables.values() for part in table.parts]
        return {
            "tensors": [_to_host(one) for one in (*tables, *self._dense())],
            "groups": [_options(optimizer) for optimizer in self.optimizers],
            "schedulers": [deepcopy(one.state_dict()) for one in self.schedulers],
            "random": (random.getstate(), np.random.get_state(), torch.get_rng_state()),  # noqa: NPY002
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """What the trainer was then."""
        tables = [part for table in self.tables.values() for part in table.parts]
        with torch.no_grad():
            for ours, theirs in zip((*tables, *self._dense()), state["tensors"], strict=True):
                ours.copy_(theirs)
        for optimizer, groups in zip(self.optimizers, state["groups"], strict=True):
            for ours, theirs in zip(optimizer.param_groups, groups, strict=True):
                ours.update(deepcopy(theirs))
        for scheduler, theirs in zip(self.schedulers, state["schedulers"], strict=True):
            scheduler.load_state_dict(deepcopy(theirs))
        python, numpy, default = state["random"]
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(default)
        if state["cuda"] is not None:
            torch.cuda.set_rng_state_all(state["cuda"])

    def describe(self) -> dict[str, Any]:
        """Versions, optimisers, size, and a digest of the batches."""
        device = next(iter(self.tables.values())).weight.device
        return {
            "framework": "torch",
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "optimizers": [type(one).__name__ for one in self.optimizers],
            "tables": {name: list(table.weight.shape) for name, table in self.tables.items()},
            "n_dense": sum(one.numel() for one in self._dense()),
            "n_samples": self.n_samples,
            "data": digest_of(self._data),
        }


def dense_tensors(
    module: Any, optimizers: Sequence[Any], tables: Mapping[str, EmbeddingTable]
) -> list[Any]:
    """Live tensors of everything but rows: parameters, buffers, optimiser state."""
    rows = {id(table.weight) for table in tables.values()}
    found = [p.data for p in module.parameters() if id(p) not in rows]
    found += list(module.buffers())
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for p in group["params"]:
                if id(p) not in rows:
                    states = optimizer.state.get(p, {})
                    found += [s for s in states.values() if isinstance(s, torch.Tensor)]
    return found + [rest for table in tables.values() for rest in table.rest]


def dense_bytes(tensors: Sequence[Any]) -> bytes:
    """Their bytes, one after the other."""
    return b"".join(
        one.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        for one in tensors
    )


def write_dense(tensors: Sequence[Any], blob: bytes) -> None:
    """The tensors become what their bytes say. Raises ParameterError for bytes of others."""
    if len(blob) != sum(one.numel() * one.element_size() for one in tensors):
        raise ParameterError(f"{len(blob)} bytes are not those of the model's dense state")
    at = 0
    with torch.no_grad():
        for one in tensors:
            n_bytes = one.numel() * one.element_size()
            if n_bytes:
                raw = torch.frombuffer(bytearray(blob[at : at + n_bytes]), dtype=one.dtype)
                one.copy_(raw.view(one.shape))
            at += n_bytes


def _repeat() -> None:
    """Ask for what repeats; where PyTorch has none, `measure` says what that costs."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    warnings.filterwarnings("ignore", ".*does not have a deterministic implementation")
    invariants: Any = torch.sparse.check_sparse_tensor_invariants
    invariants.disable()  # as is the default, which PyTorch warns of
    torch.backends.cudnn.benchmark = False
    torch.set_num_threads(1)


def _batches(batches: Any, seed: int, epochs: int) -> Any:
    if isinstance(batches, torch.utils.data.DataLoader):
        return DataLoaderBatches(batches, seed, epochs)
    if not hasattr(batches, "__getitem__") or not hasattr(batches, "__len__"):
        raise ParameterError(
            f"a {type(batches).__name__} can't be taken up in its middle: give a sequence of "
            "batches, such as `cprsim.torch.TensorBatches`"
        )
    return Epochs(batches, epochs)


def _to_host(tensor: Any) -> Any:
    return tensor.detach().to("cpu", copy=True)


def _options(optimizer: Any) -> list[dict[str, Any]]:
    """Of each group, such as its learning rate, without the parameters."""
    return [
        deepcopy({key: value for key, value in group.items() if key != "params"})
        for group in optimizer.param_groups
    ]
