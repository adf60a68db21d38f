"""The commands, and what happens to their errors."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from logging import ERROR, WARNING, getLogger
from pkgutil import iter_modules
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cprsim.api import COMMANDS
from cprsim.api import __path__ as functions
from cprsim.cli.command import command
from cprsim.cli.saying import (
    REFUSED,
    TRACEBACK,
    calm,
    complain,
    interrupted,
    pulse,
    refused,
    say,
    show_the_work,
    show_tracebacks,
)
from cprsim.errors import CprsimError, InputError, printable
from cprsim.failures.budget import DEFAULT_MEMORY, MEMORY
from cprsim.version import __version__

OURS = ("-q", "--quiet", "-v", "--verbose", "--traceback")  # wherever they stand
OUT_OF_MEMORY = (
    "cprsim: the memory that this process may have is used up: ask for less (half as many "
    "--replications, a shorter job, a longer MTBF, fewer nodes), or have the work done in smaller "
    f"pieces: {MEMORY} in the environment says how much there is (unless said, {DEFAULT_MEMORY})"
)


class Guarded(TyperGroup):
    """A group of commands whose expected errors end in one clear message and an exit code.

    What nobody foresaw goes on to `cprsim.cli.main`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options of the program are understood after the command too."""
        end = args.index("--") if "--" in args else len(args)
        ours = [one for one in args[:end] if one in OURS]
        return super().parse_args(ctx, [*ours, *(one for one in args if one not in ours)])

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        with _spelled_out():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; see `cprsim.cli.main` for the exit codes."""
        try:
            with _spelled_out(), pulse.alive():
                return super().invoke(ctx)
        except InputError as error:
            complain(str(error))  # each line begins with file and line
            raise typer.Exit(2) from error
        except CprsimError as error:
            complain(f"cprsim: {error}")
            raise typer.Exit(error.exit_code) from error
        except MemoryError as error:
            complain(OUT_OF_MEMORY)
            raise typer.Exit(2) from error
        except KeyboardInterrupt:
            calm()
            interrupted()
            raise typer.Exit(128 + signal.SIGINT) from None
        except BrokenPipeError:
            raise typer.Exit(128 + signal.SIGPIPE) from None
        except OSError as error:  # of stdout for example: what writes results has its own
            refused(error)
            raise typer.Exit(REFUSED) from error


@contextmanager
def _spelled_out() -> Iterator[None]:
    """Errors of the command line, which typer prints, hold nothing that a terminal obeys."""
    try:
        yield
    except Exception as error:
        message = getattr(error, "message", None)
        if isinstance(message, str) and hasattr(error, "format_message"):
            vars(error)["message"] = printable(message)
        raise


# Plain help: the rich one takes twice as long to come.
app = typer.Typer(
    cls=Guarded,
    name="cprsim",
    help="What failures cost a training job under different recovery strategies.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"cprsim {__version__}")
        raise typer.Exit


@app.callback()
def cprsim_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Nothing on stderr of how far the work has come.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="A line on stderr for each step of the work.")
    ] = False,
    tracebacks: Annotated[
        bool,
        typer.Option(
            "--traceback",
            envvar=TRACEBACK,
            callback=show_tracebacks,
            is_eager=True,
            help="Show the traceback of an error that cprsim did not foresee.",
        ),
    ] = False,
) -> None:
    """What failures cost a training job under different recovery strategies.

    Exit codes: 0 done, 1 the system refused (disk full), 2 the input is wrong or too large, 70 an
    error that cprsim did not foresee, 130 interrupted, 141 nobody reads any more.
    """
    pulse.quiet, pulse.verbose = quiet, verbose
    getLogger("cprsim").setLevel(ERROR if quiet else WARNING)
    pulse.doing("loading")
    show_the_work()


for _module in iter_modules(functions):
    import_module(f"cprsim.api.{_module.name}")  # a function registers as it is loaded
for _name, _asked in COMMANDS.items():
    app.command(_name)(command(_asked))
