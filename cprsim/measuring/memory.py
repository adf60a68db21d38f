"""The memory that forks of a trainer of one's own take, said before it is measured."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.kernel.trials import Saving
from cprsim.measuring.measure import Request
from cprsim.measuring.plugged import PluggedSetting
from cprsim.measuring.room import SHARE, memory_bytes
from cprsim.measuring.runs import COUNTED_INTERVAL
from cprsim.staleness import STRATEGIES


@dataclass(frozen=True, slots=True)
class MemoryOfForks:
    """Copies of all tables that the ways of saving of one seed hold at once."""

    n_copies: int
    copy_bytes: int
    n_workers: int  # on this machine
    memory_bytes: int  # for copies, of all workers together: the rest goes to disk

    @property
    def needed_bytes(self) -> int:
        """By all workers together."""
        return self.n_copies * self.copy_bytes * self.n_workers

    @property
    def spilled_bytes(self) -> int:
        """What memory does not hold."""
        return max(0, self.needed_bytes - self.memory_bytes)


def memory_of_forks(setting: PluggedSetting, request: Request) -> MemoryOfForks:
    """One copy for each way of saving of a seed, and one for the fork that runs."""
    design, seed = request.design, request.kernel.seed
    trials = (*design.scenes(seed, request.n_servers), *design.checks(seed, request.n_servers))
    ways = {trial.saving for trial in trials}
    ways |= {Saving(strategy, COUNTED_INTERVAL) for strategy in STRATEGIES}
    n_workers = request.workers.n_local if request.workers.backend == "local" else 1
    if request.n_seeds is not None:
        n_workers = min(n_workers, request.n_seeds)
    return MemoryOfForks(
        len(ways) + 1, setting.copy_bytes(), n_workers, int(SHARE * memory_bytes())
    )
