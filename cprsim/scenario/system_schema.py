"""The options of recovery systems: a section made from each system's own record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Annotated, Any

from pydantic import Field, ValidationError, create_model
from pydantic.json_schema import WithJsonSchema

from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.quantities import PREDICATE, Model, Quantity
from cprsim.units import BANDWIDTH, SIZE, TIME

_TIME = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 s")]
_NUMBERS_OR_FILE = {  # a file is read, and the numbers put in its place: `option_tables`
    "anyOf": [
        {"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 4096},
        {"type": "string", "pattern": r"\.csv$"},
        {
            "type": "object",
            "properties": {"file": {"type": "string"}, "column": {"type": "string"}},
            "required": ["file"],
            "additionalProperties": False,
        },
    ]
}
_TYPES: dict[str, Any] = {
    "time": _TIME,
    "size": Annotated[float, Quantity(SIZE, "0 B", "1000 PB", "50 GB")],
    "bandwidth": Annotated[float, Quantity(BANDWIDTH, "1 kbit/s", "1 EB/s", "25 Gbit/s")],
    "count": Annotated[int, Field(strict=True, ge=0, le=10**9)],
    "share": Annotated[float, Field(strict=True, ge=0, le=1)],
    "number": Annotated[float, Field(strict=True)],
    "table": Annotated[
        tuple[float, ...], Field(min_length=1, max_length=4096), WithJsonSchema(_NUMBERS_OR_FILE)
    ],
    "times": Annotated[tuple[_TIME, ...], Field(min_length=1, max_length=4096)],
    "word": Annotated[str, Field(strict=True, max_length=60)],
}


@cache
def options_model(system: str) -> type[Model]:
    """The section of a system's options."""
    options = SYSTEMS[system].options
    entries: dict[str, Any] = {
        f"{one.name}_": (  # a plain name may be one of the model's own
            _TYPES[one.metadata["kind"]] | None,
            Field(None, alias=one.name, description=one.metadata["words"]),
        )
        for one in fields(options)
    }
    return create_model(options.__name__, __base__=Model, **entries)


def options_of(system: str, written: dict[str, Any] | None) -> Any:
    """A system's options from what the scenario says; what it leaves out has its default."""
    section = options_model(system).model_validate(written or {})
    given = {
        name[:-1]: value
        for name in type(section).model_fields
        if (value := getattr(section, name)) is not None
    }
    return SYSTEMS[system].options(**given)


def option_problems(system: str, written: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """(dotted key below the options, message) of what is wrong with them."""
    known = tuple(name[:-1] for name in options_model(system).model_fields)
    try:
        options_model(system).model_validate(written or {})
    except ValidationError as error:
        for details in error.errors(include_url=False):
            key = ".".join(str(part) for part in details["loc"])
            if details["type"] == "extra_forbidden":
                yield key, f"system `{system}` has no such option; it has: {', '.join(known)}"
            elif details["type"] == PREDICATE:
                yield key, f"`{details['input']}` {details['ctx']['message']}"
            else:
                message = details["msg"]
                yield key, f"`{details['input']}` is wrong: {message[:1].lower()}{message[1:]}"


def options_json_schema() -> dict[str, Any]:
    """For editors: the options of all systems, each with the systems that have it."""
    found: dict[str, dict[str, Any]] = {}
    meant: dict[str, dict[str, list[str]]] = {}  # by option and by what it means: the systems
    for name, system in SYSTEMS.items():
        schema = options_model(name).model_json_schema()
        for key, value in schema["properties"].items():
            if not system.alias_of:
                meant.setdefault(key, {}).setdefault(value.get("description", ""), []).append(name)
            found.setdefault(
                key,
                {part: text for part, text in value.items() if part not in ("title", "default")},
            )
    for key, schema in found.items():
        said = (f"{', '.join(names)}: {words}" for words, names in meant[key].items())
        schema["description"] = " ".join(said)
    return {"type": "object", "additionalProperties": False, "properties": found}
