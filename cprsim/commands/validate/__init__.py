"""``validate``: everything that is wrong with a scenario; and the JSON Schema of scenarios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.commands import command
from cprsim.commands.options import Overrides, ScenarioLike, source_of
from cprsim.commands.sweep.points import check_axes
from cprsim.errors import CprsimError, InputError, ParameterError, Place, Problem
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document, ListingBlock
from cprsim.results.run import warnings_of
from cprsim.scenario.assemble import assemble
from cprsim.scenario.kernel import ClickFile
from cprsim.scenario.population import population_of
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.schema import Scenario as Settings
from cprsim.scenario.schema import json_schema


@command("cprsim validate quickstart --set job.useful='30 h'")
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

    Examples
    --------
    >>> answer = cprsim.validate("quickstart", {"job.useful": "-1 h"})
    >>> answer.frames["problems"]["key"].tolist()
    ['job.useful']
    """
    if schema:  # in a pipe, nothing else
        every = json_schema()
        listing = ListingBlock("JSON Schema", json.dumps(every, indent=2, ensure_ascii=False))
        document = Document(
            "The JSON Schema of scenarios", "Which keys are there?", [], (), listing
        )
        return Answer("validate", "schema", lambda: document, values={"schema": every})
    if scenario is None:
        raise ParameterError("name a scenario, or ask for the schema", option="scenario")
    source = source_of(scenario, overrides)
    is_named = isinstance(scenario, str | Path) and source.written is None
    name = str(scenario if is_named else source.path)
    try:
        loaded = source.read()
        return _answer(name, loaded.scenario, _warnings(loaded), ())
    except InputError as error:
        problems = error.problems
    except CprsimError as error:
        problems = (Problem(Place(name), "", str(error)),)
    return _answer(name, None, (), problems)


def _answer(
    name: str, scenario: Settings | None, warnings: Sequence[str], problems: Sequence[Problem]
) -> Answer:
    """A scenario that can run, or None and each problem with its file and line."""
    rows = [
        (str(replace(problem.place, line=None)), problem.place.line, problem.key, problem.message)
        for problem in problems
    ]
    frame = pd.DataFrame(rows, columns=["file", "line", "key", "message"], dtype=object)
    values: dict[str, Any] = {"valid": scenario is not None}
    verdict, about = "this can't run", name
    if scenario is not None:
        strategies, about = [entry.name for entry in scenario.recovery], scenario.name
        values |= {"strategies": strategies, "warnings": list(warnings)}
        verdict = f"ok ({about}: {', '.join(strategies)})"
    document = Document(
        f"What is wrong with a scenario: {name}",
        "Is this a scenario?",
        [f"{name}: {verdict}"],
        table=ListingBlock("What is wrong", str(InputError(problems))) if problems else None,
        remarks=[f"Warning: {warning}" for warning in warnings],
    )
    frames, exit_code = {"problems": frame}, 2 if problems else 0
    return Answer("validate", about, lambda: document, frames, values, exit_code=exit_code)


def _warnings(loaded: LoadedScenario) -> tuple[str, ...]:
    """Warnings of a run. Raises CprsimError for errors found only by building its parts."""
    check_axes(loaded)

    experiment = assemble(loaded)
    kernel, fleet = loaded.scenario.kernel, loaded.scenario.fleet
    if kernel is not None and isinstance(kernel.clicks, ClickFile):
        loaded.input_file(kernel.clicks.file, "kernel.clicks.file", "a click log")
    if fleet is not None and fleet.table is not None:
        population_of(loaded)
    return tuple(warnings_of(experiment, loaded.scenario.cluster).values())
