"""The store of finished points: a file each, that appears at once and says if it is damaged.

    <results>/points/<2 digits>/<digest>.json    {"sha256": of the body, "body": the numbers}
    <results>/points/.sweep.<id>.unfinished/     what a living sweep is writing

Sweeps share it: a point is addressed by what decides its numbers, not by who asked for it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cprsim.errors import ResultError
from cprsim.foreign import UNUSABLE, parse_json
from cprsim.results.publish import remove_leftovers, workshop

FOLDER = "points"

Body = Mapping[str, Any]


@dataclass
class Store:
    """The finished points under one results folder.

    Parameters
    ----------
    root : the results folder
    damaged : files found damaged so far; their points count as not finished
    """

    root: Path
    damaged: list[Path] = field(default_factory=list)
    _desk: Path | None = None

    def path(self, digest: str) -> Path:
        """Where a point is, or will be."""
        return self.root / FOLDER / digest[:2] / f"{digest}.json"

    def read(self, digest: str) -> Body | None:
        """The numbers of a finished point; None where there are none or its file is damaged.

        Raises ResultError where the file can't be read.
        """
        path = self.path(digest)
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        except OSError as error:
            raise ResultError(f"{path} can't be read: {error.strerror or error}") from error
        body = _whole(text)
        if body is None:
            self.damaged.append(path)
        return body

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While the block lasts, points can be written; what killed sweeps left goes away.

        Raises ResultError where the store can't be written to.
        """
        folder = self.root / FOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder)
            with workshop(folder / "sweep") as self._desk:
                yield
        except OSError as error:
            raise ResultError(f"can't write to {folder}: {error.strerror or error}") from error
        finally:
            self._desk = None

    def write(self, digest: str, body: Body) -> None:
        """Keep a finished point: after this it is there, whole, whatever happens.

        Raises OSError where it can't be written; no part of it is left then.
        """
        assert self._desk is not None, "points are written within `writing`"
        said = json.dumps(body, allow_nan=False, ensure_ascii=False)
        draft = self._desk / digest
        draft.write_text(json.dumps({"sha256": _digest(said), "body": said}), "utf-8")
        path = self.path(digest)
        path.parent.mkdir(exist_ok=True)
        os.replace(draft, path)


def _whole(text: str) -> Body | None:
    """The body of a point's file, None where the file is not what was written."""
    try:
        kept = parse_json(text)
        said = kept["body"]
        return dict(parse_json(said)) if _digest(said) == kept["sha256"] else None
    except UNUSABLE:
        return None


def _digest(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()
