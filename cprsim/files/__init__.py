"""Files: records as JSON and back, atomic writes, and the files shipped with cprsim.

A record is a frozen dataclass; pydantic derives the schema of its file from it. A field that is
stored differently has a type annotated with `Stored` or `Tagged`, or pydantic's options in its
metadata (alias, exclude, exclude_if).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from math import inf, isfinite, isnan, nan
from operator import not_
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cprsim.errors import ResultError, WriteError, one_line
from cprsim.version import PACKAGE

UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # characters that no name of a file in UTF-8 has

UNFINISHED = ".unfinished"
TAG = "is"  # key of a record's class, where only the file tells which it is
NOT_STORED = {"exclude": True}  # metadata of a field that the reader knows from elsewhere
OMITTED = {"exclude_if": not_}  # of a field whose key is not there where it is None or 0

Record = TypeVar("Record")


def stated(description: str, example: Any, **bounds: Any) -> Any:
    """A field of a record that a scenario states, with pydantic's options for it."""
    options = {"description": description, "examples": [example], "strict": True, **bounds}
    return field(metadata=options)


def finite_or_none(value: float) -> float | None:
    """A number where it is finite, else None."""
    return float(value) if isfinite(value) else None


def json_text(plain: Any, indent: int = 2) -> str:
    """A file's text of plain data. Raises ValueError for NaN and infinity, which JSON lacks."""
    return json.dumps(plain, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def digest_of(plain: Any) -> str:
    """SHA-256 of plain data as JSON, independent of the order of its keys."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --------------------------------------------------------------------------- types of fields


@dataclass(frozen=True, slots=True)
class Stored:
    """How to write a value that JSON has no form for, and how to read it back."""

    plain: Callable[[Any], Any]
    read: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        writes = core_schema.plain_serializer_function_ser_schema(self.plain)
        return core_schema.no_info_plain_validator_function(self.read, serialization=writes)


def _or_null(missing: float) -> Stored:
    """A float stored as null for one missing value, and as text for infinities."""

    def plain(value: float) -> float | str | None:
        if value == missing or isnan(value):
            return None
        return value if isfinite(value) else str(value)

    return Stored(plain, lambda plain: missing if plain is None else float(plain))


Number = Annotated[float, _or_null(nan)]  # NaN stands as null
Endless = Annotated[float, _or_null(inf)]  # an interval: infinity, never, stands as null


class Tagged:
    """One of some records; the file has the name of its class."""

    def __init__(self, *kinds: Any) -> None:
        self.kinds = kinds

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.tagged_union_schema(
            {member.__name__: handler.generate_schema(member) for member in self.kinds},
            discriminator=lambda it: it.get(TAG) if isinstance(it, dict) else type(it).__name__,
            serialization=core_schema.wrap_serializer_function_ser_schema(
                lambda record, write: {TAG: type(record).__name__, **write(record)}
            ),
        )


# --------------------------------------------------------------------------- records


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter  # most commands neither read nor write records

    return TypeAdapter(kind)


def encode(record: Any) -> Any:
    """A record as plain data. Raises ValueError for a value that JSON can't represent."""
    kind: Any = type(record)
    return _adapter(kind).dump_python(record, mode="json", by_alias=True, warnings="none")


def decode(kind: type[Record], plain: Any, not_stored: Mapping[str, Any] | None = None) -> Record:
    """The record that `encode` wrote; missing keys get their defaults, unknown keys are ignored.

    `not_stored`: values of the fields that the file lacks.
    Raises ValueError, which names the key; TypeError, where the data are no mapping.
    """
    from pydantic import ValidationError

    schema: Any = kind
    try:
        data = {**plain, **not_stored} if not_stored else plain
        record: Record = _adapter(schema).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(": ".join([".".join(map(str, first["loc"])), first["msg"]])) from error
    return record


# --------------------------------------------------------------------------- whole files


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name this path in an OSError of the block that names no file."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def write_whole(path: Path, text: str, put: Callable[[Path, Path], object] = os.replace) -> None:
    """Write a text into a temporary file that then replaces `path`, flushed to the disk.

    After an error, an OSError, `path` is unchanged and the temporary file is deleted. A pipe or a
    device is written to directly.
    """
    if path.exists() and not path.is_file():
        with naming(path):
            path.write_text(text, "utf-8", newline="\n")
        return
    unfinished = path.with_name(f".{path.name}.{os.urandom(4).hex()}{UNFINISHED}")
    try:
        with naming(path), unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        put(unfinished, path)
    finally:
        with suppress(OSError):
            unfinished.unlink()


@contextmanager
def writes(file: object) -> Iterator[None]:
    """Raise WriteError if the system can't write `file` in the block."""
    if UNWRITABLE.search(str(file)):
        raise WriteError(f"can't write {one_line(str(file))}: no name has such a character")
    try:
        yield
    except OSError as error:
        raise WriteError(f"can't write {file}: {error.strerror or error}") from error


def require_new(path: Path) -> None:
    """Check before the work that a file of that name can be created. Raises ResultError."""
    if path.exists() or path.is_symlink():
        raise _there_already(path)
    if not path.parent.is_dir():
        raise ResultError(f"can't write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ResultError(f"can't write {path}: no permission to write to {path.parent}")


def write_new(path: Path, text: str) -> None:
    """Write a new file and flush it to the disk. Raises ResultError if the file exists."""
    with writes(path):
        try:
            write_whole(path, text, put=_rename_to_new)
        except FileExistsError:
            raise _there_already(path) from None


def _rename_to_new(unfinished: Path, path: Path) -> None:
    """Rename unless `path` exists, by a hard link, which never replaces a file."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        require_new(path)
        unfinished.replace(path)


def _there_already(path: Path) -> ResultError:
    return ResultError(f"{path} exists and was not changed: name another file, or delete it")


# ----------------------------------------------------------------------------- shipped files

SHIPPED = PACKAGE / "scenario" / "shipped"
SHIPPED_CURVES = PACKAGE / "accuracy" / "shipped"
SCHEMA_FILE = "scenario.schema.json"  # which the scenarios name in their first lines, for editors
NAMES_SCHEMA = f"# yaml-language-server: $schema={SCHEMA_FILE}"


def shipped_scenarios() -> dict[str, Path]:
    """The files of the scenarios that come with the program, by name, sorted."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def file_or_shipped(path: Path) -> Path:
    """The scenario file at `path`; if there is no such file, the shipped scenario of that name."""
    if path.is_file():
        return path
    return shipped_scenarios().get(str(path), path)


def put_schema_beside(scenario: Path) -> Path | None:
    """Write the schema that a scenario's first line names; None if the file exists already.

    The scenario names it by a relative path, so that the two files can be moved together.

    Raises ResultError where it can't be written.
    """
    schema = scenario.with_name(SCHEMA_FILE)
    if schema.exists():
        return None
    write_new(schema, (SHIPPED / SCHEMA_FILE).read_text("utf-8"))
    return schema


def about(path: Path) -> str:
    """Summary of a shipped scenario: its first comment, up to the first full stop or colon."""
    lines = path.read_text("utf-8").splitlines()[1:]  # the first names the schema
    comment = takewhile(lambda line: line.startswith("#"), lines)
    text = " ".join(line.removeprefix("#").strip() for line in comment)
    return re.split(r"[.:](?:\s|$)", text, maxsplit=1)[0]
