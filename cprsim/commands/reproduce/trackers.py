"""Costs of the priority strategies' trackers: memory, time to choose rows, bytes written.

Memory and bytes are counted on the kernel's own trackers. Times are of this machine and differ from
run to run; only their growth with the rows of a table is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from time import process_time

import numpy as np

from cprsim.commands.reproduce.estimates import StudyEstimate, series
from cprsim.commands.reproduce.study import Summary, Work
from cprsim.commands.reproduce.verdicts import TOLERANCE, Ours, Tested
from cprsim.job.model_shape import CRITEO_KAGGLE, CRITEO_TERABYTE, ModelShape, TableLayout
from cprsim.job.records import SubSaves
from cprsim.pages.chart import Panel
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.trackers import TRACKER_CLASSES, Tracked
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan

N_LARGE, FRACTION, N_SERVERS = 7, 0.125, 8
WIDTHS = (16, 32, 64, 128)
SHOWN = {"scar": "SCAR", "mfu": "MFU", "ssu": "SSU", "round-robin": "round robin"}
MEMORY = {"scar": (100.0, 100.0), "mfu": (0.78, 6.25), "ssu": (0.097, 0.78)}  # % (recalled)
CRITEO_SHAPES = {"Kaggle": CRITEO_KAGGLE, "Terabyte": CRITEO_TERABYTE}
STRICTEST = 1.0 + TOLERANCE  # of the slope of log time over log rows; N log N has about 1.07
By = Mapping[str, Mapping[str, float]]  # tracker, floats per row: memory in percent
Times = Mapping[str, Mapping[str, Sequence[float]]]  # tracker, rows: seconds


def trackers(work: Work) -> Summary:
    """Measure the kernel's trackers."""
    few, more = (20_000, 200_000), (20_000, 60_000, 200_000, 600_000, 2_000_000)
    sizes = work.pick(few, more, (*more, 10_000_000))
    n_clicks = work.pick(40_960, 163_840, 1_024_000)  # eight times a number of batches
    timed = {f"time, {name}, {max(sizes)} rows": partial(_times, name, sizes) for name in SHOWN}
    outcomes = work.compute({"memory": _memory, "bytes": partial(_bytes, n_clicks), **timed})
    memory, written, *of_each = outcomes.values()
    times: Times = dict(zip(SHOWN, of_each, strict=True))
    added = (series(SHOWN[name], map(float, of), of.values()) for name, of in memory.items())
    paper = series("paper (recalled)", (16, 128, 16, 128, 16), (6.25, 0.78, 0.78, 0.097, 100.0),
                   kind="paper")  # fmt: skip
    drawn = (
        series(SHOWN[name], map(float, times[name]),
               *(of([*times[name].values()], axis=1) for of in (np.median, np.min, np.max)))
        for name in MEMORY
    )  # fmt: skip
    return work.study.summary(
        _quantities(memory, written, times),
        {
            "Milliseconds to choose the rows of one sub-save, median of 5:": (
                {"tracker": SHOWN[name]}
                | {f"{int(n):,} rows": f"{1e3 * float(np.median(seconds)):.3g}"
                   for n, seconds in of.items()}
                for name, of in times.items()
            )
        },
        Panel("Memory", "floats per row", "memory added, % of the rows tracked",
              (*added, paper), x_log=True, y_log=True),
        Panel("Time to choose the rows of one sub-save", "rows of the table", "seconds",
              tuple(drawn), x_log=True, y_log=True),
    )  # fmt: skip


def _quantities(memory: By, written: Mapping[str, float], times: Times) -> dict[str, Ours]:
    estimates: dict[str, Ours] = {}
    for name, ends in MEMORY.items():
        extremes = min(memory[name].values()), max(memory[name].values())
        is_met = all(
            abs(x - paper) <= TOLERANCE * paper for x, paper in zip(extremes, ends, strict=True)
        )
        tested = Tested(is_met, "{:.3g} to {:.3g} %".format(*extremes))
        estimates[f"{SHOWN[name]}: memory added, rows of 128 down to 16 floats"] = (
            StudyEstimate(extremes[0]) if ends[0] == ends[1] else tested
        )
    for name in MEMORY:
        slope = _slope(times[name])
        estimates[f"{SHOWN[name]}: slope of log time to choose over log rows"] = Tested(
            slope.below(STRICTEST), f"{slope.mean:.2f} ± {slope.half_width:.2f}"
        )
    for name, percent in written.items():
        estimates[f"{SHOWN[name]}: bytes per T_save over those of a whole save"] = Tested(
            percent <= 100 * (1 + TOLERANCE), f"{percent:.1f} %"
        )
    for name, shape in CRITEO_SHAPES.items():
        rows = sum(shape.tables.rows[table] for table in shape.tables.largest(N_LARGE))
        share = StudyEstimate(100 * rows / shape.tables.n_rows)
        estimates[f"{name}: rows in the 7 largest tables"] = share
    return estimates


def _tracked(layout: TableLayout, table: Array, n_large: int) -> Tracked:
    large = Shards(layout, N_SERVERS).of_tables(layout.largest(n_large))
    return Tracked(layout, large, FRACTION, table, table.copy(), 1, 2)


def _memory() -> dict[str, dict[str, float]]:
    """Memory of each tracker over that of the rows it tracks, in percent, by dimension."""
    layout = TableLayout((80_000, 40_000))

    def percent(name: str, dimension: int) -> float:
        table = np.zeros((layout.n_rows, dimension), np.float32)
        tracker = TRACKER_CLASSES[name](_tracked(layout, table, layout.n_tables))
        return 100 * tracker.memory_bytes / table.nbytes

    return {name: {str(n): percent(name, n) for n in WIDTHS} for name in MEMORY}


def _times(name: str, sizes: Sequence[int]) -> dict[str, list[float]]:
    """Seconds to choose rows, by the rows of the table: several times each, as many as were used.

    Between two times every row is used once or twice in random order, and moves a little.
    """
    seconds: dict[str, list[float]] = {}
    for n in sizes:
        rng = np.random.default_rng(n)
        table = np.zeros((n, 16), np.float32)
        tracker = TRACKER_CLASSES[name](_tracked(TableLayout((n,)), table, 1))
        for repeat in range(6):
            used = np.concatenate([rng.permutation(n), rng.integers(n, size=n // 4)])
            tracker.observe(used.astype(np.int32)[:, None])
            table[:] = rng.random((n, 16), dtype=np.float32)
            begin = process_time()
            tracker.choose()
            took = process_time() - begin
            tracker.committed()
            if repeat:  # the first compiles
                seconds.setdefault(str(n), []).append(took)
    return seconds


def _bytes(n_clicks: int) -> dict[str, float]:
    """Bytes of one interval of sub-saves over those of a whole save, in percent, by tracker."""
    shape = ModelShape(CRITEO_KAGGLE.tables.capped(5000), 16)
    clicks = generate(shape.tables, n_clicks, 1)[0]
    percent = {}
    for name in SHOWN:
        trainer = ProxyTrainer(shape, clicks, TrainingPlan(128, 0.1))
        shards = Shards(shape.tables, N_SERVERS)
        whole_saver = Saver(trainer, shards)
        whole_saver.save()
        saver = Saver(trainer, shards, SubSaves(name, FRACTION, n_large_tables=N_LARGE))
        n_parts = round(1 / FRACTION)
        for part in range(1, n_parts + 1):
            trainer.run(part * n_clicks // n_parts)
            saver.save(ends_interval=part == n_parts)
        percent[name] = 100 * saver.bytes_written / whole_saver.bytes_written
    return percent


def _slope(times: Mapping[str, Sequence[float]]) -> StudyEstimate:
    """Slope of log time over log rows, for the larger tables, and its standard error doubled."""
    large = {int(n): seconds for n, seconds in times.items() if int(n) >= 200_000 or len(times) < 3}
    x = np.log(np.repeat(list(large), [len(seconds) for seconds in large.values()]))
    y = np.log(np.concatenate(list(large.values())))
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    return StudyEstimate.around(float(slope), 2 * float(np.sqrt(covariance[0, 0])))
