"""What TAB offers for the values of options, without the imports of a command: within half a second.

The keys of a scenario are those of the JSON schema that ships with it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import typer

from cprsim.errors import CprsimError
from cprsim.files import SCHEMA_FILE, SHIPPED, SHIPPED_CURVES, file_or_shipped, shipped_scenarios
from cprsim.version import PACKAGE

Offer = str | tuple[str, str]  # a value, and what it means
Values = Callable[[typer.Context, str], Iterator[Offer]]
MOST_BYTES = 500_000  # of a scenario that is read for its keys


def completer(kind: str, metavar: str) -> Callable[..., list[Offer]]:
    """What completes values of a kind (`VALUES`), and the words in small letters of a placeholder.

    A broken file completes nothing.
    """

    def offers(ctx: typer.Context, incomplete: str) -> list[Offer]:
        found: list[Offer] = [word for word in metavar.split("|") if word.islower()]
        with suppress(CprsimError, OSError, ValueError, LookupError):
            found.extend(VALUES[kind](ctx, incomplete) if kind else ())
        return found

    return offers


def _scenarios(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    yield from shipped_scenarios()
    yield from _files(incomplete, ".yaml", ".yml")


def _curves(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    yield from (path.stem for path in SHIPPED_CURVES.glob("*.json"))
    yield from _files(incomplete, ".json", ".csv")


def _rates(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    from cprsim.failures.presets import FAILURE_PRESETS

    yield from ((rate.name, rate.note) for rate in FAILURE_PRESETS.values())
    yield from _files(incomplete, ".yaml", ".csv", ".json", ".jsonl")


def _formats(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    from cprsim.logs.formats import names

    yield from (*names(), "costs")


def _studies(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    studies = _yaml(PACKAGE / "commands" / "reproduce" / "studies.yaml")
    yield from ((name, study["shows"]) for name, study in studies.items())


def _responses(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    from cprsim.job.losses import RESPONSE_KEYS

    yield from RESPONSE_KEYS


def _systems(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    before = incomplete[: incomplete.rfind(",") + 1]  # of a list with commas
    named = _schema()["$defs"]["RecoverySection"]["properties"]["strategy"]["enum"]
    if os.environ.get("CPRSIM_SYSTEMS"):
        from cprsim.recovery.systems import SYSTEMS

        named = [*SYSTEMS]
    yield from (before + name for name in named)


def _entries(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    before = incomplete[: incomplete.rfind(",") + 1]
    yield from (before + _name(entry, "") for entry in _at_hand(ctx).get("recovery", ()))


def _set_keys(ctx: typer.Context, incomplete: str) -> Iterator[Offer]:
    yield from ((f"{key}=", words) for key, words in dict(_keys(_schema(), _at_hand(ctx))).items())


VALUES: dict[str, Values] = {
    "algorithm": lambda ctx, incomplete: iter(_schema()["$defs"]["Algorithm"]["enum"]),
    "scenario": _scenarios,
    "shipped": lambda ctx, incomplete: iter(shipped_scenarios()),
    "curve": _curves,
    "entry": _entries,
    "format": _formats,
    "key": _set_keys,
    "rate": _rates,
    "response": _responses,
    "study": _studies,
    "system": _systems,
}


def _files(incomplete: str, *endings: str) -> Iterator[str]:
    """Files of the folder that is written so far, and of those in it."""
    folder = Path(incomplete[: incomplete.rfind("/") + 1])
    for pattern in ("*", "*/*"):
        yield from (str(path) for path in sorted(folder.glob(pattern)) if path.suffix in endings)


# ------------------------------------------------------------------------ keys of a scenario


@cache
def _schema() -> dict[str, Any]:
    return json.loads((SHIPPED / SCHEMA_FILE).read_text("utf-8"))  # type: ignore[no-any-return]


def _yaml(path: Path) -> dict[str, Any]:
    from cprsim.scenario.yaml_text import read_yaml

    with path.open(encoding="utf-8") as file:
        data: Any = read_yaml(file.read(MOST_BYTES), path)[0]
    return data if isinstance(data, dict) else {}


def _at_hand(ctx: typer.Context) -> dict[str, Any]:
    """The scenario that stands earlier on the line; empty where it can't be read."""
    named = Path(ctx.params.get("scenario") or "")
    with suppress(CprsimError, OSError, ValueError):
        path = file_or_shipped(named)
        return _yaml(path) if path.is_file() else {}
    return {}


def _keys(
    node: dict[str, Any], value: Any, path: str = "", strategy: str = ""
) -> Iterator[tuple[str, str]]:
    """The dotted keys below a section, with their descriptions.

    Of a section that can have several forms, those of the kind at hand.
    """
    value = value if isinstance(value, dict) else {}
    for form in _forms(node):
        named = form.get("properties", {})
        kind = named.get("kind", {}).get("const")
        if value.get("kind", kind) != kind:
            continue
        for name, below in named.items():
            words, inner = below.get("description", ""), value.get(name)
            if form.get("title") == "Options" and strategy not in re.split("[ ,:.]+", words):
                continue
            forms = [one for one in _forms(below) if one.get("type") != "null"]
            sections = [one for one in forms if "properties" in one]
            if isinstance(inner, list) and any("items" in one for one in forms):
                (items,) = (one["items"] for one in forms if "items" in one)
                for number, entry in enumerate(inner):
                    of = entry.get("strategy", "") if isinstance(entry, dict) else str(entry)
                    yield from _keys(items, entry, f"{path}{name}.{_name(entry, number)}.", of)
            elif sections and (isinstance(inner, dict) or len(sections) == len(forms)):
                yield from _keys(below, inner, f"{path}{name}.", strategy)
            else:
                yield f"{path}{name}", words


def _forms(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The forms that a value may have, references followed."""
    if "$ref" in node:
        node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    several = node.get("anyOf") or node.get("oneOf")
    return [form for one in several for form in _forms(one)] if several else [node]


def _name(entry: Any, number: object) -> str:
    """The name of an entry of a list, else its number."""
    if isinstance(entry, dict):
        entry = entry.get("name") or entry.get("strategy")
    return entry if isinstance(entry, str) else str(number)
