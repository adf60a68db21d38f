"""``cprsim rehearse``: a scenario on real processes, beside what is predicted of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli.options import AsJson, OutFolder, Overrides, ScenarioFile
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import complain, say, say_json
from cprsim.cli.unforeseen import telling_what_is_kept

if TYPE_CHECKING:
    from cprsim.rehearsal.rehearsing import Rehearsal
    from cprsim.results import Result
    from cprsim.scenario import LoadedScenario

RESULTS = Path("results")
MOST_TRACES = 1000
BUSY = 3  # exit code


def rehearse(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    repeat: Annotated[
        int,
        typer.Option(
            metavar="N", help="Failure traces, each under every strategy.", min=1, max=MOST_TRACES
        ),
    ] = 1,
    strategies: Annotated[
        str, typer.Option(metavar="NAMES", help="Strategies to run, with commas; default all.")
    ] = "",
    smoke: Annotated[
        bool,
        typer.Option("--smoke", help="6 s of useful work, two failures, two strategies, a minute."),
    ] = False,
    as_json: AsJson = False,
    out: OutFolder = RESULTS,
) -> None:
    """Run a scenario on real processes, and set what they did beside what was predicted.

    Processes of this machine train the stand-in of the section `kernel`, save,
    are killed as the scenario says and come back. The same command goes on where it was
    interrupted.

    Exit codes: 0 all within tolerance, 1 something is off, 2 the input is wrong, 3 the machine was
    too busy to tell.
    """
    started = datetime.now(UTC)
    from cprsim.scenario import load_scenario

    loaded = load_scenario(scenario, overrides)
    from cprsim.rehearsal.setting import chosen_names, smoke_overrides

    if smoke:
        loaded = load_scenario(scenario, [*overrides, *smoke_overrides(loaded.scenario)])
    from cprsim.results.folder import require_writable, sole

    require_writable(out)
    names = chosen_names(strategies, loaded.scenario, smoke)
    journal = out / f".rehearsal-{_key(loaded, names)}"
    with telling_what_is_kept() as kept, sole(journal), _too_busy_is_an_exit_code():
        kept.say = lambda: f"runs that were done are kept in {journal}"
        rehearsal = _rehearsed(loaded, names, repeat, journal)
    result = _kept(rehearsal, loaded, out, started)
    _show(rehearsal, result, as_json)
    raise typer.Exit(rehearsal.exit_code)


@contextmanager
def _too_busy_is_an_exit_code() -> Iterator[None]:
    from cprsim.rehearsal.calibration import TooBusyError

    try:
        yield
    except TooBusyError as error:
        complain(f"cprsim: {error}")
        raise typer.Exit(BUSY) from None


def _key(loaded: LoadedScenario, names: tuple[str, ...]) -> str:
    """Names a journal: what decides the runs, but not how many there are."""
    from cprsim.results.identity import identity_of

    identity = identity_of(loaded)
    digest = hashlib.sha256("\0".join([identity.digest, *names]).encode()).hexdigest()
    return f"{identity.folder_name}-{digest[:8]}"


def _rehearsed(
    loaded: LoadedScenario, names: tuple[str, ...], repeat: int, journal: Path
) -> Rehearsal:
    from cprsim.experiments.assemble import assemble
    from cprsim.experiments.proxy_model import proxy_model
    from cprsim.rehearsal.rehearsing import rehearse as run
    from cprsim.rehearsal.setting import require_rehearsable

    experiment = assemble(loaded)
    require_rehearsable(experiment)  # before the stand-in is made, which takes its time
    pulse.doing("rehearsing")
    return run(experiment, proxy_model(loaded), names, repeat, journal, complain)


def _kept(
    rehearsal: Rehearsal, loaded: LoadedScenario, out: Path, started: datetime
) -> Result | None:
    from cprsim.cli.finished import target_of
    from cprsim.plots.run import run_figures
    from cprsim.plots.save import save_figures
    from cprsim.rehearsal.keeping import keep

    target = target_of(out, loaded, started)
    return keep(target, rehearsal, lambda result: save_figures(run_figures(result), result.path))


def _show(rehearsal: Rehearsal, result: Result | None, as_json: bool) -> None:
    from cprsim.rehearsal.keeping import as_plain

    folder = None if result is None else str(result.path)
    if as_json:
        say_json(as_plain(rehearsal) | {"results": folder})
        return
    from cprsim.cli.terminal import Terminal
    from cprsim.present.rehearsal import rehearsal_blocks
    from cprsim.present.terminal import show

    show(Terminal(), rehearsal_blocks(rehearsal))
    if folder is not None:
        say(f"Results in {folder}")
