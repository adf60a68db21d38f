"""Running the trials of one seed, each kept in the seed's journal as soon as it is finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import process_time, time

import numpy as np

from cprsim.errors import ResultError
from cprsim.failures.sources import stream
from cprsim.files import decode, encode
from cprsim.job.losses import MORE_BYTES
from cprsim.job.records import ShardBy
from cprsim.results.store import append_to_journal, read_journal
from cprsim.scenario.kernel import ClickFile, Kernel
from cprsim.scenario.reading import LoadedScenario
from cprsim.training.kernel.clicks.records import Clicks
from cprsim.training.kernel.metrics import Quality
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.shared_run import Baseline, run_trials
from cprsim.training.kernel.trials import Saving, Trial
from cprsim.training.kernel.weights import TrainableModel
from cprsim.training.measuring.design import Design, measurable
from cprsim.training.measuring.own_code import make_trainer
from cprsim.training.measuring.own_model import OwnModel
from cprsim.training.proxy_model import ProxyModel, proxy_model

ORDERS = 100  # stretches of a click log within which its order is drawn anew for each seed
COUNTED_INTERVAL = 0.1  # T_save, as a share of the run, at which bytes are counted


@dataclass(frozen=True, slots=True)
class SeedRuns:
    """The task of one worker: the runs of one seed."""

    loaded: LoadedScenario
    seed: int
    trials: tuple[Trial, ...]
    folder: Path  # of the journals
    until: float = float("inf")  # instant [s since the epoch] after which no trial is begun
    count_bytes: bool = True  # of every measurable strategy over the whole run
    here: Path | None = None  # working directory of the user, with own code; None: the process's


@dataclass(frozen=True, slots=True)
class SeedResult:
    """Results of one seed so far."""

    seed: int
    twin: Baseline | None  # None: not all of its trials are there yet
    quality: dict[Trial, Quality]
    cpu_s: float  # of all that is in its journal


def journal_of(folder: Path, seed: int) -> Path:
    """The journal of one seed."""
    return folder / f"seed-{seed}.jsonl"


def run_seed(task: SeedRuns) -> int:
    """Run the trials that the seed's journal lacks; returns the number of trials run."""
    path = journal_of(task.folder, task.seed)
    before = read_seed(task.folder, task.seed)
    missing = [trial for trial in task.trials if trial not in before.quality]
    if time() >= task.until or (before.twin is not None and not missing):
        return 0
    kernel = task.loaded.scenario.kernel
    model: TrainableModel
    if kernel is None or kernel.trainer is None:
        stand_in = setting_of(task.loaded, task.seed)
        model, shards = stand_in.trainer(), stand_in.shards
    else:
        model, shards = own_model(task.loaded, task.seed, task.here)
    n_tables = shards.layout.n_tables
    alike: dict[Trial, list[Trial]] = {}  # by the one of them that is run
    for trial in missing:
        once = replace(trial, saving=run_as(trial.saving, n_tables))
        alike.setdefault(once, []).append(trial)
    design = measurable(Design(), has_momentum=model.weights.momentum is not None)
    counted = [Saving(name, COUNTED_INTERVAL) for name in design.strategies if task.count_bytes]
    savings = {run_as(saving, n_tables) for saving in counted}
    began = process_time()
    for n_run, finished in enumerate(run_trials(model, shards, alike, savings)):
        cpu_s, began = process_time() - began, process_time()
        if isinstance(finished, Baseline):
            written = {s.strategy: finished.bytes_written[run_as(s, n_tables)] for s in counted}
            quality, records = finished.quality, [{"bytes_written": written}]
        else:
            quality = finished[1]
            records = [{"trial": encode(trial)} for trial in alike[finished[0]]]
        took = {"quality": encode(quality), "cpu_s": round(cpu_s / len(records), 3)}
        for record in records:
            append_to_journal(path, record | took)
        if time() >= task.until:
            return n_run + 1
    return len(missing)


def run_as(saving: Saving, n_tables: int) -> Saving:
    """The way of saving that does the same: a model without small tables saves none more often."""
    how = saving.sub_saves
    if how is None or n_tables > how.n_large_tables:
        return saving
    return replace(saving, strategy=saving.strategy.removesuffix(MORE_BYTES))


def require_seen(task: SeedRuns, n_run: int) -> None:
    """Check that the results of a worker can be read here."""
    result = read_seed(task.folder, task.seed)
    if n_run and result.twin is None and not result.quality:
        raise ResultError(
            f"{task.folder}: seed {task.seed} was run, but nothing of it is here; workers of a "
            "cluster need the same file system as this process"
        )


def read_seed(folder: Path, seed: int) -> SeedResult:
    """Results in a seed's journal."""
    twin, quality, cpu_s = None, {}, 0.0
    for record in read_journal(journal_of(folder, seed)):
        measured = decode(Quality, record["quality"])
        cpu_s += record["cpu_s"]
        if "trial" in record:
            quality[decode(Trial, record["trial"])] = measured
        else:
            written = record["bytes_written"]
            twin = Baseline(measured, {Saving(k, COUNTED_INTERVAL): n for k, n in written.items()})
    return SeedResult(seed, twin, quality, cpu_s)


def n_finished(folder: Path) -> int:
    """Runs in all journals of a folder: cheap enough to ask every second."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("seed-*.jsonl"))


def forked(
    model: TrainableModel, shards: Shards, trials: Sequence[Trial]
) -> tuple[Quality, dict[Trial, Quality]]:
    """The quality of the run without failures, and of each trial; nothing is kept."""
    *finished, twin = run_trials(model, shards, trials)
    assert isinstance(twin, Baseline)
    return twin.quality, dict(run for run in finished if not isinstance(run, Baseline))


# --------------------------------------------------------------------------- the world of a seed


def own_model(
    loaded: LoadedScenario, seed: int, folder: Path | None = None
) -> tuple[OwnModel, Shards]:
    """A trainer of the user's own, made for one seed, and which server holds which of its rows."""
    section = loaded.scenario.kernel
    assert section is not None
    model = OwnModel(make_trainer(loaded, seed, folder or Path.cwd()), seed)
    n_servers = loaded.scenario.cluster.emb_ps
    return model, Shards(model.layout, n_servers, ShardBy(section.shard_by))


def setting_of(loaded: LoadedScenario, seed: int) -> ProxyModel:
    """Clicks, initial weights and order of one seed.

    Generated clicks are drawn anew, teacher included: errors over seeds apply to new data. The
    clicks of a log stay: its training part is shuffled within each hundredth of it (so that
    changes in the course of the log remain), and the weights are drawn anew.
    """
    section = loaded.scenario.kernel or Kernel.model_validate({})
    seeded = loaded.scenario.model_copy(
        update={"kernel": section.model_copy(update={"seed": seed})}
    )
    stand_in = proxy_model(replace(loaded, scenario=seeded))
    if not isinstance(section.clicks, ClickFile):
        return stand_in
    return replace(stand_in, train=_in_another_order(stand_in.train, seed))


def _in_another_order(train: Clicks, seed: int) -> Clicks:
    rng = stream(seed, 0, "measuring/order")
    stretches = np.array_split(np.arange(len(train)), min(ORDERS, len(train)))
    order = np.concatenate([rng.permutation(stretch) for stretch in stretches])
    return Clicks(train.tables, train.label[order], train.integers[order], train.rows[order])
