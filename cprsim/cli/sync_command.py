"""``cprsim sync``: how fast the trainers are, over their number, and how often they synchronise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli.options import AsJson, OutFolder, Overrides, ScenarioFile
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import say, say_json
from cprsim.errors import one_line

if TYPE_CHECKING:
    from cprsim.sync.setting import SyncSetting
    from cprsim.sync.simulation import SpeedPoint

FIGURES = Path("results")
MOST_TRAINERS = 1000  # more are slow to simulate event by event
TRAINERS = "1,5,10,15,20,30,40"


def sync(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    trainers: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of trainers to simulate.")
    ] = TRAINERS,
    beside: Annotated[
        list[str],
        typer.Option(
            metavar="ALGORITHM[:EVERY]",
            help="Another algorithm beside the scenario's, such as fr-easgd:5 or 'fr-ma:15 s'; "
            "may be repeated.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    as_json: AsJson = False,
    out: OutFolder = FIGURES,
) -> None:
    """Simulate how the trainers stay in step: examples per second and sync gap over trainers.

    The scenario's section `sync` says how; the analytic load model stands beside the simulation.
    """
    from cprsim.experiments.train_in_step import sync_setting
    from cprsim.scenario import load_scenario

    counts = numbers_of(trainers)
    settings = [sync_setting(load_scenario(scenario, overrides))]
    for text in beside:
        more = [*overrides, *overrides_of(text)]
        settings.append(sync_setting(load_scenario(scenario, more)))
    from cprsim.plots.save import save_figure
    from cprsim.plots.sync import sync_figure
    from cprsim.present.sync import print_sync, sync_as_json
    from cprsim.results.folder import require_writable

    require_writable(out)
    loaded = load_scenario(scenario, overrides).scenario
    curves = _simulated(settings, counts, loaded.simulation.seed)
    out.mkdir(parents=True, exist_ok=True)
    figures = save_figure(sync_figure(curves, loaded.name), out / f"{loaded.name}-sync")
    if as_json:
        shown = sync_as_json(curves) | {"figures": [str(path) for path in figures]}
        say_json(shown)
        return
    from cprsim.cli.terminal import Terminal

    print_sync(Terminal(), loaded.name, curves)
    for path in figures:
        say(path)


def _is_count(word: str) -> bool:
    """Whether it is a number of trainers; a word of a thousand digits is not even read."""
    few = word.isdecimal() and len(word.lstrip("0")) <= len(str(MOST_TRAINERS))
    return few and 1 <= int(word) <= MOST_TRAINERS


def numbers_of(text: str) -> list[int]:
    """``1,5,10`` as ascending numbers of trainers. Raises ParameterError for anything else."""
    from cprsim.errors import ParameterError

    words = [word.strip() for word in text.split(",")]
    if not all(_is_count(word) for word in words):
        raise ParameterError(
            f"--trainers: `{one_line(text)}` is no list of numbers from 1 to {MOST_TRAINERS} such "
            "as 1,5,20"
        )
    return sorted({int(word) for word in words})


def overrides_of(text: str) -> list[str]:
    """``fr-easgd:5`` as overrides of a scenario's algorithm and rate."""
    algorithm, _, every = text.partition(":")
    of_bmuf = [] if "bmuf" in algorithm else ["sync.momentum=null", "sync.block_rate=null"]
    return [f"sync.algorithm={algorithm}", f"sync.every={every or 'null'}", *of_bmuf]


def _simulated(
    settings: list[SyncSetting], counts: list[int], seed: int
) -> list[tuple[SpeedPoint, ...]]:
    from cprsim.sync.simulation import over_trainers

    made = []
    for number, setting in enumerate(settings, start=1):
        pulse.doing(f"simulating {setting.name}, {number} of {len(settings)}")
        made.append(over_trainers(setting, counts, seed))
    return made
