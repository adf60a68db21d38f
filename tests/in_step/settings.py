"""Settings that the tests of this room share: few threads, so that they are quick to simulate."""

from math import inf
from typing import Any

from cprsim.job.distributions import Constant
from cprsim.job.records import Algorithm
from cprsim.job.sync_setting import SyncSetting
from cprsim.simulation.job import SimulatedJob
from tests.simulators import PARTIAL, job_of

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


def in_step(
    useful_h: float = 10, n_trainers: int = 4, n_sync_ps: int = 2, how: str = PARTIAL,
    interval_h: float = inf, **costs: Any,
) -> SimulatedJob:  # fmt: skip
    """Slots 0 to 3 are embedding servers, then come trainers (4 to 7) and sync servers (8, 9).

    Trainers stay in step in the background; a replacement takes 2 h.
    """
    costs = {"reschedule_h": 1.5, "detect_h": 0.5, **costs}
    return job_of(
        how, interval_h, useful_h=useful_h, n_trainers=n_trainers, n_sync_ps=n_sync_ps,
        in_step=True, **costs,
    )  # fmt: skip
