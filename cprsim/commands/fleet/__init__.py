"""``fleet``: many jobs on one cluster, in hours and money."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cprsim.commands import command
from cprsim.commands.fleet.answer import answer_of_fleet
from cprsim.commands.fleet.figures import fleet_figures
from cprsim.commands.fleet.folder import FleetResult, load_fleet, write_fleet
from cprsim.commands.fleet.histories import PreparedFleet, prepare
from cprsim.commands.fleet.options import (
    Axes,
    decide,
    is_unpriced,
    points_of,
    run_options,
    unknown_of,
    varied,
)
from cprsim.commands.options import (
    Dask,
    Over,
    Overrides,
    ResultsFolder,
    ScenarioLike,
    Seed,
    Workers,
    assignments,
    shortcuts,
    source_of,
)
from cprsim.errors import ParameterError, choices, one_line, watch
from cprsim.pages.answer import Answer
from cprsim.pages.figures import drawing
from cprsim.results.folder import ResultTarget, load_or_compute
from cprsim.results.identity import Identity, file_digest, identity_of
from cprsim.results.store import PointStore
from cprsim.scenario.job import Values, values_along
from cprsim.scenario.population import fleet_of, is_alone, of_one, table_of
from cprsim.scenario.reading import LoadedScenario, said_axes
from cprsim.scenario.schema import Scenario
from cprsim.scenario.yaml_text import Plain
from cprsim.workers import Workers as Pool

SHORT_KEYS = {"spares": "fleet.spares", "nodes": "fleet.nodes", "storage": "fleet.storage"}


@command("cprsim fleet planning --over spares=0,2 --histories 2")
def fleet(
    scenario: ScenarioLike,
    over: Over = (),
    overrides: Overrides = (),
    *,
    seed: Seed = None,
    histories: int | None = None,
    workers: Workers = None,
    dask: Dask = None,
    folder: ResultsFolder = None,
) -> Answer:
    """Simulate many jobs on one cluster; choose strategy and spares.

    The scenario describes a typical job; its section 'fleet' gives the number of jobs, their
    differences and their shared resources. All options meet the same failures. The answer is the
    cost of failures, the cheapest strategy and number of spares, the saving per month, and the
    unknown input that would reverse the choice. Finished histories are stored: the same command
    continues where it was stopped, and only new options run.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`. A scenario without a section `fleet` is a fleet of its one job.
    over : mapping or sequence of str, optional
        Options to choose from, e.g. spares=0:64:lin9 or recovery.full.interval='1 h,2 h,4 h'; may
        be repeated. `spares`, `nodes` and `storage` are short for fleet.KEY. Default: the
        scenario's strategies at its own values.
    seed : int, optional
        Seed of all random numbers; default: the scenario's.
    histories : int, optional
        Histories of the fleet; default: the scenario's.
    workers : int, optional
        Processes on this machine; default: one per core.
    dask : str, optional
        Scheduler of a dask cluster that does the work.
    folder : str or Path, optional
        Folder of the results folders and of finished histories. None: nothing is kept.

    Returns
    -------
    Answer
        ``frames["options"]``: a row per option, with its cost per month; ``["parts"]``: that
        cost by part; ``["unknown"]``: values at which an input reverses the answer.

    Raises
    ------
    CprsimError
        The scenario or an option is wrong.

    Examples
    --------
    >>> planned = cprsim.fleet("planning", {"spares": [0, 2]}, histories=2)
    >>> planned.values["best"]
    'cpr at spares 0'
    """
    changes = shortcuts("fleet", histories=histories) + shortcuts(seed=seed)
    source = source_of(scenario, overrides)
    is_one = (alone := source.read()).scenario.fleet is None
    if is_one:
        source = source_of(source, of_one(alone))
    loaded, axes = source.read(changes), axes_of(over, is_one=is_one)

    pool, cases = Pool(workers, "dask" if dask else "local", dask), _cases(loaded, axes)
    unknown_of(loaded, axes)  # refuses a wrong section before the work
    draw = drawing(folder, fleet_figures)

    def simulated(target: ResultTarget) -> FleetResult:
        store = PointStore(target.root)
        watch.keeps(lambda: f"finished histories are kept in {store.folder}")
        with watch.progress("histories") as on_progress:
            options = run_options(loaded, cases, pool, store, on_progress=on_progress)
        with watch.progress("unknown inputs") as on_progress:
            decision = decide(loaded, options, axes, pool, store, on_progress)
        return write_fleet(target, loaded, axes, options, decision, draw)

    identity = _identity(loaded, axes)
    stored = load_or_compute(
        folder, loaded, load_fleet, simulated, identity=identity, one_writer=True
    )
    return answer_of_fleet(stored.made, **stored.about())


def axes_of(over: Mapping[str, Any] | Sequence[str], *, is_one: bool = False) -> dict[str, Values]:
    """The axes of ``--over``; spares of one job are the fleet's. Raises CprsimError if invalid."""
    axes: dict[str, Values] = {}
    for name, written in said_axes(assignments(over)).items():
        key = SHORT_KEYS.get(name.removeprefix("cluster.") if is_one else name, name)
        if key in axes:
            raise ParameterError(f"`{one_line(name)}` is there twice", option="--over")
        if "." not in key and key not in Scenario.model_fields:
            message = f"`{one_line(name)}` is neither SECTION.KEY nor short for one; "
            raise ParameterError(message + choices(name, SHORT_KEYS), option="--over")
        try:
            axes[key] = values_along(written)
        except ParameterError as error:
            message = f"`{one_line(name)}={one_line(str(written))}` {error}"
            raise ParameterError(message, option="--over") from None
    return axes


def _cases(loaded: LoadedScenario, axes: Axes) -> list[tuple[dict[str, Plain], int]]:
    """Every strategy at each point of the axes; first at the scenario's own, if not there."""
    points: list[tuple[dict[str, Plain], LoadedScenario]] = []
    prepared = prepare(loaded)
    for key, axis in axes.items():
        at_each = (varied(loaded, {key: value}) for value in axis.written)
        other = next((one for one in at_each if one.scenario != loaded.scenario), None)
        if other is not None and _is_same(prepared, prepare(other)):
            raise ParameterError(
                f"--over {one_line(key)}: changes nothing, because each job of this fleet has "
                "its own value (fleet.table, fleet.vary)"
            )
    for where in points_of(axes) if axes else []:
        scenario = varied(loaded, where)
        if prepare(scenario).work != prepared.work:
            values = ", ".join(f"{key}={value}" for key, value in where.items())
            raise ParameterError(
                f"`{one_line(values)}` changes the jobs, their useful hours or the window: options "
                "of a fleet are compared at the same work; write a scenario for each fleet",
                option="--over",
            )
        if is_alone(fleet_of(loaded)) and not is_alone(fleet_of(scenario)):
            message = "jobs share `nodes` and `storage`, and this one is alone: compare `spares`"
            raise ParameterError(message, option="--over")
        points.append((where, scenario))
    is_among = any(scenario.scenario == loaded.scenario for _, scenario in points)
    if not (is_among or is_unpriced(loaded, axes)):
        points.insert(0, ({}, loaded))
    return [
        (where, strategy)
        for where, scenario in points
        for strategy in range(len(scenario.scenario.recovery))
    ]


def _is_same(fleet: PreparedFleet, other: PreparedFleet) -> bool:
    """Whether two fleets have the same jobs and the same shared resources."""
    scenarios = [[kind.scenario for kind in one.kinds] for one in (fleet, other)]
    return fleet.section == other.section and scenarios[0] == scenarios[1]


def _identity(loaded: LoadedScenario, axes: Axes) -> Identity:
    """The inputs of the result. Raises ResultError where one can't be read."""
    identity, section = identity_of(loaded, "fleet"), loaded.scenario.fleet
    over = "".join(f"# --over {key}: {list(values.written)}\n" for key, values in axes.items())
    inputs = dict(identity.inputs)
    if section is not None and section.table is not None:
        table = table_of(loaded, section.table)
        inputs[f"jobs {table.name}"] = file_digest(table)
    return replace(identity, scenario_yaml=over + identity.scenario_yaml, inputs=inputs)
