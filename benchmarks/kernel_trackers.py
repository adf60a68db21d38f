"""What the trackers of priority saving cost a training step of the built-in model.

    python benchmarks/kernel_trackers.py [--rows 1000000] [--tables 26] [--batch 128] [--steps 300]

A step and what the tracker does after it (`observe`) are timed one by one, in CPU time, which a
busy machine stretches little; medians, less what the clock takes. Choosing the rows of a sub-save
is timed once, beside them. Rows are drawn with a skew (the fourth power of a uniform number); 7
tables are tracked, as by default.
"""

from __future__ import annotations

import argparse
from statistics import median
from time import process_time

import numpy as np

from cprsim.kernel.clicks.records import Clicks
from cprsim.kernel.saving import Saver
from cprsim.kernel.shape import ModelShape, TableLayout
from cprsim.kernel.shards import Shards
from cprsim.kernel.training import ProxyTrainer, TrainingPlan
from cprsim.records import SubSaves
from cprsim.staleness.strategies import TRACKERS

N_SERVERS, WARM = 8, 20


def timed(what) -> float:
    began = process_time()
    what()
    return process_time() - began


def clicks_on(tables: TableLayout, n: int) -> Clicks:
    rng = np.random.default_rng(1)
    rows = (rng.random((n, tables.n_tables)) ** 4 * tables.rows).astype(np.int32)
    rows += tables.first_row[:-1].astype(np.int32)
    label = (rng.random(n) < 0.25).astype(np.float32)
    return Clicks(tables, label, rng.random((n, 13), np.float32), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=26)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=300)
    asked = parser.parse_args()
    tables = TableLayout((asked.rows,) * asked.tables)
    clicks = clicks_on(tables, asked.batch * (asked.steps + WARM))
    trainer = ProxyTrainer(ModelShape(tables), clicks, TrainingPlan(asked.batch))
    trainer.initialise()
    n_bytes = trainer.model.table.nbytes
    clock = median(timed(lambda: None) for _ in range(1000))
    print(f"{asked.tables} tables of {asked.rows:,} rows of 16: {n_bytes / 1e9:.2f} GB")
    for strategy in TRACKERS:
        saver = Saver(trainer, Shards(tables, N_SERVERS), SubSaves(strategy))
        trainer.rewind(0)
        measure(trainer, saver, strategy, asked.batch, clock)


def measure(trainer: ProxyTrainer, saver: Saver, strategy: str, batch: int, clock: float) -> None:
    trainer.observe = None  # it is called here
    steps, kept = [], []
    while trainer.position < trainer.n_samples:
        first = trainer.position
        alone = timed(lambda until=first + batch: trainer.run(until))
        rows = trainer.clicks.rows[first : first + batch]
        beside = timed(lambda some=rows: saver.tracker.observe(some))
        if first >= WARM * batch:  # the first compile
            steps.append(alone)
            kept.append(beside)
    choosing = timed(saver.tracker.choose)
    step, beside = median(steps) - clock, max(0.0, median(kept) - clock)
    print(
        f"{strategy:12} step {1e3 * step:6.2f} ms, bookkeeping {1e6 * beside:6.1f} us "
        f"({beside / step:.2%}); choosing the rows of a sub-save {choosing:.3f} s"
    )


if __name__ == "__main__":
    main()
