"""The options of recovery systems: a section made from each system's own record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields
from functools import cache
from typing import Annotated, Any

from pydantic import Field as SchemaField
from pydantic import ValidationError, create_model

from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.policy import Growth, field_type, record_of
from cprsim.scenario.quantities import Bandwidth, Model, written_key
from cprsim.units import SIZE, TIME, Quantity

RECORDS = "records"  # kind of an option that is records of a policy
_TIME = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 s")]
_TIMES = Annotated[tuple[_TIME, ...], SchemaField(min_length=1, max_length=4096)]
_TIME_OR_STEPS = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 s", in_steps=True)]
_TYPES: dict[str, Any] = {
    "time": _TIME_OR_STEPS,
    "size": Annotated[float, Quantity(SIZE, "0 B", "1000 PB", "50 GB")],
    "bandwidth": Bandwidth,
    "count": Annotated[int, SchemaField(strict=True, ge=0, le=10**9)],
    "share": Annotated[float, SchemaField(strict=True, ge=0, le=1)],
    "number": Annotated[float, SchemaField(strict=True)],
    "table": Annotated[tuple[float, ...], SchemaField(min_length=1, max_length=4096)],
    "times": _TIMES,
    "growth": Growth,
    "word": Annotated[str, SchemaField(strict=True, max_length=60)],
}


@cache
def options_model(system: str) -> type[Model]:
    """The section of a system's options."""
    options = SYSTEMS[system].options
    entries: dict[str, Any] = {
        f"{one.name}_": (  # a plain name may be one of the model's own
            _type(options, one) | None,
            SchemaField(None, alias=one.name, description=one.metadata["words"]),
        )
        for one in fields(options)
    }
    return create_model(options.__name__, __base__=Model, **entries)


def _type(options: type[Any], one: Field[Any]) -> Any:
    kind = one.metadata["kind"]
    return field_type(options, one.name) if kind == RECORDS else _TYPES[kind]


def options_of(system: str, written: dict[str, Any] | None) -> Any:
    """A system's options from what the scenario says; what it leaves out has its default."""
    section = options_model(system).model_validate(written or {})
    return record_of(SYSTEMS[system].options, section)


def option_problems(system: str, written: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """(dotted key below the options, message) of what is wrong with them."""
    try:
        options_model(system).model_validate(written or {})
    except ValidationError as error:
        for one in error.errors(include_url=False):
            yield written_key(one["loc"], written), one["msg"]


def options_json_schema() -> dict[str, Any]:
    """For editors: the options of all systems, each with the systems that have it."""
    found: dict[str, dict[str, Any]] = {}
    meant: dict[str, dict[str, list[str]]] = {}  # by option and by what it means: the systems
    for name in (name for name in SYSTEMS if name not in STRATEGIES):
        schema = _inlined(options_model(name).model_json_schema())
        for key, value in schema["properties"].items():
            meant.setdefault(key, {}).setdefault(value.get("description", ""), []).append(name)
            found.setdefault(
                key,
                {part: text for part, text in value.items() if part not in ("title", "default")},
            )
    for key, schema in found.items():
        said = (f"{', '.join(names)}: {words}" for words, names in meant[key].items())
        schema["description"] = " ".join(said)
    return {"type": "object", "additionalProperties": False, "properties": found}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema with each definition where it is referred to; none refers to itself."""
    definitions: dict[str, Any] = schema.pop("$defs", {})

    def inlined(part: Any) -> Any:
        if isinstance(part, list):
            return [inlined(one) for one in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return inlined(definitions[part["$ref"].rpartition("/")[2]])
        return {key: inlined(value) for key, value in part.items()}

    found: dict[str, Any] = inlined(schema)
    return found
