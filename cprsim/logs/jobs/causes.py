"""Why an attempt ended: the job was finished, somebody planned it, or it failed."""

from __future__ import annotations

import re

from cprsim.failures.outages import PLANNED_WORK

NO_CAUSE = ("", "-", "nan", "none", "null")
DONE = (*NO_CAUSE, "finished", "completed", "complete", "succeeded", "success", "done", "ok")
PLANNED_END = re.compile(
    r"(slurm |job |due to |reached |hit )*(the )?(time ?out|time ?limit|wall ?time( limit)?)"
    r"( reached| exceeded| hit)?|(graceful )?preempt(ed|ion)?( with notice)?|"
    r"(user |job )?(cancel(l?ed)?|stop(ped)?|paused?|suspended)|(re)?queued?|requeue hold|"
    rf"(stop|end|shutdown|restart)( window)?|({PLANNED_WORK}|graceful).*|deadline"
)


def word_of(text: str) -> str:
    """Return a cause in lower case, without suffix (`CANCELLED by 7`, not `Timeout: NCCL`)."""
    word = re.sub(r"[\s_-]+", " ", text.casefold())
    return re.sub(r"((?<!out)( by | \(|:)|\+$| \(?\d).*", "", word).strip()


def is_planned(text: str) -> bool:
    """Whether an attempt ended by plan: no failure."""
    return bool(PLANNED_END.fullmatch(word := word_of(text))) or word in DONE[len(NO_CAUSE) :]
