"""``sync``: how fast trainers are that stay in step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Annotated

from cprsim.commands import command
from cprsim.commands.options import CliOption, Overrides, ScenarioLike, source_of
from cprsim.commands.sync.answer import answer_of_sync
from cprsim.errors import ParameterError, one_line, watch
from cprsim.pages.answer import Answer
from cprsim.training.in_step.load_model import SpeedPoint
from cprsim.training.in_step.simulation import speed_at
from cprsim.training.train_in_step import sync_setting

MOST_TRAINERS = 1000  # more are slow to simulate event by event


@command("cprsim sync shadowsync --trainers 1,5")
def sync(
    scenario: ScenarioLike,
    overrides: Overrides = (),
    *,
    trainers: Annotated[str | Sequence[int], CliOption(metavar="N,N,...")] = "1,5,10,15,20,30,40",
    beside: Annotated[
        Sequence[str], CliOption(metavar="ALGORITHM[:EVERY]", many=True, complete="algorithm")
    ] = (),
) -> Answer:
    """Simulate the synchronisation of trainers.

    Examples per second and sync gap over the number of trainers, by simulation and by the analytic
    load model. The scenario's section 'sync' describes the synchronisation.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`.
    trainers : str or sequence of int, default "1,5,10,15,20,30,40"
        Numbers of trainers to simulate.
    beside : sequence of str, optional
        Another algorithm to compare, such as fr-easgd:5 or 'fr-ma:15 s'; may be repeated.

    Returns
    -------
    Answer
        ``frames["points"]``: a row per algorithm and number of trainers, simulated and by the load
        model.

    Raises
    ------
    CprsimError
        The scenario, a number of trainers or an algorithm is wrong.

    Examples
    --------
    >>> points = cprsim.sync("shadowsync", trainers=[1, 5]).frames["points"]
    >>> points["n_trainers"].unique().tolist()
    [1, 5]
    """
    source = source_of(scenario, overrides)
    loaded, numbers = source.read(), numbers_of(trainers)

    settings = [sync_setting(loaded), *(sync_setting(source.read(changes(one))) for one in beside)]
    seed, n_points = loaded.scenario.simulation.seed, len(settings) * len(numbers)
    points: list[SpeedPoint] = []
    with watch.progress("simulating") as on_progress:
        for setting, n in product(settings, numbers):
            on_progress(len(points), n_points)
            points.append(speed_at(setting, n, seed))
    starts = range(0, n_points, len(numbers))
    return answer_of_sync([points[i : i + len(numbers)] for i in starts], loaded.scenario.name)


def numbers_of(trainers: str | Sequence[int]) -> list[int]:
    """Ascending numbers of trainers, also from ``1,5,10``. Raises ParameterError."""
    words = trainers.split(",") if isinstance(trainers, str) else trainers
    try:
        n_trainers = sorted({int(word) for word in words})
    except ValueError:  # no number, or one of thousands of digits
        n_trainers = []
    if not n_trainers or n_trainers[0] < 1 or n_trainers[-1] > MOST_TRAINERS:
        raise ParameterError(
            f"{one_line(str(trainers))!r} should be numbers from 1 to {MOST_TRAINERS} "
            "such as 1,5,20",
            option="--trainers",
        )
    return n_trainers


def changes(beside: str) -> list[str]:
    """``fr-easgd:5`` as overrides of a scenario's algorithm and rate."""
    algorithm, _, every = beside.partition(":")
    of_bmuf = [] if "bmuf" in algorithm else ["sync.momentum=null", "sync.block_rate=null"]
    return [f"sync.algorithm={algorithm}", f"sync.every={every or 'null'}", *of_bmuf]
