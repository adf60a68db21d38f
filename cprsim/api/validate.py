"""``validate``: everything that is wrong with a scenario; and the JSON Schema of scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cprsim.api import command
from cprsim.api.scenario import Overrides, ScenarioLike, source_of
from cprsim.errors import CprsimError, InputError, ParameterError, Place, Problem

if TYPE_CHECKING:
    from cprsim.present.answer import Answer
    from cprsim.scenario.reading import LoadedScenario


@command
def validate(
    scenario: ScenarioLike | None = None, overrides: Overrides = (), *, schema: bool = False
) -> Answer:
    """Say everything that is wrong with a scenario.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`.
    schema : bool, default False
        Show the JSON Schema of scenarios instead, for editors: keys, meanings, units.

    Returns
    -------
    Answer
        ``values["valid"]``; ``frames["problems"]``: file, line, key, message.
        ``values["schema"]``, where it was asked for.

    Raises
    ------
    ParameterError
        Neither a scenario nor the schema was asked for.
    """
    from cprsim.present.validate import answer_of_checked, answer_of_schema

    if schema:
        from cprsim.scenario.schema import json_schema

        return answer_of_schema(json_schema())
    if scenario is None:
        raise ParameterError("scenario: name one, or ask for the --schema")
    source = source_of(scenario, overrides)
    is_named = isinstance(scenario, str | Path) and source.text is None
    name = str(scenario if is_named else source.path)
    try:
        loaded = source.read()
        return answer_of_checked(name, loaded.scenario, _warnings(loaded), ())
    except InputError as error:
        problems = error.problems
    except CprsimError as error:
        problems = (Problem(Place(name), "", str(error)),)
    return answer_of_checked(name, None, (), problems)


def _warnings(loaded: LoadedScenario) -> tuple[str, ...]:
    """What a run would warn of. Raises CprsimError for what only building the parts shows."""
    from cprsim.experiments.assemble import assemble
    from cprsim.fleets.population import population_of
    from cprsim.results.run import warnings_of
    from cprsim.scenario.kernel import ClickFile

    experiment = assemble(loaded)
    kernel, fleet = loaded.scenario.kernel, loaded.scenario.fleet
    if kernel is not None and isinstance(kernel.clicks, ClickFile):
        loaded.input_file(kernel.clicks.file, "kernel.clicks.file", "a click log")
    if fleet is not None and fleet.table is not None:
        population_of(loaded)
    return warnings_of(experiment, loaded.scenario.cluster)
