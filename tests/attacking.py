"""Long texts that make a bad regular expression slow; as a program, it tries them on patterns.

It reads patterns as JSON from stdin and prints those that were slow as JSON: a pattern that
backtracks exponentially ends in an alarm here, so that all patterns are tried.
"""

from __future__ import annotations

import json
import random
import re
import signal
import sys
import time
from collections.abc import Iterator
from itertools import product
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LENGTHS = (40, 400, 2_000, 20_000)  # characters of an attack
SLOW_S = 0.4  # CPU seconds; a linear pattern takes a thousandth of it at the greatest length
KEPT = 8  # of the slowest attacks, tried at the next length too
ENDS = ("", " ", "\n", "=", "!", "\0")  # one of them fails where the pattern should end
MOST_LETTERS = 14  # of a pattern's alphabet, of which pairs are made
N_SAMPLES = 24
SAMPLE_OF = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_WORD: ".",
}
COMMON = "a1 .-=:"


class TooSlow(Exception):
    """The alarm rang within a match."""


def alphabet(pattern: str, flags: int) -> list[str]:
    """Characters that mean something to the pattern: its literals, one of each of its classes."""
    letters = dict.fromkeys(_letters(_parser.parse(pattern, flags)))
    return [*letters, *(one for one in COMMON if one not in letters)][:MOST_LETTERS]


def _letters(tree: Any) -> Iterator[str]:
    for operation, argument in tree:
        if operation in (sre.LITERAL, sre.NOT_LITERAL):
            yield chr(argument)
        elif operation is sre.IN:
            yield from _of_class(argument)
        elif operation is sre.BRANCH:
            for branch in argument[1]:
                yield from _letters(branch)
        elif operation is sre.SUBPATTERN:
            yield from _letters(argument[3])
        elif operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield from _letters(argument[2])
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _letters(argument[1])


def _of_class(members: Any) -> Iterator[str]:
    for kind, argument in members:
        if kind is sre.LITERAL:
            yield chr(argument)
        elif kind is sre.RANGE:
            yield chr(argument[0])
        elif kind is sre.CATEGORY:
            yield SAMPLE_OF[argument]


def attacks(pattern: str, flags: int) -> list[tuple[str, str, str]]:
    """(beginning, what is repeated, end) of texts that could make the pattern backtrack."""
    letters, draw = alphabet(pattern, flags), random.Random(ascii(pattern))
    repeated = [*letters, *("".join(pair) for pair in product(letters, letters))]
    repeated += ["".join(draw.choices(letters, k=draw.randint(3, 7))) for _ in range(N_SAMPLES)]
    beginnings = ["", letters[0], "a", "".join(letters[:3]), "1", ": "]
    return [
        (beginning, one, end)
        for one in dict.fromkeys(repeated)
        for beginning in dict.fromkeys(beginnings)
        for end in ENDS
    ]


def attack(parts: tuple[str, str, str], length: int) -> str:
    """The text of that length."""
    beginning, repeated, end = parts
    return beginning + repeated * (length // len(repeated)) + end


def slowest(pattern: str, flags: int, methods: list[str], most: int) -> dict[str, Any] | None:
    """The attack that takes too long on the pattern, None where none does.

    Parameters
    ----------
    methods : of a compiled pattern: fullmatch, match, search, ...
    most : characters that can reach the pattern; longer texts are not tried
    """
    compiled = re.compile(pattern, flags)
    tried = [(method, parts) for method in methods for parts in attacks(pattern, flags)]
    for length in [*(length for length in LENGTHS if length < most), most]:
        took: list[tuple[float, tuple[str, tuple[str, str, str]]]] = []
        for method, parts in tried:
            seconds = _seconds(compiled, method, attack(parts, length)[:most])
            if seconds > SLOW_S:
                return {"method": method, "attack": parts, "length": length, "seconds": seconds}
            took.append((seconds, (method, parts)))
        tried = [what for _, what in sorted(took, key=lambda one: one[0], reverse=True)[:KEPT]]
    return None


def _seconds(compiled: re.Pattern[str], method: str, text: str) -> float:
    began = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SLOW_S)
    try:
        if method == "sub":
            compiled.sub("", text)
        elif method == "finditer":
            list(compiled.finditer(text))
        else:
            getattr(compiled, method)(text)
    except TooSlow:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.process_time() - began


def _ring(number: int, frame: object) -> None:
    raise TooSlow


def main() -> None:
    """Patterns in, the slow ones out."""
    signal.signal(signal.SIGVTALRM, _ring)
    found = {}
    for one in json.load(sys.stdin):
        print(one["where"], file=sys.stderr, flush=True)  # the last one named hangs, if any does
        slow = slowest(one["pattern"], one["flags"], one["methods"], one["most"])
        if slow is not None:
            found[one["where"]] = {"pattern": one["pattern"], **slow}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
