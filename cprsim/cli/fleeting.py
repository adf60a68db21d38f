"""What ``cprsim fleet`` does between the scenario and the table; heavy to import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from cprsim.cli.finished import finished_or_make, target_of
from cprsim.cli.interrupts import Kept
from cprsim.cli.progress import progress
from cprsim.errors import ParameterError
from cprsim.fleets.course import prepare
from cprsim.fleets.deciding import decide, knees
from cprsim.fleets.folder import FleetResult, load_fleet, write_fleet
from cprsim.fleets.options import SHORT, OptionAxis, points_of, run_options, varied
from cprsim.fleets.population import table_of
from cprsim.foreign import one_line
from cprsim.plots.fleet import draw_fleet
from cprsim.results import Identity, input_digests
from cprsim.results.identity import identity_of
from cprsim.results.store import FOLDER, PointStore
from cprsim.scenario import LoadedScenario
from cprsim.scenario.sweep import values_along
from cprsim.scenario.yaml_text import Plain
from cprsim.workers import Workers

MOST_POINTS = 1_000
EXAMPLE = "write KEY=LOW:HIGH:linN or KEY=A,B,C, for example --over spares=0:64:lin9"


def axes_of(over: Sequence[str]) -> tuple[OptionAxis, ...]:
    """What ``--over`` varies. Raises ParameterError for what is no axis."""
    found: dict[str, OptionAxis] = {}
    for said in over:
        name, equals, text = (part.strip() for part in said.partition("="))
        if not equals or not name:
            raise ParameterError(f"--over {one_line(said)}: {EXAMPLE}")
        key = SHORT.get(name, name)
        if key in found:
            raise ParameterError(f"--over {one_line(name)}: is there twice")
        try:
            found[key] = OptionAxis(key, values_along(text))
        except ParameterError as error:
            raise ParameterError(f"--over {one_line(name)}: {one_line(text)} {error}") from None
    axes = tuple(found.values())
    if (n := len(points_of(axes))) > MOST_POINTS:
        raise ParameterError(f"--over: makes {n:,} points; at most {MOST_POINTS:,} are possible")
    return axes


def fleet_into(
    root: Path,
    loaded: LoadedScenario,
    axes: Sequence[OptionAxis],
    workers: Workers,
    started: datetime,
    kept: Kept,
) -> tuple[FleetResult, bool]:
    """Simulate a fleet and write its folder under `root`, or find it there.

    Parameters
    ----------
    kept : learns that finished histories are

    Returns
    -------
    the fleet, and whether it was there already

    Raises
    ------
    CprsimError : of whatever goes wrong; finished histories are kept
    """
    target = target_of(root, loaded, started, identity=_identity(loaded, axes))
    store = PointStore(target.root)

    def make() -> FleetResult:
        kept.hold(lambda: f"finished histories are kept in {store.root / FOLDER}")
        with progress("histories") as on_progress:
            options = run_options(loaded, points, workers, "--over", on_progress, store=store)
        with progress("unknown inputs") as on_progress:
            decision = decide(loaded, options, axes, workers, on_progress, store)
        return write_fleet(
            target,
            loaded,
            axes,
            options,
            decision,
            knees(options, axes),
            lambda result: draw_fleet(result, result.path),
        )

    points = _points(loaded, axes)
    return finished_or_make(target, load_fleet, make, alone=True)


def _points(loaded: LoadedScenario, axes: Sequence[OptionAxis]) -> list[dict[str, Plain]]:
    """The scenario's own values first, then those of the axes. What is wrong is said here."""
    own, others = dict[str, Plain](), []
    for where in points_of(axes) if axes else []:
        scenario = varied(loaded, where, "--over")
        prepare(scenario)
        if scenario.scenario == loaded.scenario:
            own = where
        else:
            others.append(where)
    prepare(loaded)
    return [own, *others]


def _identity(loaded: LoadedScenario, axes: Sequence[OptionAxis]) -> Identity:
    over = "".join(f"# --over {one.key}: {list(one.values.written)}\n" for one in axes)
    identity = identity_of(loaded, "fleet")
    inputs = dict(identity.inputs)
    table = None if loaded.scenario.fleet is None else loaded.scenario.fleet.table
    if table is not None:
        digests = input_digests([table_of(loaded, table)])
        inputs |= {f"jobs {name}": digest for name, digest in digests.items()}
    return replace(identity, scenario_yaml=over + identity.scenario_yaml, inputs=inputs)
