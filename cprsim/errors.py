"""What the user hears: errors that are raised on purpose, warnings and progress.

CprsimError                 one clear message; the command line prints it and exits with 2
├── ScenarioError           a scenario says something that can't be: file, line, key, value
├── TraceError              a failure trace can't be read: file, line, value
├── CurveError              a staleness curve can't be read: file, line, value
├── ClickError              a click log can't be read: file, line, value
├── ParameterError          a number handed to a model lies outside its domain
├── ResultError             a results folder is unfinished, damaged or not a result
│   └── WriteError              the system refuses to write a file; exits with 1
├── CheckpointError         no checkpoint of a training run can be used
├── BudgetError             what is asked for takes more memory or time than it may
│   └── TooManyReplicationsError    at once; fewer may fit
├── WorkerError             the processes that do the work die, or are not there
│   └── ClusterError            a cluster's scheduler or workers are gone; exits with 1
└── AccountingError         parts of a replication don't add up to its wall time: a defect of ours
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Self


class CprsimError(Exception):
    """Base of all errors that are worth one clear line to the user."""

    exit_code = 2  # of the command


class ParameterError(CprsimError, ValueError):
    """A number lies outside the domain of the model that it was handed to."""


class MissingKeyError(ParameterError):
    """A system needs an input that the scenario does not give: `key`."""

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key

    @classmethod
    def key_of(cls, error: BaseException | None) -> str:
        """The key that an error, or its cause, asks for; empty: none."""
        while error is not None and not isinstance(error, cls):
            error = error.__cause__
        return "" if error is None else error.key


class PolicyError(ParameterError):
    """A recovery system makes no sense; `at` is the field of its policy, and which entry."""

    def __init__(self, message: str, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.at = at


class ResultError(CprsimError):
    """A results folder is unfinished, damaged, or no result at all."""


class WriteError(ResultError):
    """The system refuses to write a file: a full disk, no permission."""

    exit_code = 1


class CheckpointError(CprsimError):
    """No checkpoint of a training run can be used: damaged, or of another run."""


class BudgetError(CprsimError):
    """What is asked for takes more than the budget; the message says what would fit."""


class TooManyReplicationsError(BudgetError):
    """So many replications take more than the budget at once; fewer take less."""


class WorkerError(CprsimError):
    """The processes that do the work die again and again, or are not there."""


class ClusterError(WorkerError):
    """The scheduler or all workers of a cluster are not there, or not any more."""

    exit_code = 1


class AccountingError(CprsimError):
    """The named parts of a replication do not add up to its wall time."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the user's input something stands.

    `file` may also name an option of the command line (``--set costs.save``); then `line` is None.
    """

    file: Path | str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line is not None else f"{self.file}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: where it stands, what was found, what would be right."""

    place: Place
    key: str
    message: str

    def __str__(self) -> str:
        return (
            f"{self.place}: {self.key}: {self.message}"
            if self.key
            else f"{self.place}: {self.message}"
        )


class InputError(CprsimError):
    """An input file is wrong; carries every problem found in it at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[:MOST_PROBLEMS]]
        if (n_more := len(self.problems) - MOST_PROBLEMS) > 0:
            lines.append(f"{self.problems[0].place.file}: and {n_more:,} more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[Problem, ...]]]:
        """As what it was made of: it may come from another process."""
        return type(self), (self.problems,)

    @classmethod
    def at(cls, place: Place, message: str, key: str = "") -> Self:
        """One problem at one place."""
        return cls([Problem(place, key, message)])


class ScenarioError(InputError):
    """A scenario says something that can't be."""


class TraceError(InputError):
    """A failure trace can't be read."""


class CurveError(InputError):
    """A staleness curve can't be read."""


class ClickError(InputError):
    """A click log can't be read."""


# ------------------------------------------------------ what others wrote, as messages show it

MOST_PROBLEMS = 10  # of one input, in a message; the others are counted
MOST_CHARACTERS_SHOWN = 60  # characters of a value or key found, in a message

UNUSABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What comes of using plain data of another layout than expected."""

# Characters that a terminal obeys or that reorder the text around them: controls (C0 but line
# feed and tab, C1), formats (bidirectional overrides, zero widths, tags), ends of lines and
# paragraphs of Unicode, halves of surrogate pairs.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """The text with what a terminal would obey spelled out; ends of lines and tabs stay."""
    return _UNPRINTABLE.sub(lambda found: _escaped(found[0]), text)


def json_printable(text: str) -> str:
    """JSON with what a terminal would obey as JSON's own escapes: it reads back the same."""
    return _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text)


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """``did you mean `NAME`? `` for a name that is nearly one of some; else empty."""
    near = get_close_matches(str(name), list(names), n=1)
    return f"did you mean `{near[0]}`? " if near else ""


def choices(name: object, names: Collection[str]) -> str:
    """Tell what there is to choose from, the nearest first."""
    return f"{did_you_mean(name, names)}Known: {', '.join(names)}"


def one_line(text: str, most: int = MOST_CHARACTERS_SHOWN) -> str:
    """The text on one line, not too long, with what can't be printed spelled out."""
    text = text if len(text) <= most else text[: most - 3] + "..."
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


# --------------------------------------------------------------------------- warnings and progress

Progress = Callable[[int, int], None]  # takes what is done, and how much there is


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=2)


@dataclass
class Watch:
    """What hears of the work: in Python warnings alone; the command line shows all of it."""

    doing: Callable[[str], None] = lambda what: None
    """A step begins, in a word or two."""

    warn: Callable[[str], None] = _warn
    """The user should know this, and what is done about it."""

    progress: Callable[[str], AbstractContextManager[Progress]] = lambda doing: nullcontext(
        lambda done, total: None
    )
    """A step whose progress is counted lasts as long as the block."""

    keeps: Callable[[Callable[[], str]], None] = lambda say: None
    """From now on an interruption keeps what is finished; `say` tells how much, in a clause."""

    command: list[str] = field(default_factory=list)
    """What was given on the command line; empty in Python."""


watch = Watch()
