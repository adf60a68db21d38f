"""YAML text to plain data with the line of every key, and back.

Scalars follow the core schema of YAML 1.2: `4e9` is a number, `no` and `2000-01-01` are text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import yaml

from cprsim.errors import Place, Problem, ScenarioError
from cprsim.foreign import one_line

MOST_OF_A_COMPLAINT = 80  # characters of what PyYAML says, which may hold a name from the text
MOST_DIGITS_OF_AN_ENTRY = 6
KeyPath = tuple[str | int, ...]
Scalar = None | bool | int | float | str
Plain = Scalar | list["Plain"] | dict[str, "Plain"]

_WORDS: dict[str, Scalar] = {"": None, "~": None, "null": None, "true": True, "false": False}
_WORDS |= {word.title(): value for word, value in _WORDS.items()}
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}


@dataclass
class YamlDocument:
    """Plain data, where each of its keys stands, and what was wrong on the way."""

    data: Plain
    lines: dict[KeyPath, int]
    problems: list[Problem]


class _Loader(yaml.SafeLoader):
    """Leaves it to `scalar` what unquoted scalars mean."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


def read_document(text: str, file: Path | str) -> YamlDocument:
    """Plain data of one YAML document. Raises ScenarioError where the text is no YAML."""
    document = YamlDocument(None, {}, [])
    try:
        root = yaml.compose(text, Loader=_Loader)
        document.data = None if root is None else _plain(root, (), document, file)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        complaint = one_line(error.problem or error.context or "", MOST_OF_A_COMPLAINT)
        line = mark.line + 1 if mark is not None else None
        raise ScenarioError.at(Place(file, line), f"is not valid YAML: {complaint}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ScenarioError.at(Place(file, line), f"is not a text file: {error.reason}") from None
    except RecursionError:
        raise ScenarioError.at(Place(file), "is nested too deeply, or in itself") from None
    return document


def _plain(node: yaml.Node, path: KeyPath, document: YamlDocument, file: Path | str) -> Plain:
    """The data of a node; its lines and problems go into the document."""
    line = node.start_mark.line + 1
    document.lines.setdefault(path, line)
    if not node.tag.endswith((":str", ":map", ":seq")):
        message = f"tag {one_line(node.tag)} is not allowed: write it plainly"
        document.problems.append(Problem(Place(file, line), "", message))
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one, (*path, i), document, file) for i, one in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        return scalar(node.value) if node.style is None else str(node.value)
    found: dict[str, Plain] = {}
    for key_node, value in node.value:
        line, key = key_node.start_mark.line + 1, key_node.value
        if not isinstance(key_node, yaml.ScalarNode):
            message = "a key must be plain text (is a ${...} or a {...} unquoted?)"
            raise ScenarioError.at(Place(file, line), message)
        if key in found:
            message = f"is there twice: line {document.lines[*path, key]} has it already"
            document.problems.append(Problem(Place(file, line), dotted((*path, key)), message))
            continue
        document.lines[*path, key] = line
        found[key] = _plain(value, (*path, key), document, file)
    return found


def scalar(text: str) -> Scalar:
    """What an unquoted scalar means in YAML 1.2's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(_SPECIAL[text.lower()]) if text.lower() in _SPECIAL else text


def as_written(part: str) -> str | int:
    """A part of a dotted key as a step of a path: the number of an entry, or a name."""
    is_number = part.isascii() and part.isdigit() and len(part) <= MOST_DIGITS_OF_AN_ENTRY
    return int(part) if is_number else part


def dotted(path: KeyPath) -> str:
    """A key path as users write it; list entries by their number, from 0."""
    return one_line(".".join(str(part) for part in path))


# ---------------------------------------------------------------------------- and back


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
