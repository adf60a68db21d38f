"""An event log of a training job: one JSON object per line, written by the job itself.

Standard library only: the file works when it is copied next to a training script. Five lines in a
training loop (docs/events.md has the fields):

    log = JobLog("events.jsonl", job="j1")
    log.resume(step)                    # the first step follows
    log.progress(step)                  # now and then, with the steps done
    with log.save(step): save(...)      # around each save
    log.end(step)
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STAGES = {
    "wait.start": "wait",
    "reschedule.start": "reschedule",
    "load.start": "load",
    "warm-up.start": "warm-up",
    "regroup.start": "regroup",
    "replay.start": "replay",
    "rebuild.start": "rebuild",
}
"""Events that begin a stage of a recovery, and what its hours are called."""

EVENTS = (
    "job.start", "job.end", "progress",
    "save.start", "save.resume", "save.commit", "save.abandon",
    "failure", "failure.detected", "rollback", "train.resume", "replaced",
    *STAGES,
)  # fmt: skip
"""Names that an event may have."""

FIELDS: dict[str, type | tuple[type, ...]] = {
    "time_unix_nano": int,
    "event": str,
    "job": str,
    "attempt": int,
    "step": (int, float),
    "step_seconds": (int, float),
    "bytes": (int, float),
    "save_id": (str, int),
    "fraction": (int, float),
    "node": (str, int),
    "role": str,
    "rank": int,
    "cause": str,
    "last_seen_unix_nano": int,
    "outcome": str,
}
"""Fields of an event and their types; the first two are required."""

RESTART_VARIABLES = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
TAIL_BYTES = 65_536  # of a log that is there already, to see which attempt this is


class JobLog:
    """Appends events to a file, one whole line per write.

    If the file can't be written, one message on stderr says so and the training continues.

    Parameters
    ----------
    path : the file; several attempts of a job write to the same one
    job : name of the job; None: the file has one job only
    attempt : number of this start, 0 for the first; None: from the environment of the launcher
        (torchrun, Slurm), which each launch counts anew: at least one more than the file's last
    node : name of this machine; None: the host's name
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        job: str | None = None,
        attempt: int | None = None,
        node: str | None = None,
        **facts: Any,
    ) -> None:
        self.path = os.fspath(path)
        self.job = job
        self.attempt = _attempt_of(self.path) if attempt is None else attempt
        self.node = socket.gethostname() if node is None else node
        self._failed = False
        self._n_saves = 0
        self.write("job.start", **facts)

    def write(self, event: str, *, time_unix_nano: int | None = None, **facts: Any) -> None:
        """Append one event.

        Parameters
        ----------
        event : one of `EVENTS`
        time_unix_nano : instant of the event [ns since 1970]; None: now
        facts : fields of `FIELDS`; those that are None are left out

        Raises
        ------
        ValueError : for an unknown event or field
        """
        if event not in EVENTS:
            raise ValueError(f"no event {event!r}; there are: {', '.join(EVENTS)}")
        if unknown := [name for name in facts if name not in FIELDS]:
            raise ValueError(f"no field {unknown[0]!r}; there are: {', '.join(FIELDS)}")
        line = {
            "time_unix_nano": time.time_ns() if time_unix_nano is None else time_unix_nano,
            "event": event,
            **({} if self.job is None else {"job": self.job}),
            "attempt": self.attempt,
            "node": self.node,
            **{name: fact for name, fact in facts.items() if fact is not None},
        }
        self._append(json.dumps(line, separators=(",", ":")))

    def resume(self, step: float, **facts: Any) -> None:
        """Record that training continues from a state of `step` steps."""
        self.write("train.resume", step=step, **facts)

    def progress(self, step: float, **facts: Any) -> None:
        """Record that `step` steps are done."""
        self.write("progress", step=step, **facts)

    @contextmanager
    def save(self, step: float, **facts: Any) -> Iterator[None]:
        """Around a save that the training waits for."""
        self._n_saves += 1
        mine = {"step": step, "save_id": f"{self.attempt}.{self._n_saves}", **facts}
        self.write("save.start", **mine)
        try:
            yield
        except BaseException:
            self.write("save.abandon", **mine)
            raise
        self.write("save.commit", **mine)

    def end(self, step: float | None = None, outcome: str = "finished", **facts: Any) -> None:
        """Record the end of the job."""
        self.write("job.end", step=step, outcome=outcome, **facts)

    def _append(self, line: str) -> None:
        try:
            number = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(number, (line + "\n").encode())
            finally:
                os.close(number)
        except OSError as error:
            if not self._failed:
                print(f"{str(self.path)!r}: events are not written: {error!r}", file=sys.stderr)
            self._failed = True


def _attempt_of(path: str) -> int:
    """Number of this start of the job, from the environment and from an existing log."""
    counts = [os.environ.get(name, "") for name in RESTART_VARIABLES]
    said = next((int(count) for count in counts if count.isdigit()), 0)
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return said
    for line in reversed(lines):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and isinstance(event.get("attempt"), int):
            return max(said, int(event["attempt"]) + 1)
    return said
