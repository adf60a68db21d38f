"""From pydantic's errors to lines to act on: place, key, value found, what would be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from cprsim.errors import Place, Problem
from cprsim.foreign import one_line
from cprsim.scenario.failures import KINDS
from cprsim.scenario.quantities import CHECKS, TAG, UNKNOWN_KEY, choices
from cprsim.scenario.yaml_text import KeyPath, Plain, as_written, dotted

MAX_PROBLEMS = 50  # lines; more than that nobody reads

_PREDICATES: dict[str, str] = {
    "int_type": "is not a whole number",
    "int_from_float": "is not a whole number",
    "int_parsing": "is not a whole number",
    "float_type": "is not a number",
    "finite_number": "is not a finite number",
    "string_type": "is not text",
    "model_type": "is not a section with keys of its own ({{key: value}})",
    "dataclass_type": "is not a section with keys of its own ({{key: value}})",
    "dict_type": "is not a section with keys of its own ({{key: value}})",
    "tuple_type": "is not a list ([...])",
    "greater_than": "is out of range: it must be more than {gt}",
    "greater_than_equal": "is out of range: it must be at least {ge}",
    "less_than": "is out of range: it must be less than {lt}",
    "less_than_equal": "is out of range: it must be at most {le}",
    "literal_error": "is not one of {expected}",
    "enum": "is not one of {expected}",
    "string_pattern_mismatch": "has characters that a name cannot have, or too many",
    "string_too_short": "is empty",
    "string_too_long": "is longer than {max_length} characters",
    "too_short": "is empty: it needs at least {min_length}",
    "too_long": "has too many entries: at most {max_length}",
}


def problems_of(
    error: ValidationError,
    root: type[BaseModel],
    data: Plain,
    place: Callable[[KeyPath], Place],
) -> list[Problem]:
    """All that pydantic found, in the order of the file."""
    errors = error.errors(include_url=False)
    return [
        Problem(place(path), dotted(path), message)
        for details in errors
        if not _follows_from_another(details, errors)
        for path, message in _explained(details, root, data)
    ]


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, in the order of the file; what the command line says comes first."""
    found = sorted(
        dict.fromkeys(problems), key=lambda p: (p.place.line or 0, str(p.place.file), p.key)
    )
    if (n_more := len(found) - MAX_PROBLEMS) > 0:
        found[MAX_PROBLEMS:] = [Problem(found[-1].place, "", f"the last of {n_more} more problems")]
    return found


def shown(value: object) -> str:
    """A value found, in backquotes and not too long."""
    return "nothing" if value is None else f"`{one_line(str(value))}`"


def _follows_from_another(details: ErrorDetails, errors: list[ErrorDetails]) -> bool:
    """A list counts as too short when its entries are wrong: then these alone are worth saying."""
    loc = details["loc"]
    return details["type"] == "too_short" and any(
        other["loc"][: len(loc)] == loc for other in errors if other is not details
    )


def _explained(
    details: ErrorDetails, root: type[BaseModel], data: Plain
) -> Iterator[tuple[KeyPath, str]]:
    """(key path, message) of one of pydantic's errors."""
    path, kind, found = written_path(details["loc"], data), details["type"], details["input"]
    context: Mapping[str, Any] = details.get("ctx", {})
    if kind == CHECKS:
        for key, message in context["problems"]:
            below = tuple(as_written(part) for part in key.split(".") if part)
            yield (*path, *below), message
    elif kind == "kind":
        has_kind = isinstance(found, dict) and found.get("kind") is not None
        known = choices(found["kind"] if has_kind else "", KINDS)
        if has_kind:
            yield (*path, "kind"), f"{shown(found['kind'])} is no kind of failures: {known}"
        elif isinstance(found, dict):
            yield (*path, "kind"), f"is missing: {known}"
        else:
            yield path, f"{shown(found)} {_PREDICATES['model_type'].format()}"
    elif kind in UNKNOWN_KEY:
        keys = keys_of(section_at(root, details["loc"][:-1]))
        yield path, f"unknown key; {choices(path[-1], tuple(key.name for key in keys))}"
    elif kind == "missing":
        yield path, "is missing" + _meaning(section_at(root, details["loc"][:-1]), str(path[-1]))
    elif kind == "value_error":
        yield path, f"{shown(found)} {context['error']}"
    elif details["loc"][-1:] == ("[key]",) and kind == "string_pattern_mismatch":
        yield path, "is no name for a role: letters, digits, `_` and `-`, a letter first"
    else:
        predicate = _PREDICATES.get(kind, "is wrong: " + details["msg"].replace("{", "{{"))
        yield path, f"{shown(found)} {predicate.format(**context)}"


def written_path(loc: KeyPath, data: Plain) -> KeyPath:
    """Pydantic's location as a path in the file.

    Without the tags of unions, and without the keys that a short form left out.
    """
    path: list[str | int] = []
    here: Any = data
    for i, part in enumerate(loc):
        is_last = i == len(loc) - 1
        if part == "[key]" or (isinstance(part, str) and part.startswith(TAG)):
            continue
        if isinstance(here, dict) and part in here:
            path.append(part)
            here = here[str(part)]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            path.append(part)
            here = here[part]
        elif isinstance(here, dict) and is_last:
            path.append(part)
    return tuple(path)


@dataclass(frozen=True, slots=True)
class SectionKey:
    """A key of a section: what it is called, what it holds, what it means."""

    name: str
    kind: Any
    meaning: str


def keys_of(section: Any) -> list[SectionKey]:
    """The keys of a section, which is a model or a record; none of what is no section."""
    if is_dataclass(section):
        hints = get_type_hints(section, include_extras=True)
        return [
            SectionKey(
                one.metadata.get("alias", one.name),
                hints[one.name],
                one.metadata.get("description", ""),
            )
            for one in fields(section)
        ]
    if isinstance(section, type) and issubclass(section, BaseModel):
        return [
            SectionKey(field.alias or name, field.annotation, field.description or "")
            for name, field in section.model_fields.items()
        ]
    return []


def _meaning(section: Any, name: str) -> str:
    """What a missing key would say, from the schema."""
    for key in keys_of(section):
        if key.name == name:
            meaning = key.meaning.split(". ")[0].rstrip(".")
            return f" ({meaning[:1].lower()}{meaning[1:]})"
    return ""


def section_at(root: type[BaseModel], loc: KeyPath) -> Any:
    """The section to which a location of pydantic's belongs."""
    kind: Any = root
    for part in loc:
        kind = _below(_bare(kind), part)
    return _bare(kind)


def _below(kind: Any, part: str | int) -> Any:
    """The type at one step of a location, None where it can't be told."""
    if isinstance(part, str) and part.startswith(TAG):
        return next((member for member in get_args(kind) if Tag(part) in _metadata(member)), None)
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    if get_origin(kind) is tuple:
        return get_args(kind)[0]
    return next((key.kind for key in keys_of(kind) if key.name == part), None)


def _metadata(kind: Any) -> tuple[Any, ...]:
    return tuple(getattr(kind, "__metadata__", ()))


def _bare(kind: Any) -> Any:
    """A type without Annotated and without `| None`."""
    while _metadata(kind):
        kind = kind.__origin__
    members = [member for member in get_args(kind) if member is not type(None)]
    is_optional = len(members) == 1 and type(None) in get_args(kind)
    return _bare(members[0]) if is_optional and get_origin(kind) is not dict else kind
