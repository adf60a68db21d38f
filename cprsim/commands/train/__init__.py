"""``train``: the failures of one replication, on a real model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from annotated_types import Ge, Le

from cprsim.commands import command
from cprsim.commands.options import AllowCode, CliOption, Overrides, ScenarioLike, source_of
from cprsim.commands.train.answer import answer_of_train
from cprsim.errors import watch
from cprsim.pages.answer import Answer
from cprsim.scenario.assemble import assemble
from cprsim.training.accuracy import measure, runs_in_step, runs_of
from cprsim.training.measuring.own_code import require_allowed
from cprsim.training.measuring.runs import own_model
from cprsim.training.proxy_model import proxy_model
from cprsim.training.train_in_step import team_of


@command("cprsim train criteo-kaggle --replay 1")
def train(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    replay: Annotated[int, Ge(0), Le(10**9), CliOption(metavar="N")] = 0,
    allow_code: AllowCode = False,
) -> Answer:
    """Train a small model with one replication's failures.

    It is trained once without failures and once per strategy: it saves where the simulated job
    saved and loses the shards that it lost. The scenario's section 'kernel' describes the
    model, its section 'sync' the replicas. A trainer of your own replaces the model if
    'kernel.trainer' names one; it records no loss during training, so that there is no figure.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`.
    replay : int, default 0
        The replication whose failures strike.
    allow_code : bool, default False
        Run the code that 'kernel.trainer' names, also from outside the working directory.

    Returns
    -------
    Answer
        ``frames["strategies"]``: overhead, PLS, test AUC and log-loss, bytes written.
        ``rows["losses"]``: training loss over the samples.

    Raises
    ------
    CprsimError
        The scenario, its click log or its trainer is wrong.
    """
    loaded = source_of(scenario, overrides).read()

    require_allowed(loaded, allow_code, Path.cwd())
    kernel = loaded.scenario.kernel
    own_trainer = None if kernel is None or kernel.trainer is None else kernel
    if own_trainer is not None and loaded.scenario.sync is not None:
        message = "trains replicas of the built-in model; remove it, or kernel.trainer"
        raise loaded.error("sync", message)
    experiment = assemble(loaded)
    names = ["no failures", *(p.name for p in experiment.policies if p.leaves_stale)]
    with watch.progress("training") as on_progress:

        def trained(run: str, n_done: int, n_samples: int) -> None:
            on_progress(names.index(run) * n_samples + n_done, len(names) * n_samples)

        stand_in = team = None
        if own_trainer is not None:
            model, shards = own_model(loaded, own_trainer.seed)
            words = f"{own_trainer.trainer}, trained on {model.n_samples:,} samples"
            runs = runs_of(experiment, model, shards, trained)
        else:
            stand_in = proxy_model(loaded)
            words = str(stand_in)
            if loaded.scenario.sync is None:
                runs = runs_of(experiment, stand_in.trainer(), stand_in.shards, trained)
            else:
                team = team_of(loaded, stand_in)
                runs = runs_in_step(experiment, team)
        measured = measure(experiment, replay, runs)
    return answer_of_train(
        measured, loaded.scenario.name, experiment.useful_h, words, stand_in, team
    )
