"""No regular expression of the package takes long, however long and odd the text."""

import importlib
import re
import signal
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import cprsim
from cprsim.files import units

pytestmark = pytest.mark.long

LENGTHS = (400, 20_000)  # characters of an attack
SLOW_S = 0.4  # CPU seconds; a linear pattern takes a thousandth of it at the greatest length
ENDS = ("", "\n", "=", "!")  # one of them fails where the pattern should end
COMMON = "a1 .-=:"
LIMITS = {units._QUANTITY.pattern: units.MAX_TEXT}  # most characters that its callers let through


def compiled() -> dict[str, str]:
    """Every pattern that a module of the package holds, by where it stands."""
    package = Path(cprsim.__file__).parent
    files = [path for path in package.rglob("*.py") if path.stem[:2] != "__"]
    rooms = [
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in files
        if "torch" not in path.with_suffix("").parts  # which may not be installed
    ]
    return {
        f"{room}.{name}": value.pattern
        for room in rooms
        for name, value in vars(importlib.import_module(room)).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }


def attacks(pattern: str, most: int) -> Iterator[str]:
    """Texts that could make it backtrack: one or two of its characters, again and again."""
    letters = dict.fromkeys(COMMON + "".join(re.findall(r"[^\\\[\](){}|?*+^$]", pattern)))
    for length in (min(length, most) for length in LENGTHS):
        for pair in product(list(letters)[:14], repeat=2):
            for end in ENDS:
                yield "".join(pair) * (length // 2) + end


def slow_on(pattern: str) -> str | None:
    """The text on which it is slow; an alarm ends a match that would take for ever."""
    found, most = re.compile(pattern), LIMITS.get(pattern, LENGTHS[-1])
    for text in attacks(pattern, most):
        for method in (found.match, found.fullmatch):
            signal.setitimer(signal.ITIMER_VIRTUAL, SLOW_S)
            try:
                method(text)
            except TimeoutError:
                return text[:20]
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    def ring(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, ring)
    yield
    signal.signal(signal.SIGVTALRM, before)


def test_no_pattern_of_the_package_takes_long_on_any_text() -> None:
    patterns = compiled()
    assert len(patterns) > 20
    assert {where: slow for where, one in patterns.items() if (slow := slow_on(one))} == {}


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(?:\w+\s?)*:", r"[A-Za-z0-9][^\s=]*(\.[^\s=]+)+"])
def test_a_bad_pattern_would_be_found(pattern: str) -> None:
    assert slow_on(pattern)
