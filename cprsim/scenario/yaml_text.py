"""YAML text to plain data with the line of every key, and back.

Nothing in the text can hang or explode the reader.
The events of PyYAML's parser are folded into a tree here, so that duplicate keys are seen, nesting
and size are bounded while reading, and scalars follow the core schema of YAML 1.2: `4e9` is a
number, `no` and `2000-01-01` are text. Aliases are spelled out within a budget of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from cprsim.errors import Place, Problem, ScenarioError
from cprsim.foreign import one_line

MOST_OF_A_COMPLAINT = 120  # characters of what PyYAML says, which may hold a name from the text
MAX_DEPTH = 20  # levels; the schema has 5
MOST_DIGITS_OF_AN_ENTRY = 6
MAX_NODES = 6_000  # a scenario has fewer than 200; 1,000 tables or injected instants fit
KeyPath = tuple[str | int, ...]
Scalar = None | bool | int | float | str
Plain = Scalar | list["Plain"] | dict[str, "Plain"]

_WORDS: dict[str, Scalar] = {"": None, "~": None, "null": None, "true": True, "false": False}
_WORDS |= {word.title(): value for word, value in _WORDS.items()}
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}


@dataclass
class Node:
    """One scalar, list or mapping of the text, with the line on which it stands."""

    line: int
    value: Plain = None
    entries: list[tuple[str | int, int, Node]] = field(default_factory=list)  # key, its line, node
    is_mapping: bool = False
    is_list: bool = False


@dataclass
class YamlDocument:
    """Plain data, where each of its keys stands, and what was wrong on the way."""

    data: Plain
    lines: dict[KeyPath, int]
    problems: list[Problem]


def read_document(text: str, file: Path | str) -> YamlDocument:
    """Plain data of one YAML document.

    Raises ScenarioError where the text is no YAML, or beyond the bounds on nesting and size.
    """
    reader = _YamlReader(file)
    document = YamlDocument(None, {}, reader.problems)
    try:
        root = reader.root(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        raise reader.error(line, f"is not valid YAML: {_what(error)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise reader.error(line, f"is not a text file: it holds {_character(error)!r}") from None
    except yaml.YAMLError as error:
        raise reader.error(None, f"is not valid YAML: {one_line(str(error))}") from None
    document.data = _Plainly(reader, document.lines).plain(root, ())
    return document


def _what(error: yaml.MarkedYAMLError) -> str:
    """The complaint without the line of the text, which PyYAML would quote."""
    return one_line(error.problem or error.context or "", MOST_OF_A_COMPLAINT)


def _character(error: yaml.reader.ReaderError) -> str:
    """What can't be in YAML; PyYAML hands it on as a number, or as bytes."""
    found = error.character
    return chr(found) if isinstance(found, int) else str(found)


def scalar(text: str) -> Scalar:
    """What an unquoted scalar means in YAML 1.2's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(_SPECIAL[text.lower()]) if text.lower() in _SPECIAL else text


def line_of(event: Event) -> int:
    """The line on which it starts, from 1."""
    return event.start_mark.line + 1 if event.start_mark is not None else 1


def entry_number(part: str) -> int | None:
    """The number of a list's entry, where a part of a key is one; `²` is a digit, but no number."""
    is_number = part.isascii() and part.isdigit() and len(part) <= MOST_DIGITS_OF_AN_ENTRY
    return int(part) if is_number else None


def as_written(part: str) -> str | int:
    """A part of a dotted key as a step of a path: the number of an entry, or a name."""
    number = entry_number(part)
    return part if number is None else number


def dotted(path: KeyPath) -> str:
    """A key path as users write it; list entries by their number, from 0."""
    return one_line(".".join(str(part) for part in path))


class _YamlReader:
    """Folds parser events into a tree of nodes."""

    def __init__(self, file: Path | str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.anchors: dict[str, Node] = {}
        self.n_nodes = 0

    def error(self, line: int | None, message: str) -> ScenarioError:
        return ScenarioError([Problem(Place(self.file, line), "", message)])

    def root(self, events: Iterator[Event]) -> Node:
        """The tree of the one document."""
        root: Node | None = None
        for event in events:
            if isinstance(event, DocumentStartEvent):
                if root is not None:
                    line = line_of(event)
                    raise self.error(line, "a second document starts: one scenario per file")
                root = self.node(next(events), events, 0)
        return root if root is not None else Node(1)

    def node(self, event: Event, events: Iterator[Event], depth: int) -> Node:
        line = line_of(event)
        self.count(line)
        if depth > MAX_DEPTH:
            raise self.error(line, f"is nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, AliasEvent):
            if event.anchor not in self.anchors:
                raise self.error(
                    line, f"alias *{one_line(str(event.anchor))} stands for nothing before it"
                )
            return self.anchors[event.anchor]
        if (tag := getattr(event, "tag", None)) is not None and tag != "!":
            self.problems.append(
                Problem(
                    Place(self.file, line),
                    "",
                    f"tag {one_line(tag)} is not allowed: write it plainly",
                )
            )
        node = self.collection(event, events, depth, line)
        if (anchor := getattr(event, "anchor", None)) is not None:
            self.anchors[anchor] = node
        return node

    def collection(self, event: Event, events: Iterator[Event], depth: int, line: int) -> Node:
        if isinstance(event, ScalarEvent):
            return Node(line, scalar(event.value) if event.implicit[0] else event.value)
        node = Node(
            line,
            is_list=isinstance(event, SequenceStartEvent),
            is_mapping=isinstance(event, MappingStartEvent),
        )
        for child in events:
            if isinstance(child, SequenceEndEvent | MappingEndEvent):
                break
            key_line = line_of(child)
            key: str | int = len(node.entries)
            if node.is_mapping:
                key = self.key(child)
                child = next(events)
            node.entries.append((key, key_line, self.node(child, events, depth + 1)))
        return node

    def key(self, event: Event) -> str:
        if not isinstance(event, ScalarEvent):
            line = line_of(event)
            raise self.error(line, "a key must be plain text (is a ${...} or a {...} unquoted?)")
        return event.value

    def count(self, line: int) -> None:
        self.n_nodes += 1
        if self.n_nodes > MAX_NODES:
            raise self.error(line, f"holds more than {MAX_NODES} values (do aliases explode?)")


class _Plainly:
    """Spells a tree out as plain data; counts again, since an alias stands for all below it."""

    def __init__(self, reader: _YamlReader, lines: dict[KeyPath, int]) -> None:
        self.reader, self.lines = reader, lines
        reader.n_nodes = 0

    def plain(self, node: Node, path: KeyPath) -> Plain:
        self.reader.count(node.line)
        if len(path) > MAX_DEPTH:
            raise self.reader.error(node.line, f"is nested more than {MAX_DEPTH} levels deep")
        self.lines.setdefault(path, node.line)
        if not (node.is_mapping or node.is_list):
            return node.value
        values: dict[str | int, Plain] = {}
        for key, line, child in node.entries:
            if key in values:
                self.twice(path, key, line)
                continue
            self.lines[(*path, key)] = line
            values[key] = self.plain(child, (*path, key))
        return list(values.values()) if node.is_list else {str(k): v for k, v in values.items()}

    def twice(self, path: KeyPath, key: str | int, line: int) -> None:
        first = self.lines[(*path, key)]
        self.reader.problems.append(
            Problem(
                Place(self.reader.file, line),
                dotted((*path, key)),
                f"is there twice: line {first} has it already",
            )
        )


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
