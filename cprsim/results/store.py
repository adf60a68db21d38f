"""Finished work that outlives its process: a store of points, and a journal.

    <results>/points/<2 digits>/<digest>.json    {"sha256": of the body, "body": the numbers}
    <results>/points/.sweep.<id>.unfinished/     temporary files of a running sweep

Sweeps and fleets share the store: the address of a point is the digest of its inputs. The file of a
point is written atomically and not flushed to the disk: one that a power cut damages is computed
again. A journal has a line of JSON per record, which is flushed before it is reported as finished.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cprsim.errors import UNUSABLE, ResultError, WorkerError
from cprsim.files import digest_of, writes
from cprsim.results.folder import remove_leftovers, scratch_dir
from cprsim.results.identity import source_digest
from cprsim.results.words import count
from cprsim.workers import Workers, run_each

Body = Mapping[str, Any]
Progress = Callable[[int, int], None]


class Task(NamedTuple):
    """Points for one worker: their name in errors, their digests, and the worker's argument."""

    name: str
    digests: Sequence[str]
    work: Any

    @property
    def digest(self) -> str:
        """Of a task that is itself a point."""
        return self.digests[0]


@dataclass
class PointStore:
    """The finished points under one results folder."""

    root: Path  # the results folder
    # files found damaged so far; their points count as not finished
    damaged: list[Path] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.root / "points"

    def path(self, digest: str) -> Path:
        return self.folder / digest[:2] / f"{digest}.json"

    def get(self, digest: str) -> Body | None:
        """The numbers of a finished point; None where there are none or its file is damaged."""
        path = self.path(digest)
        try:
            stored = json.loads(path.read_bytes())
            if digest_of(stored["body"]) == stored["sha256"]:
                return dict(stored["body"])
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ResultError(f"{path} can't be read: {error.strerror or error}") from error
        except UNUSABLE:
            pass
        self.damaged.append(path)
        return None

    def put(self, digest: str, body: Body, scratch: Path) -> None:
        """Store a finished point atomically, by a draft in the folder `scratch`."""
        draft, path = scratch / digest, self.path(digest)
        stored = {"sha256": digest_of(body), "body": body}
        draft.write_text(json.dumps(stored, allow_nan=False), "utf-8")
        path.parent.mkdir(exist_ok=True)
        os.replace(draft, path)

    def finished(self, points: Sequence[Any]) -> str:
        """Number of finished points, in a clause."""
        digests = {point.digest for point in points}
        n = sum(self.path(digest).is_file() for digest in digests)
        return f"{n:,} of {count(len(digests), 'point')} are finished and kept in {self.folder}"

    def compute_missing(
        self,
        points: Sequence[Any],
        compute: Callable[[Any], Sequence[Body]],
        tasks_of: Callable[[Sequence[Any]], Sequence[Task]],
        workers: Workers,
        on_progress: Progress | None = None,
    ) -> list[Body]:
        """The numbers of all points, in their order; each has a `digest` of its inputs."""
        bodies: dict[str, Body | None] = {point.digest: self.get(point.digest) for point in points}
        missing = list({p.digest: p for p in points if bodies[p.digest] is None}.values())
        tell, n_done = on_progress or (lambda done, total: None), 0
        if missing:
            tell(0, len(missing))
            try:
                with closing(self._computed(compute, tasks_of(missing), workers)) as results:
                    for n_done, (digest, body) in enumerate(results, start=1):
                        bodies[digest] = body
                        tell(n_done, len(missing))
            except (ResultError, WorkerError) as error:
                n_kept = len(bodies) - len(missing) + n_done
                raise type(error)(
                    f"{error}; {n_kept} of {count(len(bodies), 'point')} are finished and kept: "
                    "the same command continues from there"
                ) from error
        return [found for point in points if (found := bodies[point.digest]) is not None]

    def _computed(
        self, compute: Callable[[Any], Sequence[Body]], tasks: Sequence[Task], workers: Workers
    ) -> Generator[tuple[str, Body], None, None]:
        """Digest and numbers of each point as its task comes back, when they are kept."""
        run, work = partial(_checked, source_digest(), compute), [task.work for task in tasks]
        with writes(f"to {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(self.folder)  # of sweeps that were killed
            with (
                scratch_dir(self.folder / "sweep") as scratch,
                closing(run_each(run, work, workers, lambda n: tasks[n].name)) as results,
            ):
                for number, bodies in results:
                    for digest, body in zip(tasks[number].digests, bodies, strict=True):
                        self.put(digest, body, scratch)
                        yield digest, body


def _checked(source: str, compute: Callable[[Any], Sequence[Body]], work: Any) -> Sequence[Body]:
    """The numbers of some points, in a worker, which other code would make otherwise."""
    if source_digest() != source:
        raise ResultError("a worker has another version of cprsim: install the same everywhere")
    return compute(work)


# --------------------------------------------------------------------------- journals


def append_to_journal(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record; when this returns, it survives the process and the machine.

    One process at a time writes to a journal. An incomplete line of a killed process is cut off.
    """
    line = json.dumps(record, allow_nan=False).encode() + b"\n"
    with writes(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.truncate(len(_whole_lines(path)))
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The records of a journal, in order; none where there is no journal yet."""
    try:
        lines = _whole_lines(path).splitlines() if path.exists() else []
    except OSError as error:
        raise ResultError(f"{path} can't be read: {error.strerror}") from error
    return [_record(f"{path}:{number}", line) for number, line in enumerate(lines, 1)]


def _whole_lines(path: Path) -> bytes:
    text = path.read_bytes()
    return text[: text.rfind(b"\n") + 1]


def _record(where: str, line: bytes) -> dict[str, Any]:
    with suppress(*UNUSABLE):
        record = json.loads(line)
        if isinstance(record, dict):
            return record
    raise ResultError(f"{where}: is damaged; remove this line to run its work again")
