"""A fleet between the scenario and its results folder; heavy to import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from cprsim.errors import ParameterError, one_line
from cprsim.fleets.course import prepare
from cprsim.fleets.folder import FleetResult, load_fleet, write_fleet
from cprsim.fleets.options import (
    SHORT,
    Axes,
    decide,
    knees,
    points_of,
    run_options,
    unknown_of,
    varied,
)
from cprsim.fleets.population import table_of
from cprsim.making.watch import Watch
from cprsim.results import Identity, input_digests
from cprsim.results.folder import ResultTarget, finished_or_make
from cprsim.results.identity import identity_of
from cprsim.results.store import PointStore
from cprsim.scenario import LoadedScenario, Plain
from cprsim.scenario.sweep import Values, values_along
from cprsim.workers import Workers

MOST_POINTS = 1_000
EXAMPLE = "write KEY=LOW:HIGH:linN or KEY=A,B,C, for example --over spares=0:64:lin9"


def said_axes(over: Sequence[str]) -> dict[str, Values]:
    """What ``--over`` varies. Raises ParameterError for what is no axis."""
    pairs = []
    for axis in over:
        name, equals, text = (part.strip() for part in axis.partition("="))
        if not equals or not name:
            raise ParameterError(f"--over {one_line(axis)}: {EXAMPLE}")
        pairs.append((name, text))
    return axes_of(pairs, "--over")


def axes_of(pairs: Iterable[tuple[str, str | Sequence[Any]]], option: str) -> dict[str, Values]:
    """Axes of keys and their values, which an option named. Raises ParameterError for no axis."""
    axes: dict[str, Values] = {}
    for name, written in pairs:
        key = SHORT.get(name, name)
        if key in axes:
            raise ParameterError(f"{option} {one_line(name)}: is there twice")
        try:
            axes[key] = values_along(written)
        except ParameterError as error:
            text = one_line(str(written))
            raise ParameterError(f"{option} {one_line(name)}: {text} {error}") from None
    if (n := len(points_of(axes))) > MOST_POINTS:
        raise ParameterError(f"{option}: makes {n:,} points; at most {MOST_POINTS:,} are possible")
    return axes


def fleet_into(
    target: ResultTarget,
    loaded: LoadedScenario,
    axes: Axes,
    workers: Workers,
    watch: Watch,
    *,
    option: str = "--over",
    keeps: Callable[[Callable[[], str]], object] = lambda say: None,
    draws: bool = True,
) -> tuple[FleetResult, bool]:
    """Simulate a fleet and write its folder, or find it there.

    Raises CprsimError: of whatever goes wrong; finished histories are kept.
    """
    store = PointStore(target.root)

    def draw(result: FleetResult) -> None:
        if draws:
            from cprsim.plots.fleet import fleet_figures
            from cprsim.plots.save import save_figures

            save_figures(fleet_figures(result), result.path)

    def make() -> FleetResult:
        keeps(lambda: f"finished histories are kept in {store.folder}")
        with watch.progress("histories") as on_progress:
            options = run_options(loaded, wanted, workers, store, option, on_progress)
        with watch.progress("unknown inputs") as on_progress:
            decision = decide(loaded, options, axes, workers, store, on_progress)
        return write_fleet(target, loaded, axes, options, decision, knees(options, axes), draw)

    wanted = _wanted(loaded, axes, option)
    unknown_of(loaded, axes)
    return finished_or_make(target.folder, load_fleet, make, warn=watch.warn, alone=True)


def _wanted(loaded: LoadedScenario, axes: Axes, option: str) -> list[tuple[dict[str, Plain], int]]:
    """All strategies at the scenario's own values, then at those of the axes.

    What is wrong is said here.
    """
    own, others = dict[str, Plain](), []
    for where in points_of(axes) if axes else []:
        scenario = varied(loaded, where, option)
        prepare(scenario)
        if scenario.scenario == loaded.scenario:
            own = where
        else:
            others.append((where, scenario))
    prepare(loaded)
    return [
        (where, strategy)
        for where, scenario in [(own, loaded), *others]
        for strategy in range(len(scenario.scenario.recovery))
    ]


def fleet_identity(loaded: LoadedScenario, axes: Axes) -> Identity:
    """What decides the result of a fleet. Raises ResultError where an input can't be read."""
    over = "".join(f"# --over {key}: {list(one.written)}\n" for key, one in axes.items())
    identity = identity_of(loaded, "fleet")
    inputs = dict(identity.inputs)
    table = None if loaded.scenario.fleet is None else loaded.scenario.fleet.table
    if table is not None:
        digests = input_digests([table_of(loaded, table)])
        inputs |= {f"jobs {name}": digest for name, digest in digests.items()}
    return replace(identity, scenario_yaml=over + identity.scenario_yaml, inputs=inputs)
