"""The questions that cprsim answers, one function each; the command line is made of them.

A module is light to import: what a function needs is imported when it runs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from cprsim.errors import CprsimError, ParameterError, one_line

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

P = ParamSpec("P")
R = TypeVar("R")
OPTION = re.compile(r"--([a-z][a-z-]*)")
RIGHT = "Input should be "
PARAMETER = {  # of options that are called otherwise
    "column": "columns", "set": "overrides", "out": "folder", "strategy": "strategies",
    "metric": "metrics", "from": "copy", "list": "listed",
}  # fmt: skip


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Hold arguments to their annotations, and let messages name parameters instead of options.

    Raises ParameterError for an argument that an annotation excludes.
    """
    names = [name for name in inspect.signature(function).parameters if name != "self"]

    @cache  # at the first call: by then all is there that annotations name
    def checked() -> Callable[P, R]:
        from pydantic import ConfigDict, validate_call

        # what it returns is imported by its body
        function.__annotations__ = {name: function.__annotations__[name] for name in names}
        return validate_call(config=ConfigDict(arbitrary_types_allowed=True))(function)

    def parameter(option: re.Match[str]) -> str:
        name = PARAMETER.get(option[0][2:], option[0][2:].replace("-", "_"))
        return name if name in names else option[0]

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        from pydantic import ValidationError

        try:
            return checked()(*args, **kwargs)
        except ValidationError as error:
            raise ParameterError(_refusal(error, function)) from None
        except CprsimError as error:
            error.args = (OPTION.sub(parameter, str(error)),)
            raise

    return called


COMMANDS: dict[str, Callable[..., object]] = {}
"""The functions that are commands, by name, without what `public` adds."""


def command(function: Callable[P, R]) -> Callable[P, R]:
    """`public`, and a command of its name."""
    COMMANDS[function.__name__.replace("_", "-")] = function
    return public(function)


def _refusal(error: ValidationError, function: Callable[..., object]) -> str:
    """What is wrong with arguments, one a line; of alternatives what each would be."""
    parameters = list(inspect.signature(function).parameters.values())
    variadic = parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
    of: dict[str | int, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        of.setdefault(details["loc"][0], []).append(details)
    lines = []
    for at, errors in of.items():
        name = at
        if isinstance(at, int):
            name = parameters[0 if variadic else min(at, len(parameters) - 1)].name
        nearest = max(len(detail["loc"]) for detail in errors)  # alternative to what was meant
        errors = [detail for detail in errors if len(detail["loc"]) == nearest]
        value = one_line(repr(errors[0]["input"]))
        expected = dict.fromkeys(
            detail["msg"].removeprefix(RIGHT) for detail in errors if RIGHT in detail["msg"]
        )
        right = f"{value} should be {' or '.join(expected)}"
        lines.append(f"{name}: {right if expected else errors[0]['msg']}")
    return "\n".join(lines)
