"""Parsing lines of Criteo's format, compiled: bytes in, numbers out, the first mistake named.

A line is ``label, 13 integers, 26 categories`` with tabs between: the label 0 or 1, an integer
decimal with an optional minus, a category eight hexadecimal digits; empty means missing.
"""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled
from cprsim.kernel.loops import Array

N_FIELDS = 40
FINE, WRONG_COUNT, BAD_LABEL, BAD_INTEGER, BAD_CATEGORY = range(5)

TAB, NEWLINE, RETURN, MINUS, ZERO = 9, 10, 13, 45, 48
UPPER_A, LOWER_A = 65, 97
MOST_DIGITS = 18  # all that fit 64 bits


@compiled
def parse_lines(
    text: Array, at: int, label: Array, integers: Array, categories: Array
) -> tuple[int, int, int, int]:
    """Parse whole lines of `text` (uint8) from `at` until the arrays are full.

    Returns how many lines were parsed, where the next one begins, what is wrong with that one
    (FINE where nothing: the rest of the text is no whole line), and its field, or, where their
    count is wrong, how many fields it has.
    """
    n = 0
    while n < label.shape[0]:
        end, n_fields = at, 1
        while end < text.shape[0] and text[end] != NEWLINE:
            n_fields += text[end] == TAB
            end += 1
        if end == text.shape[0]:
            break
        stop = end - 1 if end > at and text[end - 1] == RETURN else end
        if n_fields != N_FIELDS:
            return n, at, WRONG_COUNT, n_fields
        problem, field = parse_fields(text, at, stop, n, label, integers, categories)
        if problem != FINE:
            return n, at, problem, field
        at = end + 1
        n += 1
    return n, at, FINE, 0


@compiled
def parse_fields(
    text: Array, at: int, stop: int, n: int, label: Array, integers: Array, categories: Array
) -> tuple[int, int]:
    """Write the 40 fields of ``text[at:stop]`` to row n; (problem, field) of the first mistake."""
    first, field = at, 0
    for i in range(at, stop + 1):
        if i < stop and text[i] != TAB:
            continue
        if field == 0:
            if i != first + 1 or not ZERO <= text[first] <= ZERO + 1:
                return BAD_LABEL, field
            label[n] = text[first] - ZERO
        elif field <= integers.shape[1]:
            fine, value = parse_integer(text, first, i)
            if not fine:
                return BAD_INTEGER, field
            integers[n, field - 1] = value
        else:
            category = parse_category(text, first, i)
            if category < -1:
                return BAD_CATEGORY, field
            categories[n, field - 1 - integers.shape[1]] = category
        first = i + 1
        field += 1
    return FINE, 0


@compiled
def parse_integer(text: Array, first: int, stop: int) -> tuple[bool, float]:
    """(whether it is one, its value); NaN for an empty field."""
    if first == stop:
        return True, np.nan
    negative = text[first] == MINUS
    first += negative
    if not 1 <= stop - first <= MOST_DIGITS:
        return False, 0.0
    value = 0
    for i in range(first, stop):
        digit = np.int64(text[i]) - ZERO
        if not 0 <= digit <= 9:
            return False, 0.0
        value = 10 * value + int(digit)
    return True, float(-value if negative else value)


@compiled
def parse_category(text: Array, first: int, stop: int) -> int:
    """Its 32-bit value; -1 for an empty field, -2 where it is not eight hexadecimal digits."""
    if first == stop:
        return -1
    if stop - first != 8:
        return -2
    value = 0
    for i in range(first, stop):
        c = np.int64(text[i])
        if ZERO <= c <= ZERO + 9:
            digit = c - ZERO
        elif LOWER_A <= c < LOWER_A + 6:
            digit = c - LOWER_A + 10
        elif UPPER_A <= c < UPPER_A + 6:
            digit = c - UPPER_A + 10
        else:
            return -2
        value = 16 * value + int(digit)
    return value
