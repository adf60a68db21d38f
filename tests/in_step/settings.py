"""Settings that the tests of this room share: few threads, so that they are quick to simulate."""

from __future__ import annotations

from typing import Any

from cprsim.failures.distributions import Constant
from cprsim.in_step.setting import SyncSetting
from cprsim.records import Algorithm

SECOND_H = 1 / 3600
LINK = 1e9 * 3600  # bytes per hour
MS = 1e-3 * SECOND_H


def setting(algorithm: str, n_trainers: int, every: int | None = None, **more: Any) -> SyncSetting:
    """4 threads, 10 ms per iteration, 1 MB, an exchange through 1 GB/s takes 2 ms."""
    has_servers = algorithm.endswith("easgd")
    given: dict[str, Any] = {
        "n_threads": 4,
        "batch": 100,
        "iteration": Constant(10 * MS),
        "dense_bytes": 1e6,
        "server_bandwidth_bytes_per_h": LINK if has_servers else 0.0,
        "trainer_bandwidth_bytes_per_h": LINK,
        "every_iterations": every,
    }
    return SyncSetting(Algorithm(algorithm), n_trainers, **{**given, **more})
