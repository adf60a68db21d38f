"""Messages to the user: errors that are raised on purpose, warnings and progress.

CprsimError                 one clear message; the command line prints it and exits with 2
├── ScenarioError           a scenario is invalid: file, line, key, value
├── TraceError              a failure trace can't be read: file, line, value
├── CurveError              a staleness curve can't be read: file, line, value
├── ClickError              a click log can't be read: file, line, value
├── ParameterError          a number handed to a model lies outside its domain
├── ResultError             a results folder is unfinished, damaged or not a result
│   └── WriteError              the system refuses to write a file; exits with 1
├── BudgetError             the request exceeds a limit of memory or time
│   └── TooManyReplicationsError    in one batch; fewer may fit
├── WorkerError             worker processes die, or can't be reached
│   └── ClusterError            a cluster's scheduler or workers are lost; exits with 1
└── AccountingError         parts of a replication don't add up to its wall time: a bug in cprsim
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Self, TypeVar

T = TypeVar("T")


class CprsimError(Exception):
    """Base of all errors that end in one clear line for the user."""

    exit_code = 2  # of the command
    option = ""  # that it is about, as the command line has it: ``--only``

    def name_options(self, names: Mapping[str, str]) -> None:
        """Name options as the caller knows them: in Python by their parameters."""


class ParameterError(CprsimError, ValueError):
    """A number lies outside the domain of the model that it was handed to."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.option, *self.args)))

    def name_options(self, names: Mapping[str, str]) -> None:
        self.option = names.get(self.option, self.option)


class MissingKeyError(ParameterError):
    """A system needs an input that the scenario does not give: `key`."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key

    @classmethod
    def key_of(cls, error: BaseException | None) -> str:
        """The key that an error, or its cause, asks for; empty for other errors."""
        while error is not None and not isinstance(error, cls):
            error = error.__cause__
        return "" if error is None else error.key


class PolicyError(ParameterError):
    """A recovery system is invalid; `at` locates the field of its policy."""

    def __init__(self, message: str, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.at = at


class ResultError(CprsimError):
    """A results folder, or the file of a save, is unfinished, damaged, or not a result."""


class WriteError(ResultError):
    """The system refuses to write a file: a full disk, no permission."""

    exit_code = 1


class BudgetError(CprsimError):
    """The request exceeds the budget of memory or time; the message names a size that would fit."""


class TooManyReplicationsError(BudgetError):
    """The replications exceed the budget of one batch; fewer may fit."""


class WorkerError(CprsimError):
    """Worker processes die again and again, or can't be reached."""


class ClusterError(WorkerError):
    """The scheduler or all workers of a cluster can't be reached."""

    exit_code = 1


class AccountingError(CprsimError):
    """The named parts of a replication do not add up to its wall time."""


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the user's input: in a file, or in an option such as ``--set KEY``."""

    file: Path | str  # of an option its key, or empty
    line: int | None = None
    option: str = ""

    def __str__(self) -> str:
        at = f"{self.option} {self.file}".strip() if self.option else f"{self.file}"
        return at if self.line is None else f"{at}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One error in an input: its position, the value found, and a valid one."""

    place: Place
    key: str
    message: str

    def __str__(self) -> str:
        at, key, named = str(self.place), self.key, f"{self.place.file}"
        if self.place.option:  # named once: with its key, one below that, or another one
            if key.startswith(f"{named}."):
                at = f"{self.place.option} {key}"
            elif named and not named.endswith(key.rpartition(".")[2]) and key not in named:
                at = f"{at}, {key}"
            key = ""
        return ": ".join(filter(None, (at, key, self.message)))


class InputError(CprsimError):
    """An input file is invalid; carries all problems found in it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__()
        self.problems = tuple(problems)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:MOST_PROBLEMS]]
        if (n_more := len(self.problems) - MOST_PROBLEMS) > 0:
            lines.append(f"{replace(self.problems[0].place, line=None)}: and {n_more:,} more")
        return "\n".join(lines)

    def name_options(self, names: Mapping[str, str]) -> None:
        self.problems = tuple(
            replace(one, place=replace(one.place, option=names.get(at := one.place.option, at)))
            for one in self.problems
        )

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Problem, ...]]]:
        """Pickle the problems instead of the message, for errors from other processes."""
        return type(self), (self.problems,)

    @classmethod
    def at(cls, place: Place, message: str, key: str = "") -> Self:
        """One problem at one place."""
        return cls([Problem(place, key, message)])


class ScenarioError(InputError):
    """A scenario is invalid."""


class TraceError(InputError):
    """A failure trace can't be read."""


class CurveError(InputError):
    """A staleness curve can't be read."""


class ClickError(InputError):
    """A click log can't be read."""


# ------------------------------------------------------ text of the user's input in messages

MOST_PROBLEMS = 10  # of one input, in a message; the others are counted
MOST_CHARACTERS_SHOWN = 60  # characters of a value or key found, in a message

UNUSABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions raised when plain data has an unexpected layout."""

# Characters that a terminal obeys or that reorder the text around them: controls (C0 but line
# feed and tab, C1), formats (bidirectional overrides, zero widths, tags), ends of lines and
# paragraphs of Unicode, halves of surrogate pairs.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Escape the characters that a terminal would interpret; line ends and tabs stay."""
    return _UNPRINTABLE.sub(lambda found: _escaped(found[0]), text)


def json_printable(text: str) -> str:
    """Escape those characters in JSON by JSON's own escapes, so that its value stays the same."""
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """``did you mean `NAME`? `` for a name that is nearly one of some; else empty."""
    near = get_close_matches(str(name), list(names), n=1)
    return f"did you mean `{near[0]}`? " if near else ""


def choices(name: object, names: Collection[str]) -> str:
    """Suggest the nearest name, and list the known ones."""
    return f"{did_you_mean(name, names)}Known: {', '.join(names)}"


def one_line(text: str, most: int = MOST_CHARACTERS_SHOWN) -> str:
    """Cut a text to `most` characters and put it on one line, unprintable characters escaped."""
    text = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


# --------------------------------------------------------------------------- warnings and progress

Progress = Callable[[int, int], None]  # takes what is done, and how much there is


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=2)


@dataclass
class Reporter:
    """Receiver of progress and warnings: Python gets warnings only, the command line shows all."""

    doing: Callable[[str], None] = lambda what: None
    """A step begins, in a word or two."""

    warn: Callable[[str], None] = _warn
    """Warn the user, and say how the work continues."""

    progress: Callable[[str], AbstractContextManager[Progress]] = lambda doing: nullcontext(
        lambda done, total: None
    )
    """A step whose progress is counted lasts as long as the block."""

    keeps: Callable[[Callable[[], str]], None] = lambda say: None
    """From now on an interruption keeps the finished part; `say` names its size in a clause."""

    command: list[str] = field(default_factory=list)
    """Arguments of the command line; empty in Python."""


watch = Reporter()


def counted(doing: str, items: Collection[T]) -> Iterator[T]:
    """The items, whose number is the progress of a step."""
    with watch.progress(doing) as on_progress:
        for n_done, item in enumerate(items):
            on_progress(n_done, len(items))
            yield item
