"""What the fields of the schema are made of: quantities with units, bounded numbers, sections.

A section explains what is wrong with it: the value found, then pydantic's message or a predicate
of ours ("has no unit: write ...").
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    ModelWrapValidatorHandler,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from cprsim.foreign import one_line
from cprsim.records import MAX_NODES
from cprsim.scenario.yaml_text import as_written
from cprsim.units import BANDWIDTH, SIZE, TIME, Quantity

EXPLAINED = "explained"  # type of errors whose message is complete
NO_KIND = "no_kind"  # type of errors of a section whose key `kind` chooses what it is
TAG = "as:"  # begins the names of a union's members in pydantic's locations
_UNIT = re.compile("_(bytes_per_h|per_h|bytes|fraction|h)$")


def _key(field: str) -> str:
    """The key of a field: its name without the unit."""
    return _UNIT.sub("", field)


class Model(BaseModel):
    """A section of the scenario: unknown keys are errors, values never change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, alias_generator=_key
    )

    @property
    def given(self) -> dict[str, Any]:
        """What is there, by key."""
        fields = type(self).model_fields.items()
        return {
            field.alias or name: value
            for name, field in fields
            if (value := getattr(self, name)) is not None
        }

    def problems(self) -> Iterator[tuple[str, str]]:
        """(dotted key below this section, message) of whatever its fields say together."""
        return iter(())

    @model_validator(mode="wrap")
    @classmethod
    def _explained(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            section = handler(data)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            told = [one for one in errors if not _follows_from_another(one, errors)]
            raise _error(cls.__name__, [_told(cls, one) for one in told]) from None
        problems = [
            (tuple(as_written(part) for part in key.split(".") if part), message, data)
            for key, message in section.problems()
        ]
        if problems:
            raise _error(cls.__name__, problems)
        return section


def _error(title: str, found: Iterable[tuple[tuple[int | str, ...], str, Any]]) -> ValidationError:
    lines = [
        InitErrorDetails(type=PydanticCustomError(EXPLAINED, message), loc=loc, input=value)
        for loc, message, value in found
    ]
    return ValidationError.from_exception_data(title, lines)


def _follows_from_another(one: ErrorDetails, errors: list[ErrorDetails]) -> bool:
    """A list counts as too short when its entries are wrong: then these alone are worth saying.

    A default that depends on other keys has no value where one of them is wrong.
    """
    loc = one["loc"]
    if one["type"] == "default_factory_not_called":
        return True
    return one["type"] == "too_short" and any(
        other["loc"][: len(loc)] == loc for other in errors if other is not one
    )


def _told(section: type[Model], error: ErrorDetails) -> tuple[tuple[int | str, ...], str, Any]:
    """Where it is, what is wrong, and the value found."""
    loc, found = error["loc"], error["input"]
    if error["type"] == NO_KIND and isinstance(found, dict):
        loc, found = (*loc, "kind"), found.get("kind")
    return loc, _message(section, error, found), found


def _message(section: type[Model], error: ErrorDetails, found: Any) -> str:
    kind, message, loc = error["type"], error["msg"], error["loc"]
    if kind == EXPLAINED:
        return message
    fields = {field.alias or name: field for name, field in section.model_fields.items()}
    if kind == "extra_forbidden":
        return f"unknown key; {choices(loc[-1], tuple(fields))}"
    if kind == "unexpected_keyword_argument":  # of a record
        return "unknown key"
    if kind in ("missing", "missing_argument"):
        field = fields.get(str(loc[0])) if len(loc) == 1 else None
        meaning = ((field and field.description) or "").split(". ")[0].rstrip(".")
        return "is missing" + (f" ({meaning[:1].lower()}{meaning[1:]})" if meaning else "")
    if kind in ("model_type", "dataclass_type", "dict_type"):
        message = "is not a section with keys of its own ({key: value})"
    elif kind == "value_error":
        message = str(error["ctx"]["error"])
    elif kind != NO_KIND:
        message = f"{message[:1].lower()}{message[1:]}".removeprefix("input ")
        message = message.replace("tuple", "list")
    return f"{shown(found)} {message}"


def shown(value: object) -> str:
    """A value found, in backquotes and not too long."""
    return "nothing" if value is None else f"`{one_line(str(value))}`"


def choices(found: object, known: tuple[str, ...]) -> str:
    """Tell what there is to choose from, the nearest first."""
    near = get_close_matches(str(found), known, n=1)
    return (f"did you mean `{near[0]}`? " if near else "") + f"Known: {', '.join(known)}"


def within(least: float, most: float) -> Any:
    """The bounds of a plain number, which is no text."""
    return Field(strict=True, ge=least, le=most)


Text = Annotated[str, Field(strict=True, min_length=1, max_length=4000)]
Time = Annotated[float, Quantity(TIME, "0 s", "10000 h")]
PositiveTime = Annotated[float, Quantity(TIME, "1 us", "10000 h")]
Age = Annotated[float, Quantity(TIME, "0 h", "100000000 h", "12 h")]
Mtbf = Annotated[float, Quantity(TIME, "1 s", "100000000 h", "28 h")]
UsefulTime = Annotated[float, Quantity(TIME, "1 s", "100000 h", "50 h")]
ShardSize = Annotated[float, Quantity(SIZE, "1 B", "1000 PB", "50 GB")]
Bandwidth = Annotated[float, Quantity(BANDWIDTH, "1 kbit/s", "1 EB/s", "25 Gbit/s")]
NodeCount = Annotated[int, within(0, MAX_NODES)]
PositiveCount = Annotated[int, within(1, MAX_NODES)]
Share = Annotated[float, within(0, 1)]
PositiveShare = Annotated[float, Field(strict=True, gt=0, le=1)]
Seed = Annotated[int, within(0, 2**63 - 1)]


# ---------------------------------------------------------------------- one of two


def _section_or_text(value: Any) -> str:
    return f"{TAG}section" if isinstance(value, dict | BaseModel) else f"{TAG}text"


def _list_or_text(value: Any) -> str:
    return f"{TAG}list" if isinstance(value, list | tuple) else f"{TAG}text"


AS_SECTION, AS_LIST, AS_TEXT = Tag(f"{TAG}section"), Tag(f"{TAG}list"), Tag(f"{TAG}text")
SECTION_OR_TEXT, LIST_OR_TEXT = Discriminator(_section_or_text), Discriminator(_list_or_text)


def parameters(
    section: Model, kind: str, needed: Collection[str], others: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Keys that a kind of section needs are there, and none of the others."""
    given = section.given
    for key in needed:
        if key not in given:
            yield key, f"is missing: {kind} needs it"
    for key in others:
        if key in given and key not in needed:
            which = f", which takes {' and '.join(needed)}" if needed else ""
            yield key, f"is no parameter of {kind}{which}: leave it out"
