"""The records of `recovery.policy` as sections of a scenario: their fields are the schema.

A field `every_h` is the key `every`, a time; an enumeration its values; a duration a time, a
distribution or ``{link: pcie}``. A placement is written ``outside``, ``own``, ``{ring: 2}`` or
``{groups: {size: 8, tolerates: 2}}``, a stage without a cost as its kind alone.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BeforeValidator, Discriminator, Tag, create_model
from pydantic import Field as SchemaField

from cprsim.records import Duration, OverLink
from cprsim.recovery.pieces import YOUNG_H
from cprsim.recovery.policy import (
    GROWTH_H,
    OWN,
    Capture,
    Elastic,
    Groups,
    Outside,
    Placement,
    Ring,
    Stage,
    Tier,
)
from cprsim.scenario.costs import link_or_duration
from cprsim.scenario.distributions import DurationSpec, FixedTime, duration_of
from cprsim.scenario.quantities import Model
from cprsim.units import TIME, Quantity

YOUNG = "young"
TIME_H = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 min")]
EVERY_H = Annotated[float, Quantity(TIME, "0 s", "100000 h", "10 min", in_steps=True)]
MOST = 4096  # entries of a list
NAME = Annotated[str, SchemaField(strict=True, max_length=60)]
BY_DEFAULT = {  # where a record has no default
    (Tier, "role"): "",
    (Tier, "placement"): Outside(),
    (Elastic, "role"): "",
}


def _written_as(value: Any) -> str:
    return "as:rule" if value in (YOUNG, *GROWTH_H) else "as:time"


def _hours(value: float | str) -> float:
    """A time, or what stands for a rule."""
    return value if isinstance(value, float) else {YOUNG: YOUNG_H, **GROWTH_H}[value]


Cost = Annotated[
    Annotated[FixedTime, Tag("as:time")]
    | Annotated[DurationSpec, Tag("as:distribution")]
    | Annotated[OverLink, Tag("as:link")],
    Discriminator(link_or_duration),
    AfterValidator(lambda cost: cost if isinstance(cost, OverLink) else duration_of(cost)),
]
Every = Annotated[
    Annotated[EVERY_H, Tag("as:time")] | Annotated[Literal["young"], Tag("as:rule")],
    Discriminator(_written_as),
    AfterValidator(_hours),
]
Growth = Annotated[
    Annotated[TIME_H, Tag("as:time")] | Annotated[Literal["at once", "next loss"], Tag("as:rule")],
    Discriminator(_written_as),
    AfterValidator(_hours),
]


@cache
def section_of(record: type[Any]) -> Any:
    """The section in which a record is written, as a type for pydantic that makes the record."""
    entries: dict[str, Any] = {
        f"{one.name}_": (
            field_type(record, one.name),
            SchemaField(_default(record, one), alias=one.name.removesuffix("_h")),
        )
        for one in fields(record)
    }
    model = create_model(record.__name__, __base__=Model, __doc__=record.__doc__, **entries)
    made = AfterValidator(partial(record_of, record))
    if record is Stage:
        alone = BeforeValidator(_kind_alone, json_schema_input_type=model | str)
        return Annotated[model, made, alone]
    return Annotated[model, made]


def _kind_alone(stage: Any) -> Any:
    return {"kind": stage} if isinstance(stage, str) else stage


def _default(record: type[Any], one: Field[Any]) -> Any:
    """None stands for the record's own default."""
    needed = one.default is MISSING and (record, one.name) not in BY_DEFAULT
    return ... if needed else None


def field_type(record: type[Any], name: str) -> Any:
    """What a field of a record is written as, as a type for pydantic."""
    kinds = _members(get_type_hints(record)[name])
    if record is Capture and name == "every_h":
        kind: Any = Every
    elif name == "grows_h":
        kind = Growth
    elif Duration in kinds:
        kind = Cost
    elif set(_members(Placement)) <= set(kinds):
        kind = _placement_section()
    else:
        kind = _plain_type(name, kinds[0])
    return kind | None


def _plain_type(name: str, kind: Any) -> Any:
    if get_origin(kind) is tuple:
        entry: Any = _plain_type(name, get_args(kind)[0])
        return Annotated[tuple[entry, ...], SchemaField(max_length=MOST)]
    if is_dataclass(kind):
        return section_of(kind)  # type: ignore[arg-type]
    if issubclass(kind, Enum):
        return Annotated[Literal[tuple(member.value for member in kind)], AfterValidator(kind)]
    if kind is float:
        return TIME_H if name.endswith("_h") else Annotated[float, SchemaField(strict=True)]
    return NAME if kind is str else Annotated[kind, SchemaField(strict=True)]


def _placement_written_as(value: Any) -> str:
    if isinstance(value, Ring) or (isinstance(value, dict) and "ring" in value):
        return "as:ring"
    return "as:groups" if isinstance(value, dict | Model) else "as:word"


@cache
def _placement_section() -> Any:
    """``outside``, ``own``, ``{ring: 2}`` or ``{groups: {...}}``, whose keys are its record's."""
    groups: Any = create_model(
        "GroupsSection", __base__=Model, groups=(section_of(Groups), SchemaField())
    )
    words = {"outside": Outside(), "own": OWN}
    return Annotated[
        Annotated[Literal["outside", "own"], AfterValidator(words.get), Tag("as:word")]
        | Annotated[Ring, Tag("as:ring")]
        | Annotated[groups, AfterValidator(lambda made: made.groups), Tag("as:groups")],
        Discriminator(_placement_written_as),
    ]


def _members(hint: Any) -> tuple[Any, ...]:
    """The types of a union, None left out; the type alone where it is none."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(one for one in get_args(hint) if one is not NoneType)
    return (hint,)


def record_of(record: type[Any], section: Any) -> Any:
    """The record that a section writes, what is absent by the record's own defaults."""
    given = {one.name: getattr(section, f"{one.name}_") for one in fields(record)}
    absent = {name: value for (of, name), value in BY_DEFAULT.items() if of is record}
    return record(**absent | {name: value for name, value in given.items() if value is not None})
