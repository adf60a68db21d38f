"""The questions that cprsim answers: a folder each, whose function is a command of that name.

A folder is imported when its command is called; its first sentence is read without an import.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_type_hints

from cprsim.errors import CprsimError, ParameterError, WriteError, one_line
from cprsim.files import UNWRITABLE

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

P = ParamSpec("P")
R = TypeVar("R")
RIGHT = "Input should be "
WRITTEN_TO = ("file", "figures", "folder", "out", "page", "save")  # parameters: what is written
UNREADABLE_CHARACTERS = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")  # others stand for bytes


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Hold arguments to their annotations, and let errors name parameters instead of options.

    Raises ParameterError for an argument that an annotation excludes.
    """
    signature = inspect.signature(function)
    names = [name for name in signature.parameters if name != "self"]

    @cache  # at the first call: by then all is there that annotations name
    def checked() -> Callable[P, R]:
        from pydantic import ConfigDict, validate_call

        # what it returns is imported by its body
        function.__annotations__ = {name: function.__annotations__[name] for name in names}
        return validate_call(config=ConfigDict(arbitrary_types_allowed=True))(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        from pydantic import ValidationError

        check_names(signature, *args, **kwargs)
        try:
            return checked()(*args, **kwargs)
        except ValidationError as error:
            raise ParameterError(_refusal(error, function)) from None
        except CprsimError as error:
            error.name_options({option_of(function, name): name for name in names})
            raise
        except BrokenPipeError:  # nobody reads stdout any more
            raise
        except OSError as error:  # a name that the system does not take, no permission
            where = f"{one_line(os.fsdecode(error.filename))}: " if error.filename else ""
            raise WriteError(f"{where}{error.strerror or error}") from error

    called.__signature__ = _plain(signature, function)  # type: ignore[attr-defined]
    return called


def _plain(signature: inspect.Signature, function: Callable[..., object]) -> inspect.Signature:
    """A signature whose types are without the options of the command line, for `help`."""
    parameters = []
    for name, parameter in signature.parameters.items():
        with suppress(NameError):  # of a name that is imported for type checkers alone
            parameter = parameter.replace(annotation=annotation_of(function, name))
        parameters.append(parameter)
    return signature.replace(parameters=parameters)


def annotation_of(function: Callable[..., object], name: str, *, extras: bool = False) -> Any:
    """The type of a parameter; with extras, also what `Annotated` adds to it."""
    alone = SimpleNamespace(__annotations__={name: function.__annotations__[name]})
    return get_type_hints(alone, function.__globals__, include_extras=extras)[name]


def option_of(function: Callable[..., object], name: str) -> str:
    """The option of a parameter: as its annotation says, else after its name."""
    extras = getattr(annotation_of(function, name, extras=True), "__metadata__", ())
    said = [extra.option for extra in extras if getattr(extra, "option", "")]
    return said[0] if said else f"--{name.replace('_', '-')}"


def check_names(signature: inspect.Signature, /, *args: Any, **kwargs: Any) -> None:
    """Raise ParameterError for text that is no valid file name.

    A file to write needs a name in UTF-8; a log on an old disk does not.
    """
    with suppress(TypeError):  # arguments too many or too few, of which pydantic complains
        for name, value in signature.bind_partial(*args, **kwargs).arguments.items():
            for text in value if isinstance(value, list | tuple) else (value,):
                require_name(name, text)


def require_name(option: str, text: object) -> None:
    """Raise ParameterError for text that is no valid file name."""
    no_name = UNWRITABLE if option.strip("-") in WRITTEN_TO else UNREADABLE_CHARACTERS
    if isinstance(text, str | Path) and no_name.search(str(text)):
        message = f"'{one_line(str(text))}' has a character that no name has"
        raise ParameterError(message, option=option)


NAMES = sorted(module.name for module in iter_modules(__path__) if module.ispkg)
COMMANDS: dict[str, Callable[..., object]] = {}
"""The functions that are commands, by name, without what `public` adds; those imported so far."""


def function_of(name: str) -> Callable[..., object]:
    """The function of a command."""
    import_module(f"{__name__}.{name}")  # registers as it is loaded
    return COMMANDS[name]


def first_sentence(name: str) -> str:
    """That of a command's docstring."""
    return (ast.get_docstring(_source_of(name)[1]) or "").partition("\n\n")[0]


@cache
def stub_of(name: str) -> Callable[..., object]:
    """A command's function without its body: its options and its help.

    Of its file only the statements are done on which they depend: all takes a second to import.
    """
    before, function = _source_of(name)
    function.body, function.returns = function.body[:1], None
    registered, *function.decorator_list = function.decorator_list
    kept: list[ast.stmt] = [function]
    for node in reversed(before):
        used = {one.id for of in kept for one in ast.walk(of) if isinstance(one, ast.Name)}
        if isinstance(node, ast.ImportFrom):
            used.add("annotations")  # of the future
            node.names = [one for one in node.names if (one.asname or one.name) in used]
            kept[:0] = [node] if node.names else []
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in used:
            kept.insert(0, node)
    module: dict[str, Any] = {"__name__": f"{__name__}.{name}"}
    exec(compile(ast.Module(kept, []), name, "exec"), module)
    vars(module[name])["example"] = ast.literal_eval(registered.args[0])  # type: ignore[attr-defined]
    return module[name]  # type: ignore[no-any-return]


def _source_of(name: str) -> tuple[list[ast.stmt], ast.FunctionDef]:
    """The function of a command, and the statements before it."""
    body = ast.parse(Path(__path__[0], name, "__init__.py").read_text("utf-8")).body
    for place, node in enumerate(body):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return body[:place], node
    raise LookupError(name)


def command(example: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`public`, and a command of its name, with an example of a call for its help."""

    def registered(function: Callable[P, R]) -> Callable[P, R]:
        vars(function)["example"] = example
        COMMANDS[function.__name__.replace("_", "-")] = function
        return public(function)

    return registered


def _refusal(error: ValidationError, function: Callable[..., object]) -> str:
    """A line per invalid argument, with the expected form of each alternative."""
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
