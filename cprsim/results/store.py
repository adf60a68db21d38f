"""The store of finished points: a file each, that appears at once and says if it is damaged.

    <results>/points/<2 digits>/<digest>.json    {"sha256": of the body, "body": the numbers}
    <results>/points/.sweep.<id>.unfinished/     what a living sweep is writing

Sweeps and fleets share it: a point is addressed by what decides its numbers, not by who
asked for it. A file is not flushed to the disk: what a power cut damages is computed anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cprsim.errors import UNUSABLE, ResultError, WorkerError
from cprsim.files import digest_of, writes
from cprsim.results.folder import remove_leftovers, workshop
from cprsim.results.identity import source_digest
from cprsim.results.words import count
from cprsim.workers import Workers, run_each

FOLDER = "points"

Body = Mapping[str, Any]


class Addressed(Protocol):
    """A point, addressed by what decides its numbers."""

    @property
    def digest(self) -> str: ...


Some = TypeVar("Some", bound=Addressed)


@dataclass
class PointStore:
    """The finished points under one results folder."""

    root: Path  # the results folder
    # files found damaged so far; their points count as not finished
    damaged: list[Path] = field(default_factory=list)
    _desk: Path | None = None

    def path(self, digest: str) -> Path:
        """Where a point is, or will be."""
        return self.root / FOLDER / digest[:2] / f"{digest}.json"

    def read(self, digest: str) -> Body | None:
        """The numbers of a finished point; None where there are none or its file is damaged."""
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

    def finished(self, points: Sequence[Addressed]) -> str:
        """How many points are finished, in a clause."""
        digests = {point.digest for point in points}
        n = sum(self.path(digest).is_file() for digest in digests)
        where = self.root / FOLDER
        return f"{n:,} of {count(len(digests), 'point')} are finished and kept in {where}"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While the block lasts, points can be written; what killed sweeps left goes away."""
        folder = self.root / FOLDER
        try:
            with writes(f"to {folder}"):
                folder.mkdir(parents=True, exist_ok=True)
                remove_leftovers(folder)
                with workshop(folder / "sweep") as self._desk:
                    yield
        finally:
            self._desk = None

    def write(self, digest: str, body: Body) -> None:
        """Keep a finished point: after this it is there, whole, whatever happens."""
        assert self._desk is not None, "points are written within `writing`"
        draft = self._desk / digest
        kept = {"sha256": digest_of(body), "body": body}
        draft.write_text(json.dumps(kept, allow_nan=False), "utf-8")
        path = self.path(digest)
        path.parent.mkdir(exist_ok=True)
        os.replace(draft, path)


def _whole(text: str) -> Body | None:
    """The body of a point's file, None where the file is not what was written."""
    try:
        kept = json.loads(text)
        return dict(kept["body"]) if digest_of(kept["body"]) == kept["sha256"] else None
    except UNUSABLE:
        return None


# --------------------------------------------------------------------------- computing points


@dataclass(frozen=True, slots=True)
class PointsTask:
    """Some points, as a worker gets them."""

    name: str  # as errors call it
    digests: tuple[str, ...]  # of the points
    compute: Callable[[Any], Sequence[Body]]  # makes their numbers, of `work`
    work: Any
    # digest of the code that asks: a worker with other code would give other numbers
    source: str = field(default_factory=source_digest)


def finish_points(
    points: Sequence[Some],
    store: PointStore,
    workers: Workers,
    tasks_of: Callable[[Sequence[Some]], Sequence[PointsTask]],
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Body], int]:
    """The numbers of all points, in their order: from the store, or computed and put there."""
    bodies: dict[str, Body | None] = {p.digest: store.read(p.digest) for p in points}
    missing = list({p.digest: p for p in points if bodies[p.digest] is None}.values())
    n_done = 0
    try:
        with store.writing() if missing else nullcontext():
            for digest, body in _computed(tasks_of(missing), workers):
                store.write(digest, body)
                bodies[digest] = body
                n_done += 1
                if on_progress is not None:
                    on_progress(n_done, len(missing))
    except (ResultError, WorkerError) as error:
        n_kept = len(bodies) - len(missing) + n_done
        raise type(error)(
            f"{error}; {n_kept} of {count(len(bodies), 'point')} are finished and kept: the same "
            "command goes on from there"
        ) from error
    return [found for point in points if (found := bodies[point.digest]) is not None], n_done


def _computed(tasks: Sequence[PointsTask], workers: Workers) -> Iterator[tuple[str, Body]]:
    """Digest and numbers of each point as its task comes back."""
    with closing(run_each(run_task, tasks, workers, lambda n: tasks[n].name)) as results:
        for number, bodies in results:
            yield from zip(tasks[number].digests, bodies, strict=True)


def run_task(task: PointsTask) -> Sequence[Body]:
    """The numbers of some points, in the worker."""
    if source_digest() != task.source:
        raise ResultError("a worker has another version of cprsim: install the same everywhere")
    return task.compute(task.work)
