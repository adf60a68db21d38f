"""Seeded damage: to trees of plain data, to texts, to tables and to bytes.

Every mutation takes its random numbers from the `Random` that it is handed, and says in one line
what it did.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any

Tree = Any  # dicts, lists and scalars, as YAML and JSON hold them
Rows = list[list[str]]

ESCAPES = (
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "a\rb",
    "bell\x07",
    "\x9b2J",
    "x\u202etxt.exe",
    "\x7f",
)
MARKUP = (
    "<script>alert(1)</script>", "</script><script>alert(1)</script>", '"><img src=x onerror=a()>',
    "$x^2$", "$\\frac{", "$$", "a_{b", "[red]x[/red]", "[/]", "{{ 7*7 }}", "%s%n", "=1+1", "@x",
    "-x",
)  # fmt: skip
PATHS = (
    "../../etc/passwd",
    "/dev/zero",
    "/dev/null",
    "/",
    ".",
    "..",
    "~",
    "nul\x00byte",
    "a" * 300,
)
VARIABLES = ("${HOME}", "${CPRSIM_DATA}", "${CPRSIM_NOT_SET}", "${", "${}", "$HOME")
WORDS = (
    "", " ", "null", "true", "no", "nan", ".nan", ".inf", "-.inf", "inf", "NaN", "1e999", "0x10",
    "1_000", "²", "١٢", "１２ h", "None", "full", "partial", "any", "transfer", "é" * 50, "😀",
    "a" * 5000, "a.b.c", "a=b", "a:b:c", "1:2:log3", "--json", "-", "*", "&a",
    "!!python/object:os.system x",
)  # fmt: skip
QUANTITIES = (
    "0 h", "-1 h", "1 s", "1 ms", "1e-9 s", "1e300 h", "1e400 h", "nan h", "inf h", "5", "5 MB",
    "5 parsec", "3 h 20 min", "0.1 Gbit/s", "25 Gbit/s", "100000 h", "1 us", "1 min", "50 %",
    "100 %", "0 %", "1/3 h", "h", "1 h h", "1e5 d", "0.0001 h", "7 B", "1000 PB", "9" * 400 + " h",
    "1 h" * 50, "**2 h", "2**99999 h",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 7, 0.5, 1.5, -0.0, 1e-300, 1e300, float("nan"), float("inf"), -float("inf"),
    2**31, 2**53, 2**63 - 1, 2**63, 10**18, 10**30, 100_000, 100_001, 10**7, -(10**9), 1e-9,
    0.999999, 1.0000001,
)  # fmt: skip
TIMES = (
    "9999-12-31", "9999-12-31T23:59:59.999999", "0001-01-01", "0000-00-00", "1677-09-21T00:12:43",
    "1677-09-21", "2262-04-11", "2262-04-12", "2262-04-11T23:47:16.854775808", "1970-01-01",
    "2024-02-30", "24:00", "2024-05-01T13:30:00Z", "2024-05-01T13:30:00+99:99",
    "2024-05-01T13:30:00.1234567891234", "20240501", "2024-W18-3", "01/02/2003 04:05",
    "99/99/9999 99:99", "12/31/9999 23:59", "01/01/0001 00:00", "NaT", "nan", "inf", "-inf",
    "1e400", "-1", "1e18", "1e-300", "0", "", " ", "9" * 401, "0x1F", "1,5",
)  # fmt: skip
SNIPPETS = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n\n", b"\t", b'"', b"'", b",", b";",
    b"{", b"}", b"[", b"]", b": ", b"- ", b"&a [*a]", b"*x", b"%", b"\x1b[2J", b"\xc2\x9b",
    b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"9" * 401, b"1e999", b"NaN", b"null", b"\\u0000",
    b"\\ud800", b"---\n", b"? ", b"!!binary x", b"<<: *a", b"[" * 3000, b"{a: " * 200,
    b"\n" * 2000,
)  # fmt: skip


def nasty(random: Random, like: object = None) -> Tree:
    """A value that may not belong where it is put; often of the kind of what it replaces."""
    if isinstance(like, str) and like[:1].isdigit() and random.random() < 0.8:
        return scaled(like, random) if random.random() < 0.7 else random.choice(QUANTITIES)
    if isinstance(like, int | float) and random.random() < 0.8:
        factors = (0, 0.01, 0.1, 0.5, 0.9, 2, 3, 10, 100, 1000, 10**6, -1)
        near = [
            like + 1,
            like - 1,
            like * random.choice(factors),
            int(like * random.choice(factors)),
        ]
        return random.choice([random.choice(NUMBERS), *near])
    pools: tuple[Sequence[Any], ...] = (
        NUMBERS, NUMBERS, QUANTITIES, QUANTITIES, WORDS, WORDS, ESCAPES, MARKUP, PATHS, VARIABLES,
        TIMES, (None, True, False, [], {}, [[]], [None], {"": ""}, {"a": {"b": []}}),
    )  # fmt: skip
    return random.choice(random.choice(pools))


def scaled(quantity: str, random: Random) -> str:
    """The quantity in another order of magnitude, or in another unit."""
    number, _, unit = quantity.partition(" ")
    try:
        value = float(number)
    except ValueError:
        return quantity
    if random.random() < 0.3:
        return f"{number} {random.choice(['ms', 's', 'min', 'h', 'd', 'GB', 'Gbit/s', '%', ''])}"
    factor = (
        random.choice([0.1, 0.5, 2, 10]) if random.random() < 0.6 else 10.0 ** random.randint(-9, 9)
    )
    return f"{value * factor:g} {unit}"


# ------------------------------------------------------------------------------------- trees


def places(tree: Tree, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything below the root."""
    entries = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    found: list[tuple[Any, ...]] = []
    for key, value in entries:
        found += [(*path, key), *places(value, (*path, key))]
    return found


def at(tree: Tree, path: tuple[Any, ...]) -> Tree:
    for key in path:
        tree = tree[key]
    return tree


def mutate_tree(tree: Tree, random: Random, others: Sequence[Tree] = ()) -> tuple[Tree, str]:
    """A damaged copy of a tree, and what was done to it.

    Parameters
    ----------
    tree : stays as it is
    others : trees of the same kind, whose sections may take the place of this one's
    """
    tree = deepcopy(tree)
    paths = places(tree)
    if not paths:
        return nasty(random), "replace all"
    path = random.choice(paths)
    holder, key = at(tree, path[:-1]), path[-1]
    name = ".".join(str(part) for part in path)
    how = random.choice(
        ["value"] * 6 + ["cross"] * 3 + ["delete", "swap", "wrap", "add", "deep", "many", "key"]
    )
    if how == "value":
        holder[key] = nasty(random, holder[key])
        return tree, f"set {name} to {holder[key]!r:.80}"
    if how == "delete":
        del holder[key]
        return tree, f"delete {name}"
    if how == "swap":
        other = random.choice(paths)
        if other[: len(path)] == path or path[: len(other)] == other:
            return tree, "nothing"
        there = at(tree, other[:-1])
        holder[key], there[other[-1]] = there[other[-1]], holder[key]
        return tree, f"swap {name} and {'.'.join(map(str, other))}"
    if how == "cross" and others:
        other_tree = random.choice(others)
        same = [p for p in places(other_tree) if p[-1] == key] or places(other_tree)
        holder[key] = deepcopy(at(other_tree, random.choice(same)))
        return tree, f"take {name} from another file"
    if how == "wrap":
        holder[key] = random.choice(
            [[holder[key]], {"a": holder[key]}, [holder[key]] * 2, str(holder[key])]
        )
        return tree, f"wrap {name}"
    if how == "deep":
        deep: Tree = []
        for _ in range(random.choice([5, 30, 300])):
            deep = [deep] if random.random() < 0.5 else {"a": deep}
        holder[key] = deep
        return tree, f"nest below {name}"
    if how == "many" and isinstance(holder[key], list) and holder[key]:
        holder[key] = holder[key] * random.choice([2, 60, 3000])
        return tree, f"repeat {name}"
    if how == "key" and isinstance(holder, dict):
        new = random.choice([*WORDS, *ESCAPES, *MARKUP, str(random.choice(NUMBERS))])
        holder[new] = holder.pop(key)
        return tree, f"rename {name} to {new!r:.40}"
    if isinstance(holder, dict):
        extra = random.choice(
            [*WORDS, "interval", "target_pls", "spares", "clock", "start", "sigma", "shape"]
        )
        holder[extra] = nasty(random)
        return tree, f"add {extra!r:.40} beside {name}"
    holder.insert(random.randrange(len(holder) + 1), nasty(random))
    return tree, f"insert beside {name}"


# ------------------------------------------------------------------------------------- bytes


def mutate_bytes(content: bytes, random: Random) -> tuple[bytes, str]:
    """Damaged bytes of a text, and what was done to them."""
    where = random.randrange(len(content) + 1)
    to = min(len(content), where + random.choice([1, 2, 8, 64, 512]))
    how = random.choice(
        ["flip", "cut", "insert", "insert", "drop", "twice", "digits", "lines", "recode"]
    )
    if how == "flip" and content:
        where = min(where, len(content) - 1)
        flipped = bytes([content[where] ^ 1 << random.randrange(8)])
        return content[:where] + flipped + content[where + 1 :], f"flip a bit of byte {where}"
    if how == "cut":
        return content[:where], f"cut off at byte {where}"
    if how == "insert":
        snippet = random.choice(SNIPPETS)
        return content[:where] + snippet + content[
            where:
        ], f"insert {snippet!r:.40} at byte {where}"
    if how == "drop":
        return content[:where] + content[to:], f"drop bytes {where} to {to}"
    if how == "twice":
        return content[:to] + content[where:], f"bytes {where} to {to} twice"
    if how == "digits":
        digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
        if digits:
            where = random.choice(digits)
            number = random.choice([b"0", b"-1", b"99999999999", b"1e308", b"nan", b"0.0000001"])
            return content[:where] + number + content[where + 1 :], f"{number!r} at byte {where}"
    if how == "lines":
        lines = content.splitlines(keepends=True)
        if len(lines) > 1:
            i, j = random.randrange(len(lines)), random.randrange(len(lines))
            lines[i], lines[j] = (
                (lines[j], lines[i]) if random.random() < 0.5 else (lines[i], lines[i])
            )
            return b"".join(lines), f"lines {i} and {j} swapped or the same"
    if how == "recode":
        encoding = random.choice(["utf-16", "utf-32", "utf-8-sig", "latin-1"])
        text = content.decode("utf-8", "replace").encode(encoding, "replace")
        return text, f"as {encoding}"
    return content + content, "all of it twice"


# ------------------------------------------------------------------------------------- tables


def table(content: bytes) -> Rows:
    return list(csv.reader(io.StringIO(content.decode("utf-8"))))


def as_csv(rows: Rows, separator: str = ",") -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", delimiter=separator).writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def mutate_table(rows: Rows, random: Random) -> tuple[Rows, str]:
    """A damaged copy of a CSV's rows, its header among them, and what was done to it."""
    rows = [list(row) for row in rows]
    if len(rows) < 2 or not rows[0]:
        return [["node", "start", "end"], ["a", "0", "1"]], "a table of one row"
    row, column = random.randrange(1, len(rows)), random.randrange(len(rows[0]))
    name = rows[0][column]
    name_of: dict[str, Callable[[], str]] = {}

    def step(function: Callable[[], str]) -> Callable[[], str]:
        name_of[function.__name__] = function
        return function

    def put(value: str) -> None:
        if column < len(rows[row]):
            rows[row][column] = value

    @step
    def blank() -> str:
        put(random.choice(["", " "]))
        return f"blank {name} of row {row}"

    @step
    def value() -> str:
        said = str(random.choice([random.choice(TIMES), nasty(random)]))
        put(said)
        return f"{name} of row {row} is {said!r:.60}"

    @step
    def from_another_row() -> str:
        other = random.choice(rows[1:])
        put(other[min(column, len(other) - 1)] if other else "")
        return f"{name} of row {row} from another row"

    @step
    def rows_gone() -> str:
        del rows[row : row + random.choice([1, 1, 10, 30])]
        return f"no row {row}"

    @step
    def row_twice() -> str:
        rows.insert(row, list(rows[row]))
        return f"row {row} twice"

    @step
    def whole_column() -> str:
        said = str(random.choice([random.choice(TIMES), nasty(random)]))
        for one in rows[1:]:
            one[min(column, len(one) - 1)] = said
        return f"all of {name} is {said!r:.60}"

    @step
    def no_column() -> str:
        for one in rows:
            del one[column : column + 1]
        return f"no column {name}"

    @step
    def empty_column() -> str:
        for one in rows[1:]:
            one[column : column + 1] = [""]
        return f"nothing in column {name}"

    @step
    def second_column() -> str:
        for one in rows:
            one.append(one[min(column, len(one) - 1)] if one else "")
        return f"column {name} twice"

    @step
    def other_name() -> str:
        rows[0][column] = random.choice([*WORDS, *rows[0], name.upper(), "0", "Unnamed: 0"])
        return f"column {name} is called {rows[0][column]!r:.40}"

    @step
    def cell_less() -> str:
        del rows[row][-1:]
        return f"row {row} is a cell short"

    @step
    def cell_more() -> str:
        rows[row].append("x")
        return f"row {row} has a cell more"

    @step
    def other_order() -> str:
        rows[1:] = random.sample(rows[1:], len(rows) - 1)
        return "rows in another order"

    @step
    def columns_swapped() -> str:
        other = random.randrange(len(rows[0]))
        for one in rows:
            if max(column, other) < len(one):
                one[column], one[other] = one[other], one[column]
        return f"columns {column} and {other} swapped"

    @step
    def rows_twice() -> str:
        times = random.choice([1, 1, 5, 40])
        rows.extend([list(one) for one in rows[1:]] * times)
        return f"all rows {times + 1} times"

    @step
    def few_rows() -> str:
        n = random.choice([0, 1, 1, 2, 3])
        del rows[1 + n :]
        return f"only {n} rows"

    @step
    def one_node() -> str:
        for one in rows[1:]:
            one[0:1] = ["n"]
        return f"one value of {rows[0][0]}"

    @step
    def other_numbers() -> str:
        factor = 10.0 ** random.randint(-12, 12)
        for one in rows[1:]:
            if column < len(one):
                try:
                    one[column] = f"{float(one[column]) * factor:g}"
                except ValueError:
                    return "nothing"
        return f"{name} times {factor:g}"

    said = random.choice(list(name_of.values()))()
    return rows, said
