"""``cprsim scenarios``, ``validate`` and ``schema``: about scenarios, without simulating."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cprsim.cli import completing
from cprsim.cli.options import AsJson, Force, Overrides, ScenarioFile
from cprsim.cli.saying import say, say_json, say_list

if TYPE_CHECKING:
    from cprsim.errors import Problem
    from cprsim.scenario import LoadedScenario


def scenarios(
    copy: Annotated[
        str | None,
        typer.Option(
            "--copy",
            metavar="NAME",
            help="Copy this one into DIR, to change it.",
            show_default=False,
            autocompletion=completing.shipped,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="With --copy; default: here.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the scenarios that come with cprsim, or copy one; every command takes them by name."""
    from cprsim.errors import ParameterError
    from cprsim.files import about, shipped_scenarios

    if copy is not None:
        say(_copied(copy, folder or Path()))
        return
    if folder is not None:
        raise ParameterError(f"{folder}: a folder goes with --copy NAME")
    there = shipped_scenarios()
    if as_json:
        say_json([{"name": n, "about": about(p), "path": str(p)} for n, p in there.items()])
        return
    say_list({name: about(path) for name, path in there.items()})


def _copied(name: str, folder: Path) -> Path:
    """Copy a scenario and, where there is none, the schema that its first line names."""
    from cprsim.errors import ParameterError
    from cprsim.files import put_schema_beside, require_new, shipped_scenarios, write_new

    there = shipped_scenarios()
    if name not in there:
        raise ParameterError(f"--copy: {name!r} is none of {', '.join(there)}")
    copy = folder / there[name].name
    require_new(copy)
    write_new(copy, there[name].read_text("utf-8"))
    put_schema_beside(copy)
    return copy


def validate(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Check a scenario and say everything that is wrong with it."""
    from cprsim.errors import CprsimError, InputError, Place, Problem

    try:
        name, strategies, warned = _checked(scenario, overrides)
    except CprsimError as error:
        if not as_json:
            raise
        whole = (Problem(Place(scenario), "", str(error)),)
        problems = error.problems if isinstance(error, InputError) else whole
        say_json({"valid": False, "problems": [_plain(one) for one in problems]})
        raise typer.Exit(2) from None
    if as_json:
        found = {"name": name, "strategies": strategies, "warnings": warned}
        say_json({"valid": True, "problems": [], **found})
        return
    say(f"{scenario}: ok ({name}: {', '.join(strategies)})")
    for warning in warned:
        say(f"{scenario}: warning: {warning}")


def _checked(scenario: Path, overrides: list[str]) -> tuple[str, list[str], list[str]]:
    """Name, strategies and warnings of a scenario. Raises CprsimError with all that is wrong."""
    from cprsim.scenario import load_scenario

    loaded = load_scenario(scenario, overrides)
    from cprsim.experiments.assemble import assemble  # slow to load: what is wrong is said before

    # finds what only building the parts shows, in a failure trace for example
    experiment = assemble(loaded)
    _require_files(loaded)
    from cprsim.results.run import warnings_of

    strategies = [entry.name for entry in loaded.scenario.recovery]
    return loaded.scenario.name, strategies, list(warnings_of(experiment, loaded.scenario.cluster))


def _require_files(loaded: LoadedScenario) -> None:
    """Raise ScenarioError where a file that other commands read is not there, or no table."""
    from cprsim.scenario.kernel import ClickFile

    kernel, fleet = loaded.scenario.kernel, loaded.scenario.fleet
    if kernel is not None and isinstance(kernel.clicks, ClickFile):
        loaded.input_file(kernel.clicks.file, "kernel.clicks.file", "a click log")
    if fleet is not None and fleet.table is not None:
        from cprsim.fleets.population import population_of

        population_of(loaded)


def _plain(problem: Problem) -> dict[str, Any]:
    place = problem.place
    return {
        "file": str(place.file),
        "line": place.line,
        "key": problem.key,
        "message": problem.message,
    }


def schema(
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write it to a file instead, which the first line of a scenario may name: "
            "# yaml-language-server: $schema=FILE (as seen from the scenario).",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Print the JSON Schema of scenarios: every key with its meaning and unit, for editors."""
    from cprsim.files import write_new, write_over
    from cprsim.scenario import json_schema

    if save is None:
        say_json(json_schema())
        return
    text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    (write_over if force else write_new)(save, text)
    say(save)
