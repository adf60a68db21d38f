"""``rehearse``: a scenario on real processes, compared with its prediction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from annotated_types import Ge, Le

from cprsim.commands import command
from cprsim.commands.options import CliOption, Overrides, ResultsFolder, ScenarioLike, source_of
from cprsim.commands.rehearse.answer import answer_of_rehearse
from cprsim.commands.run.answer import drawings_of_run
from cprsim.errors import watch
from cprsim.pages.answer import Answer
from cprsim.pages.figures import drawing
from cprsim.rehearsal import rehearsing
from cprsim.rehearsal.setting import chosen_names, require_rehearsable, smoke_overrides
from cprsim.results.folder import exclusive_lock, load_or_compute, require_writable
from cprsim.results.identity import identity_of
from cprsim.results.run import load_result
from cprsim.scenario.assemble import assemble
from cprsim.training.proxy_model import proxy_model


@command("cprsim rehearse rehearsal --smoke")
def rehearse(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    repeat: Annotated[int, Ge(1), Le(1000), CliOption(metavar="N")] = 1,
    strategies: Annotated[
        str | Sequence[str], CliOption(metavar="NAME,...", complete="entry")
    ] = "",
    smoke: bool = False,
    folder: ResultsFolder = None,
) -> Answer:
    """Run a scenario with real processes, beside its prediction.

    Processes of this machine train the stand-in of the section 'kernel', save, are killed as the
    scenario says and come back. The same command continues where it was interrupted.

    Exit codes: 0 all within tolerance, 1 something is off, 2 the input is wrong, 3 the machine was
    too busy for a result.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`.
    repeat : int, default 1
        Failure traces, each under every strategy.
    strategies : str or sequence of str, optional
        Strategies to run, with commas; default: all.
    smoke : bool, default False
        6 s of useful work, two failures, two strategies: a minute.
    folder : str or Path, optional
        Folder of the results folders and of finished runs. None: nothing is kept.

    Returns
    -------
    Answer
        ``frames["quantities"]``: a row per strategy and quantity, predicted and measured;
        ``["attempts"]``: a row per run, with its machine's load and its replay. `exit_code` is
        that of the command. ``rows`` are those of `run`.

    Raises
    ------
    ParameterError
        The scenario can't be rehearsed; the message says how to change it.
    WorkerError
        The machine is too busy for any run, or a process failed otherwise than as ordered.
    """
    source = source_of(scenario, overrides)
    loaded = source.read()

    if smoke:
        loaded = source.read(smoke_overrides(loaded.scenario))
    names = chosen_names(strategies, loaded.scenario, smoke)

    experiment = assemble(loaded)
    require_rehearsable(experiment)  # before the stand-in is made, which takes its time
    started = identity_of(loaded)
    digest = hashlib.sha256("\0".join([started.digest, *names]).encode()).hexdigest()
    with TemporaryDirectory() if folder is None else nullcontext(folder) as root:
        require_writable(Path(root))
        journal = Path(root) / f".rehearsal-{started.folder_name}-{digest[:8]}"
        watch.keeps(lambda: f"runs that were done are kept in {journal}")
        with exclusive_lock(journal):
            rehearsal = rehearsing.rehearse(experiment, proxy_model(loaded), names, repeat, journal)

    draw = drawing(folder, drawings_of_run)
    if not any(attempt.is_valid for attempt in rehearsal.attempts):
        return answer_of_rehearse(rehearsal)
    stored = load_or_compute(
        folder, loaded, load_result, lambda target: rehearsing.keep(target, rehearsal, draw),
        identity=rehearsing.identity(rehearsal, loaded),
    )  # fmt: skip
    return answer_of_rehearse(rehearsal, stored.made, **stored.about())
