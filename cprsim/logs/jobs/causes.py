"""Why an attempt ended: the job was finished, somebody planned it, or it failed."""

from __future__ import annotations

import re

from cprsim.failures.outages import PLANNED_WORK

NO_CAUSE = ("", "-", "nan", "none", "null", "r", "running", "still running")
DONE = (*NO_CAUSE, "finished", "completed", "complete", "succeeded", "success", "done", "ok", "cd")
ALL_DONE = re.compile(
    r"((exit(ed)?|return(ed)?)( with)?( code| status)?[ :=]*)?0(:0)?|"
    r"(`?trainer\.fit`? stopped: )?`?(max|maximum|total|target) (steps|epochs|iterations|tokens)"
    r"(=\d+)?`?( reached)?\.?|converged|early stop(ped|ping)|stopped early"
)
PERSON = "by (user|owner|admin|operator)"
PLANNED_END = re.compile(
    r"(slurm |job |due to |reached |hit |exceeded )*(the )?"
    r"(time ?out|time ?limit|wall ?time( limit)?)( reached| exceeded| hit)?|"
    r"(graceful )?preempt(ed|ion)?( with notice)?|end of allocation|deadline(exceeded)?|"
    rf"(user |job )?(cancel(l?ed)?|stop(ped)?|paused?|suspended)( {PERSON})?|"
    rf"user abort(ed)?|(abort|kill|terminat)ed {PERSON}|keyboard ?interrupt|sigint|scancel|"
    rf"(re)?queued?|requeue hold|(stop|end|shutdown|restart)( window)?|({PLANNED_WORK}|graceful).*|"
    r"to|ca|pr|dl|term (runlimit|owner|admin|preempt)"  # short states of Slurm, reasons of LSF
)


def word_of(text: str) -> str:
    """Return a cause in lower case, without suffix (`CANCELLED by 7`, not `Timeout: NCCL`).

    The exit status 0 and the end of all steps are `ok`.
    """
    word = re.sub(r"[\s_-]+", " ", text.casefold()).strip()
    word = "ok" if ALL_DONE.fullmatch(word) else word
    return re.sub(rf"((?<!out)( (?!{PERSON})by | \(|:)|\+$| \(?\d).*", "", word).strip()


def is_planned(text: str) -> bool:
    """Whether an attempt ended by plan: no failure."""
    return bool(PLANNED_END.fullmatch(word := word_of(text))) or word in DONE[len(NO_CAUSE) :]
