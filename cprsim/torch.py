"""PyTorch models in experiments with failures; the only room that imports torch (extra `torch`).

    module, optimisers, batches ──> Trainer: measured by `cprsim measure`
    your own training loop ───────> FailureInjector: planned failures in it

Embedding and EmbeddingBag modules are the tables; everything else is dense.
"""

from __future__ import annotations

from cprsim.errors import ParameterError

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise ParameterError("PyTorch is not installed: pip install 'cprsim[torch]'") from None

from cprsim.training.torch.batches import DataLoaderBatches, TensorBatches
from cprsim.training.torch.injector import FailureInjector
from cprsim.training.torch.optimizers import RowWiseAdagrad
from cprsim.training.torch.trainer import Trainer

__all__ = [
    "DataLoaderBatches",
    "FailureInjector",
    "RowWiseAdagrad",
    "TensorBatches",
    "Trainer",
]
