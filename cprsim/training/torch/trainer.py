"""A PyTorch model as a trainer that can be failed: see `cprsim.training.measuring.protocol`."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from cprsim.errors import ParameterError
from cprsim.training.measuring.protocol import Note, Predictions
from cprsim.training.torch.batches import DataLoaderBatches, digest_of, sizes_of
from cprsim.training.torch.tables import TrainedModule


class Trainer(TrainedModule):
    """A module, its optimisers and its batches.

    Parameters
    ----------
    module : torch.nn.Module
        Has at least one Embedding or EmbeddingBag, which are its tables.
    optimizers : Optimizer or sequence of Optimizer
        One, or several that share the parameters between them.
    batches : sequence or DataLoader
        A sequence of batches (`TensorBatches`, a list), or a DataLoader of a map-style dataset.
    loss : callable
        Of the module and a batch: the mean loss that a step goes down.
    evaluate : callable
        Of the module: predictions on the evaluation set, or its `auc` and `log_loss`.
    epochs : int, default 1
        Passes over the batches.
    seed : int, default 0
        Of the order in which a DataLoader that shuffles gives its samples.
    schedulers : iterable, optional
        Stepped after each batch.
    deterministic : bool, default True
        Ask PyTorch for algorithms that repeat, and use one thread.

    Raises
    ------
    ParameterError
        No table, or batches that can't be taken up in their middle.
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
        self._loss, self._evaluate = loss, evaluate
        self.schedulers = list(schedulers)
        if isinstance(batches, torch.utils.data.DataLoader):
            batches, epochs = DataLoaderBatches(batches, seed, epochs), 1
        elif not hasattr(batches, "__getitem__") or not hasattr(batches, "__len__"):
            raise ParameterError(
                f"a {type(batches).__name__} can't be taken up in its middle: give a sequence of "
                "batches, such as `cprsim.torch.TensorBatches`"
            )
        self.batches, self.sizes = batches, np.tile(sizes_of(batches), epochs)
        self._ends = np.concatenate([[0], np.cumsum(self.sizes)])
        super().__init__(module, optimizers)

    @property
    def n_samples(self) -> int:
        """Samples in the whole run."""
        return int(self._ends[-1])

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
            self.accesses.listens = True
            loss = self._step(self.batches[number % len(self.batches)])
            self.accesses.listens = False
            note(self.accesses.take(int(self.sizes[number])))
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
        """Result of the user's function, with the module in evaluation mode and no gradients."""
        self.module.eval()
        with torch.no_grad():
            evaluated = self._evaluate(self.module)
        self.module.train()
        return evaluated

    # ------------------------------------------------------------------ state

    def state(self) -> dict[str, Any]:
        """Weights, optimisers, schedulers and random numbers, copied to the host."""
        return {
            "tensors": [tensor.detach().to("cpu", copy=True) for tensor in self._tensors()],
            "groups": [_options(optimizer) for optimizer in self.optimizers],
            "schedulers": [deepcopy(scheduler.state_dict()) for scheduler in self.schedulers],
            "random": (random.getstate(), np.random.get_state(), torch.get_rng_state()),  # noqa: NPY002
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a copied state."""
        with torch.no_grad():
            for live, stored in zip(self._tensors(), state["tensors"], strict=True):
                live.copy_(stored)
        for optimizer, groups in zip(self.optimizers, state["groups"], strict=True):
            for live, stored in zip(optimizer.param_groups, groups, strict=True):
                live.update(deepcopy(stored))
        for scheduler, stored in zip(self.schedulers, state["schedulers"], strict=True):
            scheduler.load_state_dict(deepcopy(stored))
        python, numpy, default = state["random"]
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.set_rng_state(default)
        if state["cuda"] is not None:
            torch.cuda.set_rng_state_all(state["cuda"])

    def _tensors(self) -> list[Any]:
        return [part for table in self.tables.values() for part in table.parts] + self.dense()

    def describe(self) -> dict[str, Any]:
        """Versions, optimisers, size, and a digest of the batches."""
        device = next(iter(self.tables.values())).weight.device
        return {
            "framework": "torch",
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "optimizers": [type(optimizer).__name__ for optimizer in self.optimizers],
            "tables": {name: list(table.weight.shape) for name, table in self.tables.items()},
            "n_dense": sum(tensor.numel() for tensor in self.dense()),
            "n_samples": self.n_samples,
            "data": digest_of(self.batches),
        }


def _repeat() -> None:
    """Ask PyTorch for deterministic operations; `measure` reports the noise without them."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    warnings.filterwarnings("ignore", ".*does not have a deterministic implementation")
    invariants: Any = torch.sparse.check_sparse_tensor_invariants
    invariants.disable()  # as is the default, which PyTorch warns of
    torch.backends.cudnn.benchmark = False
    torch.set_num_threads(1)


def _options(optimizer: Any) -> list[dict[str, Any]]:
    """Of each group, such as its learning rate, without the parameters."""
    return [
        deepcopy({key: value for key, value in group.items() if key != "params"})
        for group in optimizer.param_groups
    ]
