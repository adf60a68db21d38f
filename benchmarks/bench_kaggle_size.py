"""The Criteo Kaggle configuration at its full size: does it train within 6 GB, and what saves cost.

33.8 M rows of 16 numbers (2.16 GB), the reference layers, on generated clicks; a store of what was
last saved, and full checkpoints on disk. The checkpoints go to a temporary folder (set TMPDIR).

    python benchmarks/bench_kaggle_size.py
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cprsim.kernel.array_file import read_arrays, write_arrays
from cprsim.kernel.clicks.generated import generate
from cprsim.kernel.saving import Saver
from cprsim.kernel.shape import CRITEO_KAGGLE
from cprsim.kernel.shards import Shards
from cprsim.kernel.training import ProxyTrainer, TrainingPlan

N_SAMPLES = 131_072
LIMIT_GB = 6.0


def peak_gb() -> float:
    """Most memory that the process ever had [GB]."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def timed(name: str, call: Callable) -> None:
    """Call it, and print its seconds and the peak memory so far."""
    start = time.perf_counter()
    call()
    print(
        f"  {name:44} {time.perf_counter() - start:8.3f} s   peak {peak_gb():5.2f} GB", flush=True
    )


def read_back(path: Path, state: dict[str, np.ndarray]) -> None:
    """Fill the arrays of a run from a file."""
    for name, array in read_arrays(path, {}).items():
        state[name][...] = array


def main() -> None:
    print(f"Criteo Kaggle at full size: {CRITEO_KAGGLE.tables.n_rows:,} rows")
    clicks = generate(CRITEO_KAGGLE.tables, N_SAMPLES, seed=1).clicks
    trainer = ProxyTrainer(CRITEO_KAGGLE, clicks, TrainingPlan(optimizer="adagrad", rate=0.02))
    timed("initialise", trainer.initialise)
    savers: list[Saver] = []
    shards = Shards(CRITEO_KAGGLE.tables, 8)
    timed("make the store", lambda: savers.append(Saver(trainer, shards)))
    for until in (1_024, 16_384, N_SAMPLES):
        timed(f"train to sample {until:,}", lambda until=until: trainer.run(until))
        timed(f"  save, {trainer.changed.sum():,} rows changed", savers[0].save)
    with tempfile.TemporaryDirectory() as folder:
        path, state = Path(folder) / "saved", trainer.state()
        timed("write a checkpoint", lambda: write_arrays(path, trainer.position, state, {}))
        timed("read it back", lambda: read_back(path, state))
    print(f"peak {peak_gb():.2f} GB (wanted: at most {LIMIT_GB:g})")


if __name__ == "__main__":
    main()
