"""Reader of what torchrun and PyTorch's distributed checkpoints print: lines with a time stamp.

Events of torchrun (``--event-log-handler=console``) carry no time of their own: each line needs
a time stamp before it, as ``ts`` or a log collector writes. Lines of `dcp_logger` carry theirs.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cprsim.errors import Place, TraceError

STAMP = re.compile(
    r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[zZ]|[+-]\d\d:?\d\d)?)[ \t:]+(.*)$"
)
AGENT_EVENT = re.compile(r'\{"name": "torchelastic\.worker\.status\.([A-Z_]+)".*\}')
CHECKPOINT = re.compile(r"\{'checkpoint_id': .*'func_name': '(save|async_save|load)'.*\}")
CLOSING = re.compile(r"Sending process \d+ closing signal|failed \(exitcode: (-?\d+)\)")
STEP = re.compile(r"(\d+)/?$")
NS_PER_MS = 1e6
HINTS = ("torchelastic.worker.status", "'func_name': '")


def torch_events(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a job that torchrun ran, under the names of docs/events.md.

    Raises
    ------
    TraceError : an event of torchrun stands in a line without a time stamp
    """
    attempt, died = -1, False
    text = path.read_text("utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        found = STAMP.match(line)
        said = found[2] if found else line
        if saved := CHECKPOINT.search(said):
            yield from _of_checkpoint(saved[0], saved[1])
            continue
        is_event, closing = AGENT_EVENT.search(said), CLOSING.search(said)
        if not is_event and not closing:
            continue
        if found is None:
            raise TraceError.at(
                Place(path, number),
                "an event of torchrun without a time stamp before it, as "
                "`torchrun ... 2>&1 | ts '%Y-%m-%dT%H:%M:%.S'` puts there",
            )
        at_ns = _ns(found[1])
        if closing and not died:
            died = True
            yield {"time_unix_nano": at_ns, "event": "failure.detected", "attempt": max(attempt, 0)}
        elif is_event:
            event = json.loads(is_event[0])
            restarts = int(event["metadata"].get("agent_restarts") or 0)
            if is_event[1] == "START" and restarts > attempt:
                attempt, died = restarts, False
                yield {"time_unix_nano": at_ns, "event": "job.start", "attempt": attempt}
            elif is_event[1] == "RENDEZVOUS" and died:
                took_ns = round(float(event["metadata"].get("duration_ms") or 0) * NS_PER_MS)
                yield {
                    "time_unix_nano": at_ns - took_ns,
                    "event": "reschedule.start",
                    "attempt": max(attempt, 0),
                }
            elif is_event[1] in ("SUCCEEDED", "FAILED") and event["source"] == "AGENT":
                outcome = "finished" if is_event[1] == "SUCCEEDED" else "failed"
                yield {"time_unix_nano": at_ns, "event": "job.end", "outcome": outcome}


def _of_checkpoint(text: str, what: str) -> Iterator[dict[str, Any]]:
    """A save or load as the first rank logs it."""
    try:
        said = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return
    if str(said.get("global_rank", "0")) != "0" or said.get("event") not in ("start", "end"):
        return
    event = {"time_unix_nano": int(said["time"]), "rank": 0}
    step = STEP.search(str(said.get("checkpoint_id") or ""))
    if step:
        event["step"] = int(step[1])
    begins = said["event"] == "start"
    if what == "load":
        yield {**event, "event": "load.start" if begins else "train.resume"}
        return
    end = "save.resume" if what == "async_save" else "save.commit"
    yield {**event, "event": "save.start" if begins else end, "save_id": str(said.get("uuid"))}


def _ns(stamp: str) -> int:
    """Nanoseconds since 1970 of a time stamp; one without a zone counts as UTC."""
    whole, _, fraction = re.sub(r"[zZ]|[+-]\d\d:?\d\d$", "", stamp).replace(",", ".").partition(".")
    zone = re.search(r"([+-])(\d\d):?(\d\d)$", stamp[19:])
    at = datetime.fromisoformat(whole).replace(tzinfo=UTC)
    seconds = int(at.timestamp())
    if zone:
        offset_s = (int(zone[2]) * 60 + int(zone[3])) * 60
        seconds -= offset_s if zone[1] == "+" else -offset_s
    return seconds * 10**9 + int(fraction.ljust(9, "0") or 0)
