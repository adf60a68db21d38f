"""Batches by number: a run that goes back in its data gets the same ones again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from cprsim.errors import ParameterError
from cprsim.job.records import Ints


class TensorBatches(Sequence[Any]):
    """Tensors of equal length in batches, in their order.

    Parameters
    ----------
    *tensors : Tensor
        (n, ...) each; a batch is a tuple of their slices.
    batch : int
        Samples per batch; the last one may be shorter.

    Raises
    ------
    ParameterError
        Tensors of different lengths, none, or empty ones.
    """

    def __init__(self, *tensors: Any, batch: int) -> None:
        lengths = {len(tensor) for tensor in tensors}
        if len(lengths) != 1 or 0 in lengths or batch < 1:
            raise ParameterError(f"batches of {batch} of tensors with lengths {sorted(lengths)}")
        self.tensors, self.batch, self.n = tensors, batch, lengths.pop()

    @property
    def sizes(self) -> Ints:
        """Samples of each batch."""
        return np.diff(np.append(np.arange(0, self.n, self.batch), self.n))

    def __len__(self) -> int:
        return -(-self.n // self.batch)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(number)
        some = slice(number * self.batch, (number + 1) * self.batch)
        return tuple(tensor[some] for tensor in self.tensors)

    def digest(self) -> str:
        """SHA-256 of the tensors."""
        return _sha256(self.tensors)


class DataLoaderBatches:
    """The batches of a DataLoader over a map-style dataset, one epoch after the other.

    The order of each epoch is drawn once, from a seed, so that it is the same whenever it is asked
    for. Samples are fetched and put together in this process, as with `num_workers=0`. A loader
    with `batch_size=None` gives what its dataset holds: batches already, which are looked through
    once for their sizes.

    Raises ParameterError for a loader of an iterable dataset, which has no samples to go back to.
    """

    def __init__(self, loader: Any, seed: int, epochs: int = 1) -> None:
        if isinstance(loader.dataset, torch.utils.data.IterableDataset):
            raise ParameterError(
                "an iterable dataset can't be taken up in its middle: give the trainer a sequence "
                "of batches (`cprsim.torch.TensorBatches`), or a map-style dataset"
            )
        self.loader = loader
        self._orders: list[Any] = []  # of each batch: its samples, or where it lies itself
        self._puts_together = loader.batch_sampler is not None
        generator = getattr(loader.sampler, "generator", None)
        state = None if generator is None else generator.get_state()
        with torch.random.fork_rng():
            for epoch in range(epochs):
                torch.manual_seed(seed + epoch)
                if generator is not None:
                    generator.manual_seed(seed + epoch)
                batches = loader.batch_sampler if self._puts_together else loader.sampler
                self._orders += map(list, batches) if self._puts_together else batches
        if generator is not None:
            generator.set_state(state)

    @cached_property
    def sizes(self) -> Ints:
        """Samples of each batch, all epochs."""
        if self._puts_together:
            return np.array([len(order) for order in self._orders])
        return np.array([samples_of(self[number]) for number in range(len(self))])

    def __len__(self) -> int:
        return len(self._orders)

    def __getitem__(self, number: int) -> Any:
        order = self._orders[number]
        if not self._puts_together:
            return self.loader.collate_fn(self.loader.dataset[order])
        if hasattr(self.loader.dataset, "__getitems__"):
            samples = self.loader.dataset.__getitems__(order)
        else:
            samples = [self.loader.dataset[i] for i in order]
        return self.loader.collate_fn(samples)


def sizes_of(batches: Any) -> Ints:
    """Samples of each batch."""
    sizes = getattr(batches, "sizes", None)
    if sizes is None:  # by number: slices beyond the last are empty, and iterating would not end
        sizes = [samples_of(batches[number]) for number in range(len(batches))]
    return np.asarray(sizes, np.int64)


def digest_of(batches: Any) -> str:
    """SHA-256 of the contents of batches, in order: by their own `digest` where they have one."""
    if hasattr(batches, "digest"):
        return str(batches.digest())
    with torch.random.fork_rng():
        torch.manual_seed(0)  # of samples that are made at random as they are fetched
        tensors = (tensor for number in range(len(batches)) for tensor in _tensors(batches[number]))
        return _sha256(tensors)


def _tensors(batch: Any) -> Iterator[Any]:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for part in batch.values():
            yield from _tensors(part)
    elif isinstance(batch, Sequence) and not isinstance(batch, str):
        for part in batch:
            yield from _tensors(part)


def _sha256(tensors: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).data)
    return digest.hexdigest()


def samples_of(batch: Any) -> int:
    """Length of the first tensor in a batch. Raises ParameterError for a batch without tensors."""
    for tensor in _tensors(batch):
        return len(tensor)
    raise ParameterError(f"a batch of {type(batch).__name__} holds no tensor to count samples by")
