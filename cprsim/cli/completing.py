"""What a shell offers after TAB: scenarios, systems, curves, studies, and keys of a scenario.

Each function takes what stands before the cursor, and answers in an instant: it reads names of
files and the JSON Schema, and imports no room of the program. Whatever goes wrong, it offers
nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

import typer

from cprsim.shipping import CURVES, FOLDER, SCHEMA, file_or_shipped, shipped_scenarios

Offered = list[tuple[str, str]]  # each with what a shell may show beside it
Offer = Callable[[typer.Context, str], Offered]

STUDIES = (
    "failure-analysis", "fleet", "fig-overheads", "accuracy", "pls-accuracy", "sensitivity",
    "scalability", "production", "production-loss", "trackers", "distribution", "shadowsync",
    "systems", "promise",
)  # fmt: skip
"""Names of `cprsim.reproduce.STUDIES`, which takes seconds to import; a test holds them equal."""

KINDS = ("recommender", "llm")
"""Values of `cprsim.scenario.answers.JobKind`, likewise."""

OF_ALL = {
    "recovery.interval": "between saves, of every strategy that saves",
    "recovery.target_pls": "of every strategy that takes a target",
}
"""What `sweep --over` sets in all entries at once: `cprsim.sweeps.points.TAKES`, likewise."""

OF_FLEETS = ("spares", "nodes", "storage", "savers", "crews")
"""Keys of `fleet` that `fleet --over` takes bare: `cprsim.fleets.options.SHORT`, likewise."""

ROLES = ("emb_ps", "trainer", "worker", "sync_ps")
MOST_SHOWN = 60  # characters of a description
NO_MARKUP = str.maketrans("[]", "()")  # a shell's description is read as rich's markup: [h] is lost
LEVELS = 2  # of keys that are offered at once
LIST_LIMIT = 500_000  # bytes of a scenario that are looked at


def quiet(names: Callable[[typer.Context, str], Iterable[tuple[str, str]]]) -> Offer:
    """Offer what begins as the text before the cursor does; nothing where anything goes wrong."""

    @wraps(names)
    def offered(ctx: typer.Context, incomplete: str) -> Offered:
        try:
            return [one for one in names(ctx, incomplete) if one[0].startswith(incomplete)]
        except Exception:
            return []

    return offered


# ----------------------------------------------------------------------------- names and files


@quiet
def scenarios(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Shipped scenarios, and YAML files and folders of the user."""
    yield from _files(incomplete, (".yaml", ".yml"))
    yield from ((name, "comes with cprsim") for name in shipped_scenarios())


@quiet
def shipped(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Scenarios that come with the program."""
    return ((name, "") for name in shipped_scenarios())


@quiet
def curves(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Shipped staleness curves, and files that may hold one."""
    yield from _files(incomplete, (".json", ".csv"))
    yield from ((path.stem, "comes with cprsim") for path in sorted(CURVES.glob("*.json")))


@quiet
def studies(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """What `cprsim reproduce` makes."""
    return ((name, "") for name in STUDIES)


@quiet
def kinds(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """What `cprsim init --kind` takes."""
    return ((name, "") for name in KINDS)


@quiet
def systems(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Strategies and recovery systems."""
    return ((name, "") for name in _strategies())


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Files with one of the suffixes, and folders, as the user began to write them."""
    begun, _, _ = incomplete.rpartition("/")
    prefix = incomplete[: len(incomplete) - len(incomplete.rpartition("/")[2])]
    for path in sorted(Path(begun or ("/" if prefix else ".")).iterdir()):
        if path.name.startswith(".") and not incomplete.endswith("."):
            continue
        if path.is_dir():
            yield f"{prefix}{path.name}/", ""
        elif path.suffix.lower() in suffixes:
            yield f"{prefix}{path.name}", ""


# ------------------------------------------------------------------------------------------ keys


@quiet
def keys(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """Dotted keys of a scenario, as `--set`, `--over` and `--map` take them; a few levels each.

    After ``=`` the words that the key takes, in shells that do not end a word there, as bash does.
    """
    return _dotted(ctx, incomplete)


@quiet
def axes(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """The same, and what `sweep --over` alone takes."""
    yield from OF_ALL.items()
    yield from _dotted(ctx, incomplete)


@quiet
def options_of_fleets(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """The same, and what `fleet --over` alone takes."""
    yield from ((name, f"fleet.{name}") for name in OF_FLEETS)
    yield from _dotted(ctx, incomplete)


def _dotted(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    names = _named_in(_scenario_of(ctx))
    key, is_given, _ = incomplete.partition("=")
    if is_given:
        words = _words_of(_schema(), key, "", names)
        yield from ((f"{key}={word}", "") for word in dict.fromkeys(words))
        return
    depth = incomplete.count(".") + LEVELS
    for key, about in sorted(dict(_keys(_schema(), incomplete, "", depth, names)).items()):
        yield key, about.translate(NO_MARKUP)[:MOST_SHOWN]


def _keys(
    node: dict[str, Any], begun: str, above: str, depth: int, names: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Keys below a node of the schema that fit what is begun, without those that only lead on."""
    for name, below in _children(node, above, names):
        key = f"{above}{name}"
        if not (begun.startswith(f"{key}.") or key.startswith(begun)):
            continue
        deeper = list(_keys(below, begun, f"{key}.", depth - 1, names)) if depth > 1 else []
        yield from deeper
        if not deeper or _is_value(below):
            yield key, below.get("description", "")


def _words_of(node: dict[str, Any], key: str, above: str, names: tuple[str, ...]) -> Iterator[str]:
    """What the key below a node may be set to, where that is one of a few words."""
    first, leads_on, rest = key.partition(".")
    for name, below in _children(node, above, names):
        if name == first and leads_on:
            yield from _words_of(below, rest, f"{above}{name}.", names)
        elif name == first:
            for form in _forms(below):
                yield from ("true", "false") if form.get("type") == "boolean" else ()
                yield from (
                    str(word) for word in [*form.get("enum", ()), form.get("const")] if word
                )


def _children(
    node: dict[str, Any], above: str, names: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What may stand below a node: keys of a section, roles, entries of a list by name."""
    for form in _forms(node):
        yield from form.get("properties", {}).items()
        for below in form.get("patternProperties", {}).values():
            if above == "failures.roles.":
                yield from ((role, below) for role in ROLES)
        if above in ("recovery.", "scopes.") and "items" in form:
            listed = names if above == "recovery." else set(names).difference(_strategies())
            yield from ((name, form["items"]) for name in listed)


def _forms(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The forms that a value may have, references followed."""
    while "$ref" in node:
        node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    yield node
    for union in ("anyOf", "oneOf"):
        for form in node.get(union, ()):
            yield from _forms(form)


def _is_value(node: dict[str, Any]) -> bool:
    """Whether the key may be set as a whole: a number, a word, a quantity."""
    simple = {"string", "integer", "number", "boolean"}
    return any(form.get("type") in simple or "enum" in form for form in _forms(node))


def _scenario_of(ctx: typer.Context) -> str | None:
    """What was typed as the scenario: among `args` where an option behind it has no value yet."""
    typed = ctx.params.get("scenario") or ctx.params.get("job")
    return str(typed) if typed else next(iter(ctx.args), None)


def _named_in(scenario: str | None) -> tuple[str, ...]:
    """Names and strategies of the entries of a scenario's lists, as far as its text shows them."""
    if scenario is None or not (path := file_or_shipped(Path(scenario))).is_file():
        return ()
    with suppress(OSError, UnicodeDecodeError):
        text = re.sub(r"#.*", "", path.read_text("utf-8")[:LIST_LIMIT])
        words = set(re.findall(r"[\w.-]+", text.partition("\nrecovery:")[2]))
        named = re.findall(r"\bname: *([\w.-]+)", text.partition("\nname:")[2])
        return tuple(dict.fromkeys([*named, *(one for one in _strategies() if one in words)]))
    return ()


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((FOLDER / SCHEMA).read_text("utf-8"))
    return schema


def _strategies() -> list[str]:
    strategy = _schema()["$defs"]["RecoverySection"]["properties"]["strategy"]
    return [str(name) for name in strategy["enum"]]
