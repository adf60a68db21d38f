"""YAML text to plain data with the place of every key, and back.

Scalars follow the core schema of YAML 1.2: `4e9` is a number, `no` and `2000-01-01` are text.
"""

from __future__ import annotations

import re
from math import inf
from pathlib import Path
from typing import Any, Literal

import yaml

from cprsim.errors import Place, Problem, ScenarioError, one_line

MAX_BYTES = 500_000  # of a scenario, what its aliases stand for included
MOST_OF_A_COMPLAINT = 80  # characters of what PyYAML says, which may hold a name from the text
Scalar = None | bool | int | float | str
Plain = Scalar | list["Plain"] | dict[str, "Plain"]

Mark = Literal["assumed", "recalled"]
ASSUMED: Mark = "assumed"
RECALLED: Mark = "recalled"
_FIRM = ("given", "published", "secondary", "derived", "fitted", "measured")  # marks of all others
_MARKED = re.compile(rf"\s#\s*((?:(?:{'|'.join((ASSUMED, RECALLED, *_FIRM))})\b[,;:]?\s*)+)")

_WORDS: dict[str, Scalar] = {"": None, "~": None, "null": None, "true": True, "false": False}
_WORDS |= {word.title(): value for word, value in _WORDS.items()}
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = {".inf": inf, "+.inf": inf, "-.inf": -inf, ".nan": float("nan")}


class _Loader(yaml.SafeLoader):
    """Leaves it to `scalar` what unquoted scalars mean."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


def read_yaml(text: str, file: Path | str) -> tuple[Plain, dict[str, Place]]:
    """The data of one YAML document, and the place of each of its dotted keys.

    Raises ScenarioError for invalid YAML, a repeated key, a tag, or aliases that expand to too
    much text.
    """
    places: dict[str, Place] = {}
    problems: list[Problem] = []
    n_bytes = 0  # as if all aliases were spelled out

    def plain(node: yaml.Node, key: str) -> Plain:
        nonlocal n_bytes
        place = _place(file, node)
        n_bytes += len(node.value) if isinstance(node, yaml.ScalarNode) else 1
        if n_bytes > MAX_BYTES:
            message = f"with its aliases spelled out it has more than {MAX_BYTES} bytes"
            raise ScenarioError.at(place, message)
        places.setdefault(key, place)
        if not node.tag.endswith((":str", ":map", ":seq")):
            message = f"tag {one_line(node.tag)} is not allowed: write it plainly"
            problems.append(Problem(place, "", message))
        if isinstance(node, yaml.SequenceNode):
            return [plain(entry, dotted(key, i)) for i, entry in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return scalar(node.value) if node.style is None else str(node.value)
        mapping: dict[str, Plain] = {}
        for name, value in node.value:
            below, place = dotted(key, name.value), _place(file, name)
            if not isinstance(name, yaml.ScalarNode):
                message = "a key must be plain text (is a ${...} or a {...} unquoted?)"
                raise ScenarioError.at(place, message)
            if name.value in mapping:
                message = f"is there twice: line {places[below].line} has it already"
                problems.append(Problem(place, one_line(below), message))
                continue
            places[below] = place
            mapping[name.value] = plain(value, below)
        return mapping

    try:
        root = yaml.compose(text, Loader=_Loader)
        data = None if root is None else plain(root, "")
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = Place(file, mark and mark.line + 1)
        words = [getattr(error, name, None) for name in ("problem", "context", "reason")]
        why = next(filter(None, words), "nested too deeply, or in itself")
        complaint = f"is not valid YAML: {one_line(why, MOST_OF_A_COMPLAINT)}"
        raise ScenarioError.at(place, complaint) from None
    if problems:
        raise ScenarioError(problems)
    return data, places


def marks_in(text: str) -> dict[int | None, Mark | None]:
    """The mark that the comment of a line begins with, by line; None: its value is known."""
    found = ((n, _MARKED.search(line)) for n, line in enumerate(text.splitlines(), start=1))
    by_caution = (RECALLED, ASSUMED)
    return {n: next((m for m in by_caution if m in said[1]), None) for n, said in found if said}


def _place(file: Path | str, node: yaml.Node) -> Place:
    return Place(file, node.start_mark.line + 1)


def dotted(section: str, key: str | int) -> str:
    """The dotted key of an entry in a section."""
    return f"{section}.{key}" if section else str(key)


def scalar(text: str) -> Scalar:
    """Parse an unquoted scalar by YAML 1.2's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else _SPECIAL.get(text.lower(), text)


class _Dumper(yaml.SafeDumper):
    """Quotes the texts that our reader would take for numbers or truth values."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if scalar(text) == text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_plain(data: Plain, *, on_one_line: bool = False) -> str:
    """YAML text that reads back to the same plain data."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True,
        default_flow_style=on_one_line, width=inf if on_one_line else 100,
    )  # fmt: skip
    return text
