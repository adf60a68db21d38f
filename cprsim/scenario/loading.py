"""From a YAML file to a checked scenario that knows where each of its keys stands."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from cprsim.errors import Place, Problem, ScenarioError
from cprsim.foreign import one_line
from cprsim.scenario.failures import SOURCES, TraceFailures
from cprsim.scenario.overrides import apply_axes, apply_overrides, put
from cprsim.scenario.problems import in_order, problems_of
from cprsim.scenario.quantities import shown
from cprsim.scenario.schema import Scenario
from cprsim.scenario.steps import with_times
from cprsim.scenario.unknown import unknown_values
from cprsim.scenario.yaml_text import KeyPath, Plain, YamlDocument, as_written, read_document

MAX_BYTES = 500_000
OURS = "CPRSIM_"  # begins the names of the environment variables that a scenario may ask for
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario, the file it came from, and where in it each key stands."""

    scenario: Scenario
    path: Path
    trace_path: Path | None = None  # of the trace that is replayed, variables replaced
    places: Mapping[KeyPath, Place] = field(default_factory=dict, repr=False)
    data: Mapping[str, Plain] = field(default_factory=dict, repr=False)  # as written, overrides in

    def varied(self, changes: Mapping[str, Plain], place: Callable[[str], Place]) -> LoadedScenario:
        """The scenario with other values, and without its section `sweep`.

        Parameters
        ----------
        changes : dotted keys and their values, as a scenario would say them
        place : where a change was asked for, by its key

        Raises
        ------
        ScenarioError : the values do not make a scenario; the places are those of the changes
        """
        data: dict[str, Plain] = deepcopy({k: v for k, v in self.data.items() if k != "sweep"})
        places = dict(self.places)
        for key, value in changes.items():
            put(data, key, value, places, place(key))
        scenario = _validated(data, places, [])
        trace_path = _trace_path(scenario, self.path, places)
        return LoadedScenario(scenario, self.path, trace_path, places, data)

    def input_file(self, file: str, key: str, source: str) -> Path:
        """The path of a file that the scenario names under a key, variables replaced; it is there.

        Raises ScenarioError otherwise, which says that the file is `source`.
        """
        return input_file(file, self.path, self.place(key), key, source)

    def place(self, key: str) -> Place:
        """Where a dotted key stands; entries of `recovery` by name or number.

        A key that the file leaves out stands where the section does that would hold it.
        """
        parts = list(key.split(".")) if key else []
        path: KeyPath = ()
        names = [entry.name for entry in self.scenario.recovery]
        if parts[:1] == ["recovery"] and (rest := ".".join(parts[1:])):
            for i, name in enumerate(names):
                if rest == name or rest.startswith(f"{name}."):
                    path, parts = ("recovery", i), rest[len(name) + 1 :].split(".")
                    break
        return nearest(self.places, (*path, *(as_written(part) for part in parts if part)))


def load_scenario(
    path: str | Path,
    overrides: Sequence[str] = (),
    axes: Sequence[str] = (),
    *,
    text: str | None = None,
    option: str = "--set",
    has_lines: bool = True,
) -> LoadedScenario:
    """Read and check a scenario.

    Parameters
    ----------
    path : YAML file
    overrides : ``KEY=VALUE`` texts such as ``costs.save=90 s``, applied in order; entries of
        `recovery` go by name or number
    axes : ``KEY=VALUES`` texts such as ``costs.save=30 s:10 min:log12``: what a sweep varies,
        instead of what the file says
    text : instead of the file's; `path` is where files are that it names, and how errors call it
    option : that overrides come from, for errors
    has_lines : whether errors name the line

    Raises
    ------
    ScenarioError : with everything that is wrong, each with file and line (or ``--set KEY``)
    """
    path = Path(path)
    document = read_document(read_text(path) if text is None else text, path)
    data = _mapping(document, path)
    lines = document.lines.items()
    places = {key_path: Place(path, line if has_lines else None) for key_path, line in lines}
    apply_overrides(data, overrides, places, option)
    apply_axes(data, axes, places)
    if data.get("name") is None:
        data["name"] = name_from(path)
    scenario = _validated(data, places, document.problems)
    loaded = LoadedScenario(scenario, path, _trace_path(scenario, path, places), places, data)
    unknown_values(loaded)
    return loaded


def name_from(path: Path) -> str:
    """The default name of a scenario: that of its file, without what a name can't have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("._-")[:80] or "scenario"


def nearest(places: Mapping[KeyPath, Place], path: KeyPath) -> Place:
    """The place of a key, or of the nearest section around it that stands somewhere."""
    while path not in places and path:
        path = path[:-1]
    return places[path]


def read_text(path: Path) -> str:
    """The text of a scenario file. Raises ScenarioError where it can't be one."""
    place = Place(path)
    try:
        if path.exists() and not path.is_file():
            raise ScenarioError.at(place, "is not a regular file")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise ScenarioError.at(
                place, f"has {size} bytes; a scenario has at most {MAX_BYTES}. Is it a trace?"
            )
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        message = "there is no such file"
        if not path.suffix and len(path.parts) == 1:  # it could have been a name
            message += ", nor a scenario of that name that comes with cprsim: `cprsim scenarios` "
            message += "lists these"
        raise ScenarioError.at(place, message) from None
    except UnicodeDecodeError as error:
        raise ScenarioError.at(place, f"is not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise ScenarioError.at(place, f"cannot be read: {reason}") from None


def _mapping(document: YamlDocument, path: Path) -> dict[str, Plain]:
    if document.data is None and not document.problems:
        raise ScenarioError.at(Place(path), "is empty: a scenario is a mapping of keys to values")
    if not isinstance(document.data, dict):
        message = "is not a mapping: a scenario has keys such as `job:`"
        place = Place(path, document.lines[()])
        raise ScenarioError(in_order([*document.problems, Problem(place, "", message)]))
    return document.data


def _validated(
    data: dict[str, Plain], places: Mapping[KeyPath, Place], problems: list[Problem]
) -> Scenario:
    """The scenario. Raises ScenarioError with `problems` and all that the schema finds."""
    try:
        scenario = Scenario.model_validate(with_times(data))
    except ValidationError as error:
        by_schema = problems_of(error, data, lambda path: nearest(places, path))
        raise ScenarioError(in_order([*problems, *by_schema])) from None
    if problems:
        raise ScenarioError(problems)
    return scenario


def _trace_path(scenario: Scenario, path: Path, places: Mapping[KeyPath, Place]) -> Path | None:
    """The file of the trace that is replayed, if one is; it exists."""
    failures = scenario.failures
    if not isinstance(failures, TraceFailures):
        return None
    place = nearest(places, ("failures", "file"))
    return input_file(failures.file, path, place, "failures.file", SOURCES[failures.format])


def input_file(file: str, scenario: Path, place: Place, key: str, source: str) -> Path:
    """A file that a scenario names, variables replaced. Raises ScenarioError where it is not there.

    Parameters
    ----------
    source : what the file is and where it comes from, for the error
    """
    for variable in _VARIABLE.findall(file):
        if variable.startswith(OURS) and os.environ.get(variable):
            continue
        message = (
            f"the environment variable {one_line(variable)} is not set: let it name the folder "
            f"with the data ({shown(file)} is {source})"
        )
        if not variable.startswith(OURS):
            message = f"{shown(f'${{{variable}}}')} is not replaced: a scenario may ask for "
            message += f"environment variables whose names begin with {OURS} only"
        raise ScenarioError.at(place, message, key)
    named = scenario.parent / _VARIABLE.sub(lambda match: os.environ[match[1]], file)
    path = Path(os.path.normpath(named))  # as people write it, without `..` in its middle
    if not os.path.isfile(path):
        message = f"{shown(file)} is not there, or no file ({path}). It is {source}"
        raise ScenarioError.at(place, message, key)
    return path
