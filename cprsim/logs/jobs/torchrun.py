"""Output of torchrun, and of PyTorch's checkpoints in it, as events."""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.logs.files import opened, trace_error

LINE_STAMP = re.compile(
    r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[zZ]|[+-]\d\d:?\d\d)?)[ \t:]+(.*)$"
)
AGENT_EVENT = re.compile(r'\{"name": "torchelastic\.worker\.status\.([A-Z_]+)"')
CHECKPOINT = re.compile(r"\{'checkpoint_id': .*'func_name': '(save|async_save|load)'.*\}")
CLOSING = re.compile(r"Sending process \d+ closing signal|failed \(exitcode: (-?\d+)\)")
ABORTED = "-6"  # by NCCL's watchdog, long after the work stopped; any other exit is seen at once
CHECKPOINT_STEP = re.compile(
    r"(\d+)(?:/mp_rank[_\d]+)?/?$|"  # a folder, or one of a rank in it
    r"(?:step|iter)[a-z]*[_=-]?(\d+)\.[a-z]+$"
)
MOST_CHARACTERS_OF_LINE = 1 << 20  # characters; a longer line counts as several
HINTS = ("torchelastic.worker.status", "'func_name': '")
NO_EVENT = (  # what comes of text that is none; the last three of `ast.literal_eval`
    ValueError, TypeError, LookupError, AttributeError, OverflowError,
    SyntaxError, MemoryError, RecursionError,
)  # fmt: skip
CHECKPOINT_EVENTS = {
    "load": {"start": "load.start", "end": "train.resume"},
    "save": {"start": "save.start", "end": "save.commit"},
    "async_save": {"start": "save.start", "end": "save.resume"},
}


def torch_events(path: Path, damaged: list[str]) -> Iterator[dict[str, Any]]:
    """The events of a job that torchrun ran, under the names of docs/events.md.

    Lines with an event that can't be read are left out, their places in `damaged`. Raises
    TraceError where an event of torchrun stands in a line without a time stamp.
    """
    attempt, before, ended = -1, 0, False  # `before`: attempts of the launches that have ended
    died_ns = 0  # when the launcher saw that the attempt ended
    for number, line in _lines(path):
        stamped = LINE_STAMP.match(line)
        stamp, message = stamped.groups() if stamped else ("", line)
        saved, closing = CHECKPOINT.search(message), CLOSING.search(message)
        begins = list(AGENT_EVENT.finditer(message))
        if not (saved or closing or begins):
            continue
        if not (saved or stamp):
            pipe = "`torchrun ... 2>&1 | ts '%Y-%m-%dT%H:%M:%.S'`"
            message = f"an event of torchrun without a time stamp before it, as {pipe} puts there"
            raise trace_error(path, number, message)
        try:
            if saved:
                yield from _of_checkpoint(saved[0], saved[1], attempt)
                continue
            at_ns = pd.Timestamp(stamp.replace(",", ".")).as_unit("ns").value  # UTC, unless said
            agents = [(begin[1], *_of_agent(message, begin.start())) for begin in begins]
        except NO_EVENT:
            damaged.append(f"{path.name}:{number}")
            continue
        now = {"time_unix_nano": at_ns, "attempt": attempt}
        if closing and not died_ns:
            died_ns = at_ns
            yield {**now, "event": "failure.detected"}
        if closing and closing[1] not in (None, ABORTED):
            yield {**now, "event": "failure", "time_unix_nano": died_ns}
        for status, source, restarts in agents:
            if status == "START" and (ended or before + restarts < attempt):
                before = attempt + 1  # another launch, which counts from 0 again
            if status == "START" and before + restarts > attempt:
                attempt, died_ns, ended = before + restarts, 0, False
                yield {**now, "event": "job.start", "attempt": attempt}
            elif status in ("SUCCEEDED", "FAILED") and source == "AGENT":
                outcome, ended = "finished" if status == "SUCCEEDED" else "failed", True
                yield {**now, "event": "job.end", "outcome": outcome}


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that may hold an event, each text once, one after the other."""
    words, number, said = (*HINTS, "closing signal", "exitcode"), 1, set[str]()
    with opened(path, None) as bare, io.BufferedReader(bare) as file:
        text = io.TextIOWrapper(file, "utf-8", errors="replace")
        while line := text.readline(MOST_CHARACTERS_OF_LINE):
            if any(word in line for word in words) and line not in said:
                said.add(line)
                yield number, line.rstrip("\n")
            number += line.endswith("\n")


def _of_agent(line: str, begins: int) -> tuple[str, int]:
    """An event of the launcher: its source, and restarts until then."""
    event, _ = json.JSONDecoder().raw_decode(line, begins)
    return str(event["source"]), int(event["metadata"].get("agent_restarts") or 0)


def _of_checkpoint(text: str, function: str, attempt: int) -> Iterator[dict[str, Any]]:
    """A save or load as the first rank logs it."""
    fields = ast.literal_eval(text)
    name = CHECKPOINT_EVENTS[function].get(fields.get("event"))
    if str(fields.get("global_rank", "0")) != "0" or name is None:
        return
    step = CHECKPOINT_STEP.search(str(fields.get("checkpoint_id") or ""))
    about = {"step": int(step[1] or step[2]) if step else None, "event": name}
    about |= {} if function == "load" else {"save_id": str(fields.get("uuid"))}
    yield {"time_unix_nano": int(fields["time"]), "attempt": attempt, **about}
