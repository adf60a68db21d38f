"""One replication: what it draws, and what becomes of it."""

from dataclasses import dataclass
from math import nan

from cprsim.simulation.draws import BlockDraws, uniform
from cprsim.simulation.job import SimulatedJob


@dataclass(frozen=True, slots=True)
class ReplicationDraws:
    """What varies in one replication of a block.

    Names are ``stall/TIER`` and ``background/TIER`` (n: how many saves of it began before),
    ``detect/SCOPE``, ``load/TIER`` and ``stage/RULE/STAGE``, by number (n: how many failures were
    counted before).
    """

    job: SimulatedJob
    block: BlockDraws
    replication: int = 0

    def hours(self, name: str, n: int) -> float:
        return float(self.block.table(name, n + 1)[n, self.replication])

    def uniform(self, tier: str, n: int) -> float:
        tiers = [capture.tier for capture in self.job.policy.captures]
        return float(uniform(int(self.block.keys[tiers.index(tier), self.replication]), n))


@dataclass(frozen=True, slots=True)
class StaleShard:
    """A shard that went back while the job went on.

    `fresh_h` is the later of the content and its own last reload since the job last went back.
    """

    progress_h: float
    slot: int
    content_h: float
    fresh_h: float = nan


@dataclass(frozen=True, slots=True)
class ReplicationOutcome:
    """What became of one replication; `hours` are of the policy's parts, in their order."""

    finished: bool
    wall_h: float
    useful_h: float
    hours: tuple[float, ...]
    n_failures: int
    n_saves: int  # committed
    stale: tuple[StaleShard, ...]
