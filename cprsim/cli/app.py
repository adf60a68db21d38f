"""The commands: options from signatures in `cprsim.commands`, help from docstrings, and errors."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from enum import EnumType, StrEnum
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from annotated_types import Ge, Le
from typer.core import TyperCommand, TyperGroup

from cprsim import commands
from cprsim.cli.completing import completer
from cprsim.cli.console import echo, echo_json, exit_codes, keeps, status, style_on, warn
from cprsim.commands.options import CliOption
from cprsim.errors import ParameterError, watch
from cprsim.version import __version__

METAVARS = {bool: None, int: "N", float: "NUMBER", str: "TEXT", Path: "FILE"}
SIMPLE = (Path, str, float, int)  # of several types, the one that the command line takes
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for scripts.")]
Page = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Write a page too (HTML or Markdown)."),
]


def docstring_of(function: Callable[..., object]) -> tuple[str, str, dict[str, str]]:
    """First sentence of a numpydoc docstring, its further text, and the parameters' texts."""
    text, _, sections = (inspect.getdoc(function) or "").partition("\n\nParameters\n----------\n")
    summary, _, body = text.partition("\n\n")
    listed = sections.partition("\n\nReturns\n")[0].partition("\n\nRaises\n")[0]
    parameters: dict[str, str] = {}
    for names, description in re.findall(
        r"^(\S.*?) : .*\n((?:    .*\n?|\n)*)", listed + "\n", re.M
    ):
        for name in names.split(", "):
            parameters[name.lstrip("*")] = " ".join(description.split()).replace("``", "'")
    return summary, body, parameters


def command(
    function: Callable[..., Any], load: Callable[[], Callable[..., Any]] | None = None
) -> Callable[..., None]:
    """Make the function for typer: it takes the command line's values, and prints the answer.

    `load` gives what is called, where `function` is its signature alone.
    """
    summary, body, texts = docstring_of(function)
    parameters = list(inspect.signature(function).parameters.values())
    options = [
        _parameter(function, parameter, texts.get(parameter.name, "")) for parameter in parameters
    ]
    is_page = any(parameter.name == "out" for parameter in parameters)  # as that of `report`
    added = [("as_json", Json, False), *([] if is_page else [("page", Page, None)])]
    options += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, kind, default in added
    ]

    def called(**arguments: Any) -> None:
        as_json, page = arguments.pop("as_json"), arguments.pop("page", None)
        positional = [
            value
            for parameter in parameters
            if parameter.kind is parameter.VAR_POSITIONAL
            for value in arguments.pop(parameter.name)
        ]
        commands.check_names(inspect.signature(function), *positional, **arguments)
        commands.require_name("--page", page)
        answer = (load() if load else function)(*positional, **arguments)
        _show(answer, as_json=as_json, page=page)
        if answer.exit_code:
            raise typer.Exit(answer.exit_code)

    called.__doc__ = f"{summary}\n\n{body}\n\n\b\nExample:\n  {vars(function)['example']}"
    vars(called)["__signature__"] = inspect.Signature(options)
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in options}
    return called


def _show(answer: Any, *, as_json: bool, page: Path | None) -> None:
    if page is not None:
        status.doing("making the page")
        answer = answer.with_files([*answer.files, answer.report(page)])
    if as_json:
        echo_json(answer.to_json())
        return
    from cprsim.pages.terminal import MOST_REMARKS, Look, text_of

    document, values = answer.document, answer.values
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = get_terminal_size().columns if has_width else None
    best = values.get("best", (values.get("recommendation") or {}).get("name"))
    look = Look(width, style_on(sys.stdout), best, values.get("warnings") or ())
    echo(text_of(document, verbose=status.verbose, look=look), is_printable=True)
    if answer.folder is not None:
        echo(f"\nresults  {answer.folder}{' (found again)' if answer.found_again else ''}")
    for file in answer.files:
        echo(f"wrote    {file}")
    more = len(document.remarks) - MOST_REMARKS
    if more > 0 and not status.verbose:
        echo(f"more     {more} remark{'s' if more > 1 else ''}: with -v, or on the page")


# ------------------------------------------------------------------------------ parameters


def _parameter(
    function: Callable[..., object], parameter: inspect.Parameter, description: str
) -> inspect.Parameter:
    """A parameter as typer reads it."""
    types, extras = _leaves(commands.annotation_of(function, parameter.name, extras=True))
    shell = [CliOption(), *(extra for extra in extras if isinstance(extra, CliOption))][-1]
    kind = _kind(types, many=shell.many or parameter.kind is parameter.VAR_POSITIONAL)
    low = next((extra.ge for extra in extras if isinstance(extra, Ge)), None)
    high = next((extra.le for extra in extras if isinstance(extra, Le)), None)
    default = parameter.default if shell.default is None else shell.default
    if shell.many and not isinstance(default, list):
        default = []
    description = shell.help or description
    if low is not None:
        span = f"at least {low:,}" if high is None else f"from {low:,} to {high:,}"
        description += f" ({'a' if float in types else 'a whole'} number, {span})"
    how: dict[str, Any] = {
        "help": description,
        "metavar": shell.metavar or _metavar(kind),
        "min": low,
        "max": high,
        "autocompletion": completer(shell.complete, shell.metavar) if shell.metavar else None,
    }
    if default is None or default == [] or default == "":  # else typer says it
        how["show_default"] = False
        if default is parameter.default and "default" not in description.lower():
            how["help"] += " Default: none."
    if parameter.kind is not parameter.KEYWORD_ONLY and not shell.option:
        required = parameter.default is parameter.empty
        declared: Any = typer.Argument(**how | {"show_default": not required})
    else:
        names = [shell.option] if shell.option else [f"--{parameter.name.replace('_', '-')}"]
        declared = typer.Option(*names, **how)
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, declared],
        default=inspect.Parameter.empty if default is parameter.empty else default,
    )  # fmt: skip


def _metavar(kind: Any) -> str | None:
    """The placeholder of a value: its choices or its type; None for a switch."""
    (one,) = (kind for kind in _leaves(kind)[0] if kind is not NoneType)
    if get_origin(one) is list:
        (one,) = get_args(one)
    choices = one if isinstance(one, EnumType) else get_args(one)
    return "|".join(choices) or METAVARS[one]


def _leaves(annotation: Any) -> tuple[list[Any], list[Any]]:
    """The alternatives of an annotation, and the metadata of `Annotated` in any of them."""
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        types, more = _leaves(inner)
        return types, [*more, *extras]
    if get_origin(annotation) in (Union, UnionType):
        leaves = [_leaves(alternative) for alternative in get_args(annotation)]
        return [kind for types, _ in leaves for kind in types], [
            extra for _, extras in leaves for extra in extras
        ]
    return [annotation], []


def _kind(types: Sequence[Any], *, many: bool) -> Any:
    """The type that the command line takes; of a sequence, that of its entries."""
    if many:
        entries = [get_args(kind)[0] for kind in types if get_origin(kind) is Sequence]
        entry: Any = _kind(_leaves(entries[0])[0] if entries else types, many=False)
        if get_origin(entry) is Literal:  # typer has no lists of them
            choices = [(choice, choice) for choice in get_args(entry)]
            return list[StrEnum("Choice", choices)]  # type: ignore[misc]
        return list[entry]
    if bool in types:
        return bool
    literal = [kind for kind in types if get_origin(kind) is Literal]
    simple: Any = literal[0] if literal else next((kind for kind in SIMPLE if kind in types), str)
    return simple | None if NoneType in types else simple


PROGRAM_OPTIONS = ("-q", "--quiet", "-v", "--verbose")  # wherever they stand


class Guarded(TyperGroup):
    """A group of commands whose expected errors end in one clear message and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options of the program are understood after the command too."""
        end = args.index("--") if "--" in args else len(args)
        options = [word for word in args[:end] if word in PROGRAM_OPTIONS]
        return super().parse_args(ctx, [*options, *(word for word in args if word not in options)])

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of folders: none is imported."""
        return sorted({*super().list_commands(ctx), *commands.NAMES})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, which is imported when it is called."""
        if cmd_name in commands.NAMES and cmd_name not in self.commands:
            made = typer.Typer(rich_markup_mode=None, add_completion=False)
            load = partial(commands.function_of, cmd_name)
            made.command(cmd_name)(command(commands.stub_of(cmd_name), load))
            self.commands[cmd_name] = typer.main.get_command(made)
            for parameter in self.commands[cmd_name].params:  # what they take stands in the help
                vars(parameter).update(min=None, max=None)
                if parameter.param_type_name == "argument":
                    vars(parameter)["display_type_rich"] = lambda ctx: ""
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Names and first sentences, read without an import."""
        width = formatter.width - 6 - max(map(len, commands.NAMES))
        rows = [
            (name, TyperCommand(name, help=commands.first_sentence(name)).get_short_help_str(width))
            for name in commands.NAMES
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        try:
            with exit_codes(), status.alive():
                try:
                    return super().invoke(ctx)
                except typer.BadParameter as error:
                    if error.param is None or type(error) is not typer.BadParameter:  # missing
                        raise
                    message = error.message.removeprefix("Value error, ").removeprefix("Input ")
                    raise ParameterError(message, option=error.param.opts[0]) from None
        finally:
            watch.command = []


# Plain help: the rich one takes twice as long.
app = typer.Typer(
    cls=Guarded,
    name="cprsim",
    help="What failures cost a training job under different recovery strategies.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        echo(f"cprsim {__version__}")
        raise typer.Exit


@app.callback()
def cprsim_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Hide progress output.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show all remarks and sections, and each step.")
    ] = False,
) -> None:
    """What failures cost a training job under different recovery strategies.

    Exit codes: 0 done, 1 operating-system error (disk full), 2 the input is wrong or too large, 4
    over `run --fail-above`, 70 internal error, 130 interrupted, 141 output pipe closed, 143 ended
    by SIGTERM.
    """
    status.quiet, status.verbose = quiet, verbose
    status.doing("loading")
    # the work of this process is reported on stderr
    watch.doing, watch.progress = status.doing, status.progress
    watch.warn = lambda message: warn(f"cprsim: {message}")
    watch.keeps = keeps.append
    watch.command = ["cprsim", *sys.argv[1:]]
    keeps.clear()
