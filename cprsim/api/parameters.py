"""Types of parameters that several functions share, with what the command line calls them.

Light to import: the help of the command line reads them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from textwrap import fill, indent
from typing import Annotated, Any, TypeVar, get_type_hints

from annotated_types import Ge, Le

from cprsim.api.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Shell:
    """How the command line takes a parameter, where its name and type do not say so.

    Parameters
    ----------
    option : its option, where that is not ``--name``
    metavar : what stands for the value in the help
    many : it may be repeated
    default : the command's, where it differs from the function's
    help : what it means, where the docstring refers to here
    """

    option: str = ""
    metavar: str = ""
    many: bool = False
    default: Any = None
    help: str = ""


ScenarioLike = Annotated[
    Scenario | Mapping[str, Any] | str | Path,
    Shell(
        metavar="SCENARIO",
        help="The scenario file (YAML), or the name of one that `cprsim init --list` shows.",
    ),
]
Overrides = Annotated[
    Mapping[str, Any] | Sequence[str],
    Shell(
        "--set",
        "KEY=VALUE",
        many=True,
        help="Change one value of the scenario, e.g. costs.save='90 s'; may be repeated.",
    ),
]
Over = Annotated[Mapping[str, Any] | Sequence[str], Shell("--over", "KEY=VALUES", many=True)]
Seed = Annotated[int | None, Shell(help="Seed of all random numbers; default: the scenario's.")]
ResultsFolder = Annotated[
    str | Path | None,
    Shell("--out", "DIR", default="results", help="Folder of the results folders."),
]
FileName = Annotated[str | Path | None, Shell(metavar="FILE")]
Workers = Annotated[
    int | None, Ge(1), Le(1000),
    Shell(metavar="N", help="Processes on this machine; default: one per core."),
]  # fmt: skip
Dask = Annotated[
    str | None,
    Shell(
        metavar="tcp://HOST:PORT",
        help="Scheduler of a dask cluster that does the work, instead of this machine.",
    ),
]
AllowCode = Annotated[
    bool,
    Shell(help="Run the code of 'kernel.trainer', also from outside the working directory."),
]
Logs = Annotated[
    str | Path,
    Shell(
        metavar="LOG",
        help="Event logs (docs/events.md), output of torchrun, CSVs of attempts, or folders.",
    ),
]
DrawsSeed = Annotated[int, Ge(0), Shell(help="Seed of the draws of values missing from the logs.")]
Bootstrap = Annotated[
    int, Ge(0), Le(100_000), Shell(help="Samples behind each p-value; 0 for none.")
]
StateNodes = Annotated[int, Ge(1), Le(100_000), Shell(help="Nodes that hold the state of the job.")]
SavesEvery = Annotated[
    str | None,
    Shell(
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
            one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default,
            annotation=Annotated[types[one.name], Shell(**one.metadata["shell"])],
        )
        for one in fields(record)
    ]  # fmt: skip
    entries = [
        f"    {one.name} : {str(one.type).removesuffix(' | None')}, optional\n"
        + indent(fill(helps.get(one.name, one.metadata["help"]), 92), " " * 8)
        for one in fields(record)
    ]

    def changed(function: Function) -> Function:
        signature = inspect.signature(function)
        first, *others = [
            one for one in signature.parameters.values() if one.kind != one.VAR_KEYWORD
        ]
        kept = signature.replace(parameters=[first, *options, *others])
        vars(function)["__signature__"] = kept
        function.__annotations__ |= {one.name: one.annotation for one in options}
        said = "\n" + "\n".join(entries)  # in place of the one entry that pages on the site show
        entry = r"\n    \*\*said :[^\n]*(?:\n {8}[^\n]*)+"
        function.__doc__ = re.sub(entry, lambda _: said, function.__doc__ or "")
        return function

    return changed
