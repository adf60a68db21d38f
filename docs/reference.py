"""The reference, made from the code: commands, keys of a scenario, Python (for the site)."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

import cprsim
from cprsim.cli.app import app
from cprsim.present.markdown import raw_table
from cprsim.shipping import FOLDER, SCHEMA

WIDTH = 100  # characters of a help text
MOST_WORDS = 12  # of an enumeration that are listed
UNDERLINED = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)  # a section of a docstring
PAGE = re.compile(r"docs/([\w-]+\.md)")
ENTRY = re.compile(r"^(\w[\w, ]*?) : (.*(?:\n {4,}.*)*)", re.MULTILINE)  # a line of such a section


def pages() -> dict[str, str]:
    """Each page by its place in the site."""
    return {
        "reference/cli.md": commands(),
        "reference/scenario.md": scenario(),
        "reference/python.md": python(),
    }


# --------------------------------------------------------------------------------- commands


def commands() -> str:
    """What ``--help`` prints for each command, under its name."""
    names = get_command(app).commands  # type: ignore[attr-defined]
    parts = ["# Commands", "What `cprsim COMMAND --help` prints.", _help()]
    for name in names:
        parts += [f"## cprsim {name}", _help(name)]
    return "\n\n".join(parts) + "\n"


def _help(*words: str) -> str:
    printed = CliRunner().invoke(
        app, [*words, "--help"], prog_name="cprsim", env={"COLUMNS": str(WIDTH)}
    )
    assert printed.exit_code == 0, printed.output
    lines = [line.rstrip() for line in printed.output.strip().splitlines()]
    return "\n".join(["```text", *lines, "```"])


# --------------------------------------------------------------------------------- scenario


def scenario() -> str:
    """A table of keys for each section of the JSON Schema."""
    schema = json.loads((FOLDER / SCHEMA).read_text("utf-8"))
    about = (
        "Every key with its form, default and meaning, from the schema that `cprsim schema` "
        "prints. Quantities are texts with a unit, such as `28 h`. [Start](../start.md) has a "
        "scenario, [Concepts](../concepts.md) the ideas."
    )
    parts = ["# Keys of a scenario", about, _keys(schema)]
    for name, section in sorted(schema["$defs"].items()):
        words = section.get("description", "")
        parts += [f"## {name}", _cell(words), _keys(section)]
    return "\n\n".join(parts) + "\n"


def _keys(section: dict[str, Any]) -> str:
    needed = section.get("required", [])
    rows = [
        (f"`{key}`", _form(of), _default(of, key in needed), _cell(of.get("description", "")))
        for key, of in section.get("properties", {}).items()
    ]
    return raw_table(("key", "form", "default", "meaning"), rows) if rows else ""


def _form(node: dict[str, Any]) -> str:
    """What a value may be: linked sections, words, types."""
    return " or ".join(dict.fromkeys(_forms(node))) or "anything"


def _forms(node: dict[str, Any]) -> Iterator[str]:
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    elif "const" in node:
        yield f"`{node['const']}`"
    elif "enum" in node:
        words = [f"`{one}`" for one in node["enum"]]
        more = f" and {len(words) - MOST_WORDS} more" if len(words) > MOST_WORDS else ""
        yield ", ".join(words[:MOST_WORDS]) + more
    elif "items" in node:
        yield f"list of {_form(node['items'])}"
    else:
        types = node.get("type", [])
        for one in [types] if isinstance(types, str) else types:
            if one != "null":
                yield {"object": "section", "string": "text"}.get(one, one)
    for union in ("anyOf", "oneOf"):
        for one in node.get(union, ()):
            yield from _forms(one)


def _default(node: dict[str, Any], needed: bool) -> str:
    if needed:
        return "needed"
    given = node.get("default")
    return "–" if given in (None, "", [], {}) else f"`{json.dumps(given, ensure_ascii=False)}`"


def _cell(text: str) -> str:
    """Words of the code as one paragraph of Markdown: what stands in backticks is code."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(one if one.startswith("`") else _plain(one) for one in pieces)


def _plain(text: str) -> str:
    return re.sub(r"([\\*_\[\]<>|])", r"\\\1", text)


# ----------------------------------------------------------------------------------- Python


def python() -> str:
    """Signature and docstring of every public name: functions first, then what they return."""
    public = [(name, getattr(cprsim, name)) for name in cprsim.__all__]
    functions = [one for one in public if inspect.isfunction(one[1])]
    classes = [one for one in public if inspect.isclass(one[1])]
    parts = ["# Python", "What `import cprsim` offers. [Examples](../python.md) has one of each."]
    for name, one in functions + classes:
        parts += [f"## {name}", _signature(name, one), _docstring(one)]
        parts += _members(one) if inspect.isclass(one) else []
    return "\n\n".join(parts) + "\n"


def _members(of: type) -> Iterator[str]:
    """Public properties and methods, inherited ones too."""
    for name, member in inspect.getmembers(of):
        found = getattr(member, "fget", None) or getattr(member, "func", None) or member
        if name.startswith("_") or not inspect.isfunction(found) or not _is_ours(found):
            continue
        is_method = inspect.isfunction(member)
        yield f"### {of.__name__}.{name}"
        yield _signature(name, found) if is_method else f"*{_returns(found)}*"
        yield _docstring(found)


def _is_ours(function: Any) -> bool:
    return str(function.__module__).startswith("cprsim.")


def _returns(function: Any) -> str:
    return _plain(str(inspect.signature(function).return_annotation))


def _signature(name: str, one: Any) -> str:
    if inspect.isclass(one):
        bases = [base.__name__ for base in one.__bases__ if base is not object]
        return f"```python\nclass {name}({', '.join(bases)})\n```"
    given = list(_parameters(one))
    inside = ",\n    ".join(given)
    listed = f"(\n    {inside},\n)" if len(inside) > WIDTH - 20 else f"({', '.join(given)})"
    return f"```python\n{name}{listed} -> {inspect.signature(one).return_annotation}\n```"


def _parameters(function: Any) -> Iterator[str]:
    """Parameters as they are written; a star before those that are given by name alone."""
    starred = False
    for one in inspect.signature(function).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred |= one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        if one.name != "self":
            stars = "*" if one.kind is one.VAR_POSITIONAL else ""
            default = "" if one.default is one.empty else f" = {one.default!r}"
            yield f"{stars}{one.name}: {one.annotation}{default}"


def _docstring(one: Any) -> str:
    """A numpydoc docstring as Markdown: sections in bold, their entries as a list."""
    text = UNDERLINED.sub(r"**\1**\n", inspect.getdoc(one) or "").replace("``", "`")
    text = PAGE.sub(r"[\1](../\1)", text)
    return ENTRY.sub(lambda entry: f"- `{entry[1]}`: {' '.join(entry[2].split())}", text)
