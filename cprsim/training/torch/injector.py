"""Planned failures inside a user's training loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cprsim.errors import ParameterError
from cprsim.job.records import EventKind, ShardBy
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.trials import Saving, ShardFailure, Trial
from cprsim.training.measuring.own_model import OwnModel
from cprsim.training.torch.tables import TrainedModule


class FailureInjector(TrainedModule):
    """Saves a model in memory at an interval, and reverts its shards when they fail.

    Call `step` after each step of the optimisers, and `close` at the end. Rows revert with their
    optimiser state; if all shards fail, the layers revert too.

    Parameters
    ----------
    module, optimizers : module and one or several optimisers
        At the start of their run; the module has an Embedding or EmbeddingBag.
    n_samples : int
        Samples of the whole run, all epochs.
    failures : sequence of (share of the run, shards)
        Failures in their order; `examples/plan_a_measurement.py` draws some.
    strategy : str, default "partial"
        Whole saves, or mfu, ssu, momentum, scar or round-robin.
    interval : float, default 0.1
        Between saves, as a share of the run.
    n_shards : int, default 8
        Embedding servers over which the rows are distributed.
    shard_by : str, default "rows"
        By rows, numbered through all tables (row i is on shard i mod n), or by tables.
    seed : int, default 1
        Seed of the random draws in saves.

    Raises
    ------
    ParameterError
        A strategy, interval or failure that can't be; a module without tables.
    """

    def __init__(
        self,
        module: Any,
        optimizers: Any,
        n_samples: int,
        failures: Iterable[tuple[float, Sequence[int]]],
        *,
        strategy: str = "partial",
        interval: float = 0.1,
        n_shards: int = 8,
        shard_by: str = "rows",
        seed: int = 1,
    ) -> None:
        trial = Trial(
            Saving(strategy, interval),
            tuple(ShardFailure(at, tuple(shards)) for at, shards in failures),
        )
        super().__init__(module, optimizers)
        self.accesses.listens = True
        self.n_samples, self.seen = n_samples, 0
        self._model = OwnModel(self, seed)
        shards = Shards(self._model.layout, n_shards, ShardBy(shard_by))
        for failure in trial.failures:
            shards.of_servers(failure.servers)
        self._saver = Saver(self._model, shards, trial.saving.sub_saves)
        self._due = list(trial.schedule())
        self.struck: list[float] = []  # shares of the run at which shards went back

    def step(self, n: int) -> None:
        """Report a step on n samples; events nearest to this position happen now.

        The next batch is taken to be as large as this one: before one that is not, such as the
        last of an epoch, an event may happen a batch early or late.

        Raises ParameterError for more samples than the run has.
        """
        if accessed := self.accesses.take(n):
            self._model.note(accessed)
        if not self.moves_only_accessed:
            self._model.changed[:] = 1
        self.seen += n
        if self.seen > self.n_samples:
            raise ParameterError(f"{self.seen} samples trained of a run of {self.n_samples}")
        nearest = (self.seen + n / 2) / self.n_samples  # an event happens between two batches
        while self._due and (self._due[0].at < nearest or self.seen == self.n_samples):
            event = self._due.pop(0)
            self._saver.do(event)
            if event.kind is EventKind.REVERTED:
                self.struck.append(self.seen / self.n_samples)

    def close(self) -> None:
        """Remove the hooks from the embeddings."""
        self.accesses.remove()
