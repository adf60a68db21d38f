"""What all results folders have in common: how they are made, found again, written and read.

    <root>/<name>-<digest>/   scenario.yaml, what the kind of result says, figures, manifest.json

The kind of result writes its own files; a folder without its manifest is not finished.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cprsim.errors import UNUSABLE, InputError, ResultError, one_line, printable
from cprsim.files import decode, encode, json_text
from cprsim.results.identity import Identity
from cprsim.results.manifest import damage, write_manifest
from cprsim.results.publish import publishing, require_writable, sole
from cprsim.scenario import read_yaml

SCENARIO = "scenario.yaml"
ANEW = "it is made anew"  # what is done about a damaged folder
FROM_POINTS = f"{ANEW} from its points"

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """The results folder that is to be made."""

    root: Path  # folder of the results folders; made where it is missing
    identity: Identity  # what decides the result, and with it the folder's name
    started: datetime  # when the work began
    # what the manifest says besides: command, seed, replications, failures_digest, ...
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where it stands once it is finished."""
        return self.root / self.identity.folder_name

    def with_about(self, **about: Any) -> ResultTarget:
        """The same, of which the manifest says more."""
        return replace(self, about={**self.about, **about})


def finished_or_make(
    folder: Path,
    read: Callable[[Path], Made],
    make: Callable[[], Made],
    *,
    warn: Callable[[str], object] = lambda message: None,
    instead: str = ANEW,
    alone: bool = False,
) -> tuple[Made, bool]:
    """What a finished folder holds; where there is none, or it is damaged, it is made."""
    if folder.exists():
        wrong = damage(folder)
        if wrong is None:
            return read(folder), True
        warn(f"{wrong}; {instead}")
    require_writable(folder.parent)
    with sole(folder) if alone else nullcontext():
        return make(), False


@contextmanager
def new_folder(target: ResultTarget) -> Iterator[Path]:
    """A folder to write into, in place with scenario and manifest when the block has ended."""
    with publishing(target.folder) as folder:
        (folder / SCENARIO).write_text(target.identity.scenario_yaml, "utf-8")
        yield folder
        write_manifest(folder, target.identity, target.about, target.started)


# --------------------------------------------------------------------------- files


def write_record(path: Path, record: Any, indent: int = 2) -> None:
    """Write a record as JSON."""
    path.write_text(json_text(encode(record), indent), "utf-8")


def read_record(kind: type[Made], path: Path, called: str, /, **given: Any) -> Made:
    """The record of a results folder that `write_record` wrote."""
    with readable(path.parent, called):
        return decode(kind, json.loads(path.read_bytes()), given)


@contextmanager
def readable(folder: Path, called: str) -> Iterator[None]:
    """Whatever goes wrong within the block is a ResultError: the folder can't be read."""
    try:
        yield
    except (OSError, pa.ArrowException, *UNUSABLE) as error:
        reason = one_line(str(error), 200)
        raise ResultError(f"{folder} can't be read as {called}: {reason}") from error


def stored_scenario(folder: Path) -> Any:
    """The scenario of a results folder as plain data; empty where it has none."""
    path = folder / SCENARIO
    if not path.is_file():
        return {}
    try:
        return read_yaml(path.read_text("utf-8"), path)[0]
    except (OSError, UnicodeDecodeError, InputError) as error:
        raise ResultError(f"{path} can't be read: {error}") from error


def read_table(path: Path) -> pd.DataFrame:
    """A table that `write_parquet` wrote."""
    frame: pd.DataFrame = pq.read_table(path).to_pandas()
    return frame


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Without pandas' own metadata: the bytes depend on the columns and the library alone."""
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table, path, compression="zstd")


_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf)")
_FORMULA = tuple("=+-@\t\n＝＋－＠")  # begin what a spreadsheet may run, the wide signs too


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """As text that no spreadsheet takes for formulas."""
    words = frame.select_dtypes(exclude=["number", "bool"])
    safe = frame.assign(**{str(name): words[name].map(spreadsheet_cell) for name in words})
    safe.columns = [spreadsheet_cell(name) for name in safe.columns]
    safe.to_csv(path, index=False, lineterminator="\n")


def spreadsheet_cell(cell: Any) -> Any:
    """A cell for a CSV: text that a spreadsheet would take for a formula gets a ' before it."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
