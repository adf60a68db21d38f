"""Read a YAML file as a checked scenario that has the position of each of its keys."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from cprsim.errors import ParameterError, Place, Problem, ScenarioError, did_you_mean, one_line
from cprsim.files import shipped_scenarios
from cprsim.files.units import IN_STEPS, TIME
from cprsim.logs.formats import format_of
from cprsim.logs.spec import A_LOG, DATES
from cprsim.scenario.failures import TraceFailures
from cprsim.scenario.job import Values, values_along
from cprsim.scenario.quantities import quoted, written_key
from cprsim.scenario.schema import Scenario
from cprsim.scenario.yaml_text import ASSUMED, MAX_BYTES, Plain, dotted, marks_in, read_yaml

OURS = "CPRSIM_"  # begins the names of the environment variables that a scenario may ask for
N_TRIED, N_PRICED = 5, 101  # values of an unknown input: each needs a simulation, or none
PRICES = "prices."
UNKNOWN = "unknown"  # the section
MARKS_KEY = "marks"  # the section
# sections with numbers that decide what failures cost
MARKED = ("job", "cluster", "failures", "scopes", "silent", "storage", "costs", "recovery")
SET_EXAMPLE = 'write KEY=VALUE, for example --set costs.save="90 s" or recovery.cpr.target_pls=0.05'
EXAMPLE_AXIS = "write KEY=LOW:HIGH:logN or KEY=A,B,C, for example --over costs.save=30s:10min:log12"
# Setting one of these takes the other ways to say the same out of the file.
INSTEAD_OF: dict[str, tuple[str, ...]] = {
    "job.useful": ("samples", "throughput"),
    "cluster.tables": ("shard_size",),
    "cluster.shard_size": ("tables",),
    "failures.count": ("at",),
    "failures.at": ("count",),
    "failures.together": ("servers",),
    "failures.servers": ("together",),
    "simulation.replications": ("precision", "at_most"),
    "simulation.precision": ("replications",),
    "recovery.target_pls": ("assumed",),  # of any entry
}
_QUANTITY = re.compile(r"[0-9.]+(e[-+]?[0-9]+)?\s*[A-Za-z/%]+", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario, its file, and the position of each key in the file."""

    scenario: Scenario
    path: Path
    data: Mapping[str, Plain]  # as written, overrides in
    places: Mapping[str, Place]
    trace_path: Path | None = None  # of the trace that is replayed, variables replaced
    nodes_path: Path | None = None  # of the table of its nodes

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
        data = deepcopy({key: value for key, value in self.data.items() if key != "sweep"})
        places = dict(self.places)
        for key, value in changes.items():
            put(data, key, value, places, place(key))
        return _checked(data, self.path, places)

    def input_file(self, file: str, key: str, source: str) -> Path:
        """Path of an existing file that the scenario names under a key, variables replaced.

        Raises ScenarioError if there is no such file, with its description `source`.
        """
        for variable in _VARIABLE.findall(file):
            is_ours = variable.startswith(OURS)
            if is_ours and os.environ.get(variable):
                continue
            why = "is not set: let it name the folder with the data"
            why = why if is_ours else f"is not replaced: its name does not begin with {OURS}"
            message = f"the environment variable {one_line(variable)} {why}"
            raise self.error(key, f"{message} ({quoted(file)} is {source})")
        joined = self.path.parent / _VARIABLE.sub(lambda match: os.environ[match[1]], file)
        path = Path(os.path.normpath(joined))  # as people write it, without `..` in its middle
        if not os.path.isfile(path):
            message = f"{quoted(file)} is not there, or no file ({path}). It is {source}"
            raise self.error(key, message)
        return path

    def place(self, key: str) -> Place:
        """Position of a dotted key; entries of `recovery` by name or number.

        A key that the file leaves out has the position of the section that would hold it.
        """
        for i, entry in enumerate(self.scenario.recovery):
            by_name = f"recovery.{entry.name}"
            if f"{key}.".startswith(f"{by_name}."):
                return _nearest(self.places, f"recovery.{i}{key[len(by_name) :]}")
        return _nearest(self.places, key)

    def error(self, key: str, message: str) -> ScenarioError:
        """The error of a dotted key, at its position."""
        return ScenarioError.at(self.place(key), message, key)


def load_scenario(
    path: str | Path,
    overrides: Sequence[str] = (),
    axes: Sequence[str] = (),
    *,
    text: str | None = None,
    has_lines: bool = True,
) -> LoadedScenario:
    """Read and check a scenario.

    Parameters
    ----------
    path : YAML file
    overrides : ``KEY=VALUE`` texts such as ``costs.save=90 s``, applied in order; entries of
        `recovery` go by name or number. An override from another option begins with that option:
        ``--seed simulation.seed=3``
    axes : ``KEY=VALUES`` texts such as ``costs.save=30 s:10 min:log12``: the axes of a sweep,
        instead of those in the file
    text : replaces the file's text; `path` then locates the files it names, and appears in errors
    has_lines : whether errors name the line

    Raises
    ------
    ScenarioError : with all errors within sections, or else all errors between sections, each with
        file and line (or ``--set KEY``)
    """
    path = Path(path)
    text = read_text(path) if text is None else text
    data, places = read_yaml(text, path)
    if not isinstance(data, dict):
        fault = "is empty" if data is None else "is not a mapping"
        place = places.get("", Place(path))
        raise ScenarioError.at(place, f"{fault}: a scenario has keys such as `job:`")
    if not has_lines:
        places = dict.fromkeys(places, Place(path))
    _override(data, overrides, places)
    if axes:  # instead of the file's own
        over = said_axes(axes)
        put(data, "sweep.over", over, places, Place("", option="--over"))
        places |= {f"sweep.over.{key}": Place(one_line(key), option="--over") for key in over}
    if data.get("name") is None:
        data["name"] = name_from(path)
    if marks := _marks(data, places, marks_in(text) if has_lines else {}):
        data[MARKS_KEY] = marks
    loaded = _checked(data, path, places)
    unknown_values(loaded)
    return loaded


def checked_data(
    data: Mapping[str, Plain], path: Path, overrides: Sequence[str] = ()
) -> LoadedScenario:
    """A scenario without a file, with overrides; errors call it `path`, and name no line.

    Raises ScenarioError as `load_scenario`.
    """
    changed, places = deepcopy(dict(data)), {"": Place(path)}
    _override(changed, overrides, places)
    return _checked(changed, path, places)


def name_from(path: Path) -> str:
    """Default name of a scenario: its file's name, without characters that names can't have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("._-")[:80] or "scenario"


def read_text(path: Path) -> str:
    """The text of a scenario file. Raises ScenarioError where it can't be one."""
    try:
        if path.exists() and not path.is_dir():
            if not path.is_file():  # to open a pipe would wait for ever
                raise OSError("it is no regular file")
            if path.stat().st_size == 0:  # of the kernel's files, some wait for ever too
                return ""
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes; is it a log?")
        return content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        if isinstance(error, FileNotFoundError):
            near = did_you_mean(path, map(str, path.parent.glob("*.y*ml")))
            if len(path.parts) == 1 and not path.suffix:
                near = did_you_mean(path, shipped_scenarios())
                near += "`cprsim init --list` lists the names of those that come with cprsim"
            reason += near and f"; {near.rstrip()}"
        raise ScenarioError.at(Place(path), reason) from None


def unknown_values(loaded: LoadedScenario) -> dict[str, Values]:
    """The values to try of each unknown input, by key.

    Raises ScenarioError, with the line of the key, for ends that are no two quantities, or that
    make no scenario: a key that there is not, a value that it can't have.
    """
    values = {}
    for key, entry in (loaded.scenario.unknown or {}).items():
        unknown_key = f"{UNKNOWN}.{key}"
        place = loaded.place(unknown_key)
        n_values = N_PRICED if key.startswith(PRICES) else N_TRIED
        try:
            values[key] = values_along(f"{entry.low}:{entry.high}:lin{n_values}")
        except ParameterError as error:
            raise loaded.error(unknown_key, f"low to high {error}") from None
        numbers = values[key].numbers
        if numbers is not None and numbers[0] > numbers[-1]:
            message = f"{quoted(entry.low)} as `low` lies above `high`, {quoted(entry.high)}"
            raise loaded.error(unknown_key, message)
        here = None if loaded.place(key).option else number_at(loaded.data, key)
        is_end = str(here) in (str(entry.low), str(entry.high))
        three = None if here is None or is_end else values_along((entry.low, here, entry.high))
        if three and three.numbers and list(three.numbers) != sorted(three.numbers):
            message = f"{quoted(entry.low)} to {quoted(entry.high)} leaves out the value itself"
            raise loaded.error(unknown_key, f"{message}, {quoted(here)}")
        for end in (values[key].written[0], values[key].written[-1]):
            loaded.varied({key: end}, lambda _, place=place: place)  # type: ignore[misc]
    return values


# ----------------------------------------------------------------------------------- marks


def _marks(
    data: dict[str, Plain], places: Mapping[str, Place], by_line: Mapping[int | None, Any]
) -> dict[str, Plain]:
    """The section `marks`: as written, with those of comments; without overridden values.

    Raises ScenarioError for a mark of a key that is not there.
    """
    written, marks = data.get(MARKS_KEY) or {}, dict[str, Plain]()
    if not isinstance(written, dict):
        return {}  # validation refuses it
    for name, mark in written.items():
        if number_at(data, name) is None:
            key = f"{MARKS_KEY}.{name}"
            raise ScenarioError.at(_nearest(places, key), "there is no number at this key", key)
        marks[_spelled(data, name)] = mark
    # a list that is too long for a scenario is refused later, and would take long here
    too_long = {k for k, entries in data.items() if isinstance(entries, list) and len(entries) > 99}
    for key in places:
        section = key.partition(".")[0]
        if section in MARKED and section not in too_long and number_at(data, key) is not None:
            lines = (places[name].line for name in _around(key) if name in places)
            mark = next((by_line[line] for line in lines if line in by_line), None)
            if key.endswith(".target_pls") and value_at(data, f"{key[:-10]}{ASSUMED}") is True:
                mark = ASSUMED
            if mark is not None:
                marks.setdefault(_spelled(data, key), mark)
    overridden = {_spelled(data, key) for key, place in places.items() if place.option}
    return {key: mark for key, mark in marks.items() if overridden.isdisjoint(_around(key))}


def _around(key: str) -> list[str]:
    """A dotted key, and the sections around it, the nearest first."""
    return [key.rsplit(".", n)[0] for n in range(key.count(".") + 1)]


def value_at(data: Mapping[str, Plain], key: str) -> Plain:
    """The value at a dotted key, with entries by name or number; None if the key is missing."""
    value, parts = cast(Any, data), key.split(".")
    while parts:
        try:
            step, n_used = _step(value, parts, Place(key))
            value, parts = value[step], parts[n_used:]
        except (KeyError, ScenarioError):
            return None
    return cast(Plain, value)


def number_at(data: Mapping[str, Plain], key: str) -> int | float | str | None:
    """The number or quantity at a key, as written; None for any other value."""
    value = value_at(data, key)
    if isinstance(value, str):
        return value if _QUANTITY.fullmatch(value) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _spelled(data: Mapping[str, Plain], key: str) -> str:
    """A dotted key with the names of entries, where they have one."""
    first, number, *rest = [*key.split("."), "", ""]
    name = _name(value_at(data, f"{first}.{number}")) if number.isdigit() else ""
    return ".".join([first, name, *filter(None, rest)]) if name else key


# ----------------------------------------------------------------------------------- validating


def _checked(data: dict[str, Plain], path: Path, places: Mapping[str, Place]) -> LoadedScenario:
    plain, in_steps = _without_steps(data)
    try:
        scenario = Scenario.model_validate(plain)
    except ValidationError as error:
        problems = []
        for details in error.errors(include_url=False):
            key, message = written_key(details["loc"], data), details["msg"]
            for hours, steps in in_steps.items():
                message = message.replace(hours, steps)
            problems.append(Problem(_nearest(places, key), one_line(key), message))
        in_file = sorted(dict.fromkeys(problems), key=lambda p: (p.place.line or 0, p.key))
        raise ScenarioError(in_file) from None
    loaded, failures = LoadedScenario(scenario, path, data, places), scenario.failures
    if not isinstance(failures, TraceFailures):
        return loaded
    form = failures.spec.format
    source = format_of(form).source if form else A_LOG
    loaded = replace(loaded, trace_path=loaded.input_file(failures.file, "failures.file", source))
    if not isinstance(nodes := failures.spec.nodes, str) or nodes == DATES:
        return loaded
    table = "a table of nodes; or write their number, or `dates`"
    return replace(loaded, nodes_path=loaded.input_file(nodes, "failures.nodes", table))


def _without_steps(data: dict[str, Plain]) -> tuple[dict[str, Plain], dict[str, str]]:
    """Convert times in training steps under `recovery` to hours; also return their texts."""
    job, in_steps = data.get("job"), dict[str, str]()
    try:
        step_h = TIME.parse(str(job.get("step") if isinstance(job, dict) else None))
    except ParameterError:
        return data, in_steps  # a place with steps says then what is missing

    def hours(value: Plain) -> Plain:
        if isinstance(value, list):
            return [hours(entry) for entry in value]
        if isinstance(value, dict):
            return {key: entry if key == "name" else hours(entry) for key, entry in value.items()}
        match = re.fullmatch(IN_STEPS, value) if isinstance(value, str) else None
        if match is None:
            return value
        in_hours = f"{float(match[1]) * step_h!r} h"
        in_steps[f"`{in_hours}`"] = quoted(value)
        return in_hours

    plain = {key: hours(value) if key == "recovery" else value for key, value in data.items()}
    return plain, in_steps


def _nearest(places: Mapping[str, Place], key: str) -> Place:
    """Position of a key, or of the nearest section around it that has one."""
    return next(places[name] for name in (*_around(key), "") if name in places)


# ------------------------------------------------------------------------------------ overriding


def _override(data: dict[str, Plain], overrides: Sequence[str], places: dict[str, Place]) -> None:
    """Write each override into `data`. Raises ScenarioError with all invalid overrides."""
    problems: list[Problem] = []
    for override in overrides:
        alias, _, assignment = override.partition(" ") if override.startswith("--") else ("",) * 3
        key, equals, text = (assignment or override).partition("=")
        key = key.strip()
        place = Place("" if assignment else one_line(key), option=alias or "--set")
        try:
            if not equals or not key:
                raise ScenarioError.at(replace(place, file=one_line(override)), SET_EXAMPLE)
            put(data, key, read_yaml(text, place.file)[0], places, place)
        except ScenarioError as error:
            problems += [replace(problem, place=place) for problem in error.problems]
    if problems:
        raise ScenarioError(problems)


def said_axes(axes: Sequence[str]) -> dict[str, Any]:
    """Values by key from texts such as ``costs.save=30 s:10 min:log12``: a range, or a list.

    Raises ScenarioError for an invalid text or a repeated key.
    """
    over: dict[str, Any] = {}
    for axis in axes:
        key, equals, text = (part.strip() for part in axis.partition("="))
        place = Place(one_line(key), option="--over")
        if not equals or not key:
            raise ScenarioError.at(replace(place, file=one_line(axis)), EXAMPLE_AXIS)
        if key in over:
            raise ScenarioError.at(place, "is there twice")
        over[key] = read_yaml(text, str(place))[0] if text.startswith("[") else text
    return over


def put(
    data: dict[str, Plain], key: str, value: Plain, places: dict[str, Place], place: Place
) -> None:
    """Write one value into `data`, and into `places` that it stands at `place`.

    Sections that are missing are made. Raises ScenarioError where the key has no place.
    """
    section: Any = data
    path, parts = "", key.split(".")
    if not all(parts):
        raise ScenarioError.at(place, SET_EXAMPLE)
    while True:
        step, n_used = _step(section, parts, place)
        path, parts = dotted(path, step), parts[n_used:]
        if not parts:
            break
        if isinstance(section, dict) and section.get(step) is None:
            section[step] = {}
            places[path] = place
        if isinstance(section[step], str) and re.fullmatch(r"recovery\.\d+", path):
            section[step] = {"strategy": section[step]}  # the short form, spelled out
        section = section[step]
    replaced = INSTEAD_OF.get(re.sub(r"^recovery\.\d+", "recovery", path), ())
    for replaced_key in replaced if value is not None else ():
        section.pop(replaced_key, None)
    section[step] = value
    for stale in [below for below in places if f"{below}.".startswith(f"{path}.")]:
        del places[stale]
    places[path] = place


def _step(section: Any, parts: list[str], place: Place) -> tuple[Any, int]:
    """The key or number of the next section, and how many parts of the dotted key name it."""
    if isinstance(section, dict):
        return parts[0], 1
    if not isinstance(section, list):
        message = (
            f"{quoted(parts[0])} has no place: what holds it is {quoted(section)}, not a section"
        )
        raise ScenarioError.at(place, message)
    numbers = {_name(entry): i for i, entry in reversed([*enumerate(section)])}
    names = ", ".join(one_line(name) for name in reversed(numbers) if name)
    numbers |= {str(i): i for i in range(len(section))}
    for n_used in range(len(parts), 0, -1):  # a name may hold dots
        if (name := ".".join(parts[:n_used])) in numbers:
            return numbers[name], n_used
    message = f"no entry {quoted(parts[0])}: give a number from 0 to {len(section) - 1} or a name: "
    raise ScenarioError.at(place, message + (names or "none with a name"))


def _name(entry: Plain) -> str:
    """Name of an entry of a list, else its strategy."""
    if isinstance(entry, dict):
        entry = entry.get("name") or entry.get("strategy")
    return entry if isinstance(entry, str) else ""
