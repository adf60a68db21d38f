"""The failures of another source at another pace: what if the MTBF were longer or shorter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from cprsim.failures.distributions import positive
from cprsim.failures.sources import FailureSource
from cprsim.records import Clock, Cluster, ExpectedFailures, FailureTrace


@dataclass(frozen=True, slots=True)
class Stretched:
    """Every instant of a source, times `factor`; who fails, and their repairs, stay as they are.

    Both sources draw the same random numbers, so that what changes is the pace alone. Not for
    failures put at given instants of the job: those belong to a job of that length.

    Raises ParameterError for a factor that is not a positive number.
    """

    source: FailureSource
    factor: float

    def __post_init__(self) -> None:
        positive("factor", self.factor)

    @property
    def clock(self) -> Clock:
        """That of the source."""
        return self.source.clock

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Those of the source over the hours that become `useful_h`."""
        of_source = self.source.expected(cluster, useful_h / self.factor)
        return replace(
            of_source,
            mtbf_h=of_source.mtbf_h * self.factor,
            mtbf_shard_h=of_source.mtbf_shard_h * self.factor,
        )

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Those of the source, unless faster failures make a block too large."""
        return self.source.block_replications(cluster, useful_h / min(self.factor, 1.0))

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """The chunks that the source has up to these borders and beyond, each stretched."""
        beyond_h = _and_beyond(borders_h)
        for chunk in self.source.draw(cluster, seed, block, n_replications, beyond_h, kept):
            until_h, at_h = chunk.until_h * self.factor, chunk.at_h * self.factor
            yield replace(chunk, until_h=until_h, at_h=at_h)


def _and_beyond(borders_h: Iterable[float]) -> Iterator[float]:
    """Borders, and endlessly further ones: what is pressed together has to reach as far."""
    border_h = 0.0
    for border_h in borders_h:
        yield border_h
    while True:
        border_h *= 1.5
        yield border_h
