"""What TAB offers: it has half a second, so that nothing is imported that a command needs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from cprsim.files import SCHEMA_FILE, SHIPPED, SHIPPED_CURVES, file_or_shipped, shipped_scenarios
from cprsim.version import PACKAGE

STUDIES = PACKAGE / "commands" / "reproduce" / "studies.yaml"
FILES = {"scenario": ("*.y*ml", "*/*.y*ml"), "curve": ("*.json", "*.csv")}  # by kind of value


@cache
def _schema() -> dict[str, Any]:
    return json.loads((SHIPPED / SCHEMA_FILE).read_text("utf-8"))  # type: ignore[no-any-return]


VALUES: dict[str, Callable[[dict[str, Any]], Iterable[str]]] = {  # by kind, of the scenario at hand
    "algorithm": lambda scenario: _schema()["$defs"]["Algorithm"]["enum"],
    "curve": lambda scenario: (path.stem for path in SHIPPED_CURVES.glob("*.json")),
    "entry": lambda scenario: (_name(one, "name", "strategy") for one in scenario["recovery"]),
    "format": lambda scenario: [*import_module("cprsim.logs.formats").names(), "costs"],
    "key": lambda scenario: dict.fromkeys(f"{key}=" for key in _keys(_schema(), scenario)),
    "rate": lambda scenario: import_module("cprsim.failures.presets").FAILURE_PRESETS,
    "scenario": lambda scenario: shipped_scenarios(),
    "shipped": lambda scenario: shipped_scenarios(),
    "study": lambda scenario: _mapping(STUDIES),
    "system": lambda scenario: _systems(),
    "tracker": lambda scenario: import_module("cprsim.job.losses").RESPONSE_KEYS,
}


def _systems() -> Any:
    if os.environ.get("CPRSIM_SYSTEMS"):  # names more
        return import_module("cprsim.recovery.systems").SYSTEMS
    return _schema()["$defs"]["RecoverySection"]["properties"]["strategy"]["enum"]


def completer(kind: str, metavar: str) -> Callable[..., list[str]]:
    """What completes a kind of values, or the words in small letters of a placeholder."""

    def offers(ctx: typer.Context, incomplete: str) -> list[str]:
        before = incomplete[: incomplete.rfind(",") + 1]  # of a list with commas
        found = [word for word in metavar.split("|") if word.islower()]
        with suppress(Exception):  # whatever is broken completes nothing
            found += VALUES[kind](_at_hand(ctx)) if kind else ()
        folder = Path(incomplete[: incomplete.rfind("/") + 1])
        files = (file for pattern in FILES.get(kind, ()) for file in sorted(folder.glob(pattern)))
        return [
            offer for offer in (*(before + name for name in found), *map(str, files))
            if offer.isprintable()
        ]  # fmt: skip

    return offers


def _at_hand(ctx: typer.Context) -> dict[str, Any]:
    """The scenario that stands earlier on the line; empty where it can't be read."""
    with suppress(Exception):
        path = file_or_shipped(Path(ctx.params["scenario"] or ctx.args[0]))
        return _mapping(path) if path.is_file() else {}
    return {}


def _mapping(path: Path) -> dict[str, Any]:
    from cprsim.scenario.yaml_text import MAX_BYTES, read_yaml

    with path.open(encoding="utf-8") as file:
        data: Any = read_yaml(file.read(MAX_BYTES), path)[0]
    return data if isinstance(data, dict) else {}


def _keys(node: dict[str, Any], value: Any, path: str = "", system: str = "") -> Iterator[str]:
    """The dotted keys below a section: of the kind at hand, with the options of its system alone.

    Entries of a list go by name.
    """
    value = value if isinstance(value, dict) else {}
    for form in _forms(node):
        named = form.get("properties", {})
        kind = named.get("kind", {}).get("const")
        for name, below in named.items() if value.get("kind", kind) == kind else ():
            key, inner, forms = f"{path}{name}", value.get(name), _forms(below)
            if form.get("title") == "Options" and system not in re.findall(
                "[a-z-]+", below["description"]
            ):
                continue
            found: list[str] = []
            for entry in inner if isinstance(inner, list) else ():
                of, under = _name(entry, "strategy"), f"{key}.{_name(entry, 'name', 'strategy')}."
                found += [
                    one for form in forms for one in _keys(form.get("items", {}), entry, under, of)
                ]
            if isinstance(inner, dict) or all(
                "properties" in form or form.get("type") == "null" for form in forms
            ):
                found += _keys(below, inner, f"{key}.", system)
            yield from found or [key]


def _forms(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The forms that a value may have, references followed."""
    if "$ref" in node:
        node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    several = node.get("anyOf") or node.get("oneOf")
    return [form for one in several for form in _forms(one)] if several else [node]


def _name(entry: Any, *keys: str) -> str:
    """The first of some keys that an entry of a list has; one that is no section is its name."""
    named = (entry.get(key) for key in keys) if isinstance(entry, dict) else (entry,)
    return str(next(filter(None, named), ""))
