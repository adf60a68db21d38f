"""Scenarios: loaded from a file, by name, from text or from a mapping, and changed by overrides."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import starmap
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_type_hints

from annotated_types import Ge, Le

from cprsim.commands import public
from cprsim.errors import ParameterError, one_line
from cprsim.files import file_or_shipped

if TYPE_CHECKING:
    from cprsim.pages.answer import Answer
    from cprsim.scenario.reading import LoadedScenario

TEXT = Path("scenario.yaml")  # as errors call a scenario that is text
MAPPING = Path("scenario")  # as they call one that is a mapping
Parsed = TypeVar("Parsed")


class Scenario:
    """A checked scenario. It is never changed: `changed` gives another one.

    ``repr`` is short, ``print`` shows the scenario with all defaults filled in.
    """

    _loaded: LoadedScenario  # once it is checked

    def __init__(
        self, path: Path, written: str | None = None, overrides: tuple[str, ...] = ()
    ) -> None:
        """By its name or path; `written`: its text, where it is no file."""
        self.path, self.written, self.overrides = path, written, overrides

    def read(self, more: Sequence[str] = (), over: Sequence[str] = ()) -> LoadedScenario:
        """The scenario with further overrides, and axes of a sweep.

        Raises ScenarioError with all errors.
        """
        from cprsim.scenario.reading import load_scenario

        return load_scenario(
            self.path, [*self.overrides, *more], over, text=self.written,
            has_lines=self.path is not MAPPING,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The scenario's own, else that of its file."""
        return self._loaded.scenario.name

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the entries of `recovery`, in order."""
        return tuple(entry.name for entry in self._loaded.scenario.recovery)

    @property
    def text(self) -> str:
        """The scenario as YAML, overrides and defaults filled in."""
        from cprsim.scenario.schema import dump_scenario

        return dump_scenario(self._loaded.scenario)

    @property
    def settings(self) -> dict[str, Any]:
        """The scenario as plain data, as written, with its overrides."""
        return json.loads(json.dumps(self._loaded.data))  # type: ignore[no-any-return]

    @property
    def curve(self) -> Answer | None:
        """The staleness curve that prices its losses of accuracy; None: none applies.

        Raises
        ------
        CurveError
            The file that the scenario names can't be read.
        """
        from cprsim.commands.kinds import answer_of
        from cprsim.scenario.curves import curve_path

        path = curve_path(self._loaded)
        return None if path is None else answer_of(path)

    def changed(self, overrides: Mapping[str, Any] | Sequence[str]) -> Scenario:
        """The scenario with other values, as `load` takes them."""
        return load(self, overrides)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<cprsim.Scenario {one_line(self.name)}>"


@public
def load(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    overrides: Overrides = (),
) -> Scenario:
    """Read and check a scenario.

    Parameters
    ----------
    scenario : Scenario, mapping, str or Path
        A file's path; the name of a scenario that comes with cprsim; YAML text of more than one
        line; a mapping; or a scenario, to change it.
    overrides : mapping or sequence of str, optional
        ``{"costs.save": "90 s"}``, or ``["costs.save=90 s"]`` as ``--set`` takes them. Text is read
        as YAML; numbers, lists, arrays and mappings are taken as they are. A key that ends in a
        unit of time takes plain numbers: ``{"costs.save_s": 90}``.

    Returns
    -------
    Scenario

    Raises
    ------
    ScenarioError
        All errors, each with file, line, key and the correct form.

    Examples
    --------
    >>> cprsim.load("quickstart", {"costs.save": "90 s"}).settings["costs"]["save"]
    '90 s'
    """
    found = source_of(scenario, overrides)
    found._loaded = found.read()
    return found


def source_of(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    overrides: Mapping[str, Any] | Sequence[str] = (),
) -> Scenario:
    """A scenario that is not read yet."""
    more = tuple(assignments(overrides))
    if isinstance(scenario, Scenario):
        return Scenario(scenario.path, scenario.written, (*scenario.overrides, *more))
    if isinstance(scenario, Mapping):
        return Scenario(MAPPING, _plain("scenario", scenario), more)
    if isinstance(scenario, str) and "\n" in scenario.strip():
        return Scenario(TEXT, scenario, more)
    return Scenario(file_or_shipped(Path(scenario)), None, more)


def assignments(values: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """``KEY=VALUE`` texts, as ``--set`` takes them."""
    if not isinstance(values, Mapping):
        return list(values)
    return [
        f"{key}={value if isinstance(value, str) else _plain(key, value)}"
        for key, value in starmap(_without_unit, values.items())
    ]


def _without_unit(key: str, value: Any) -> tuple[str, Any]:
    """Plain numbers at a key that ends in a unit, as columns of frames do, as texts with it."""
    base, _, unit = key.rpartition("_")
    if unit not in get_args(TimeUnit) or isinstance(value, str | Mapping):
        return key, value
    many = isinstance(value, Iterable)
    texts = [f"{_plain(key, number)} {unit}" for number in (value if many else [value])]
    return base, texts if many else texts[0]


def shortcuts(section: str = "simulation", /, **values: Any) -> list[str]:
    """Overrides for options that set a key of a section; None sets nothing."""
    return [
        f"--{name} {section}.{name}={value}" for name, value in values.items() if value is not None
    ]


def _plain(key: str, value: object) -> str:
    """A value as JSON, which is YAML. Raises ParameterError for a value without that form."""
    try:
        return json.dumps(value, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"{one_line(key)}: can't stand in a scenario: {error}") from None


def number_of(option: str, value: float | str, like: str = "0.0002 or 0.02%") -> float:
    """A number, or per cent of one. Raises ParameterError."""
    text = str(value).strip()
    try:
        return float(f"{text[:-1].strip()}e-2" if text.endswith("%") else text)
    except ValueError:
        wrong = f"{one_line(str(value))!r} is no number, such as {like}"
        raise ParameterError(wrong, option) from None


def parsed(option: str, text: str, parse: Callable[[str], Parsed]) -> Parsed:
    """Parse the text of an option. Raises ParameterError with the option and its text."""
    try:
        return parse(text)
    except ParameterError as error:
        raise ParameterError(f"{one_line(text)!r} {error}", option) from None


def positive(option: str, text: str, parse: Callable[[str], float]) -> float:
    """Parse the text of an option, a number above 0. Raises ParameterError for another."""
    value = parsed(option, text, parse)
    if not value > 0:
        raise ParameterError(f"must be positive, not {text!r}", option)
    return value


def _number(value: object) -> object:
    """Numbers and arrays of numpy and pandas as those of Python; a path as text."""
    if isinstance(value, Path):
        return str(value)
    tolist = getattr(value, "tolist", None)
    if tolist is None:
        raise TypeError(f"{one_line(repr(value))} is no number, text, list or mapping")
    return tolist()


@dataclass(frozen=True, slots=True)
class CliOption:
    """Command-line settings of a parameter that do not follow from its name and type.

    Parameters
    ----------
    option : its option, if not ``--name``
    metavar : placeholder of the value in the help
    many : it may be repeated
    complete : the kind of values that TAB offers (`cprsim.cli.completing`)
    default : the command's, where it differs from the function's
    help : its description, if not in the docstring
    """

    option: str = ""
    metavar: str = ""
    many: bool = False
    complete: str = ""
    default: Any = None
    help: str = ""


ScenarioLike = Annotated[
    Scenario | Mapping[str, Any] | str | Path,
    CliOption(
        metavar="SCENARIO",
        complete="scenario",
        help="The scenario file (YAML), or the name of one that `cprsim init --list` shows.",
    ),
]
Overrides = Annotated[
    Mapping[str, Any] | Sequence[str],
    CliOption(
        "--set",
        "KEY=VALUE",
        many=True,
        complete="key",
        help="Change one value of the scenario, e.g. costs.save='90 s'; may be repeated.",
    ),
]
Over = Annotated[
    Mapping[str, Any] | Sequence[str], CliOption("--over", "KEY=VALUES", many=True, complete="key")
]
Seed = Annotated[int | None, CliOption(help="Seed of all random numbers; default: the scenario's.")]
ResultsFolder = Annotated[
    str | Path | None,
    CliOption("--out", "DIR", default="results", help="Folder of the results folders."),
]
FileName = Annotated[str | Path | None, CliOption(metavar="FILE")]
Workers = Annotated[
    int | None, Ge(1), Le(1000),
    CliOption(metavar="N", help="Processes on this machine; default: one per core."),
]  # fmt: skip
Dask = Annotated[
    str | None,
    CliOption(
        metavar="tcp://HOST:PORT",
        help="Scheduler of a dask cluster that does the work, instead of this machine.",
    ),
]
AllowCode = Annotated[
    bool,
    CliOption(help="Run the code of 'kernel.trainer', also from outside the working directory."),
]
Logs = Annotated[
    str | Path,
    CliOption(
        metavar="LOG",
        help="Event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders.",
    ),
]
DrawsSeed = Annotated[
    int, Ge(0), CliOption(help="Seed of the draws of values missing from the logs.")
]
Bootstrap = Annotated[
    int, Ge(0), Le(100_000), CliOption(help="Samples behind each p-value; 0 for none.")
]
TimeUnit = Literal["ns", "us", "ms", "s", "min", "h", "d"]
StateNodes = Annotated[
    int, Ge(1), Le(100_000), CliOption(help="Nodes that hold the state of the job.")
]
SavesEvery = Annotated[
    str | None,
    CliOption(
        metavar="TIME",
        help="Work between the saves of the jobs, such as '30 min', where their logs don't tell.",
    ),
]

Function = TypeVar("Function", bound=Callable[..., Any])


def with_fields_of(record: type, **helps: str) -> Callable[[Function], Function]:
    """Give a function that takes ``**said`` the fields of a record as keywords, with their help.

    Or with that of `helps`.
    """
    types = get_type_hints(record)
    options = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=Annotated[types[field.name], CliOption(**field.metadata["shell"])],
        )
        for field in fields(record)
    ]  # fmt: skip
    entries = [
        f"    {field.name} : {str(field.type).removesuffix(' | None')}, optional\n"
        + indent(
            fill(helps.get(field.name, field.metadata["help"]), 92, break_on_hyphens=False), " " * 8
        )
        for field in fields(record)
    ]

    def changed(function: Function) -> Function:
        signature = inspect.signature(function)
        first, *others = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind != parameter.VAR_KEYWORD
        ]
        extended = signature.replace(parameters=[first, *options, *others])
        vars(function)["__signature__"] = extended
        function.__annotations__ |= {option.name: option.annotation for option in options}
        described = "\n" + "\n".join(
            entries
        )  # in place of the one entry that pages on the site show
        entry = r"\n    \*\*\w+ :[^\n]*(?:\n {8}[^\n]*)+"
        function.__doc__ = re.sub(entry, lambda _: described, function.__doc__ or "")
        return function

    return changed
