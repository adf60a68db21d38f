"""Answers about a job, read and checked: what `cprsim init` asks.

Every error is one sentence that names what would be right, so that a terminal can ask again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from cprsim.errors import ParameterError
from cprsim.foreign import one_line
from cprsim.records import MAX_NODES
from cprsim.scenario.failures import EMB_PS, WORKER
from cprsim.scenario.quantities import choices
from cprsim.units import BANDWIDTH, SIZE, TIME, Quantity

UNKNOWN = "unknown"
ASSUMED = "assumed"
TIMES_OF_JOB = ("mtbf", "mtbf_95", "ages")  # of a rate, that grow as the job has fewer nodes
NUMBER = re.compile(r"[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)
PER_NODE = "per node"
MTBF = Quantity(TIME, "1 s", "100000000 h", "28 h")
NODES_OF_GPUS = re.compile(r"\s*(?P<nodes>\d{1,9})\s*[x×]\s*(?P<gpus>\d{1,4})\s*", re.ASCII)
SIZES = {
    "--state": Quantity(SIZE, "1 B", "1000 PB", "6 TB"),
    "--storage": Quantity(BANDWIDTH, "1 kbit/s", "1 EB/s", "800 Gbit/s"),
    "--length": Quantity(TIME, "1 s", "100000 h", "7 d"),
}
INTERVAL = Quantity(TIME, "1 s", "100000 h", "30 min")
SAVE = Quantity(TIME, "100 ms", "10000 h", "2 min")


class JobKind(StrEnum):
    """What trains: it decides who holds state, and which ways to recover there are."""

    recommender = "recommender"
    llm = "llm"


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of the job.

    Parameters
    ----------
    servers : those that hold state
    stateful_role : what they are: embedding servers, or workers of a language model
    trainers : those that hold none
    split_known : whether it was said how many are servers, not only how many there are
    """

    servers: int
    stateful_role: str
    trainers: int = 0
    split_known: bool = True
    gpus: int | None = None  # of a node, where that was said

    @property
    def total(self) -> int:
        """All of them."""
        return self.servers + self.trainers


@dataclass(frozen=True, slots=True)
class Rate:
    """Mean time between failures, of the job as a whole or of each node [h]."""

    mtbf_h: float
    per_node: bool


@dataclass(frozen=True, slots=True)
class FailuresSection:
    """A section `failures` in YAML, as a fit of a log writes it, and what it was made of."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class SavesToday:
    """How the job saves today [h]; None for what is not known."""

    interval_h: float | None = None
    cost_h: float | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """All that a first scenario is made of; no rate: failures are not known."""

    kind: JobKind
    nodes: Nodes
    failures: Rate | FailuresSection | None
    saves: SavesToday = SavesToday()
    state_bytes: float | None = None  # of the whole model; None of this and the next: not known
    storage_bytes_per_h: float | None = None
    useful_h: float | None = None


def read_kind(text: str) -> JobKind:
    """The kind of a job, by its name. Raises ParameterError."""
    name = text.strip().lower()
    try:
        return JobKind(name)
    except ValueError:
        known = choices(one_line(name), tuple(JobKind))
        raise ParameterError(f"{one_line(text)!r} is no kind of job: {known}") from None


def read_nodes(text: str, kind: JobKind) -> Nodes:
    """``12``, or of a recommender ``8+4``: trainers and embedding servers. Raises ParameterError.

    ``128x8`` are 128 nodes of 8 GPUs. Of a total a third are embedding servers (assumed; the ratio
    of the scenario `quickstart`).
    """
    of_gpus = NODES_OF_GPUS.fullmatch(text)
    parts = [part.strip() for part in (of_gpus["nodes"] if of_gpus else text).split("+")]
    right = "a whole number such as 12, or 128x8 for nodes of 8 GPUs" + (
        ", or trainers + embedding servers such as 8+4" if kind is JobKind.recommender else ""
    )
    if len(parts) > (2 if kind is JobKind.recommender else 1) or not all(
        part.isascii() and part.isdigit() and len(part) <= 9 for part in parts
    ):
        raise ParameterError(f"{one_line(text)!r} is no number of nodes: write {right}")
    counts = [int(part) for part in parts]
    if counts[-1] < 1 or sum(counts) > MAX_NODES:
        raise ParameterError(
            f"{one_line(text)!r}: a job has 1 to {MAX_NODES} nodes that hold state: write {right}"
        )
    gpus = int(of_gpus["gpus"]) if of_gpus else None
    if kind is JobKind.llm:
        return Nodes(counts[0], WORKER, gpus=gpus)
    if len(counts) == 2:
        return Nodes(counts[1], EMB_PS, counts[0])
    servers = max(1, counts[0] // 3)
    return Nodes(servers, EMB_PS, counts[0] - servers, split_known=False, gpus=gpus)


def read_failures(text: str) -> Rate | Path | None:
    """``28 h``, ``1000 d per node``, a file, or ``unknown`` (None). Raises ParameterError.

    The file is a log, or a section `failures` that ``cprsim fit --save`` wrote (YAML).
    """
    said = " ".join(text.split())
    if said.lower() == UNKNOWN:
        return None
    if Path(text.strip()).is_file():
        return Path(text.strip())
    per_node = said.lower().endswith(f" {PER_NODE}")
    time = said[: -len(PER_NODE)] if per_node else said
    try:
        return Rate(read(MTBF, time), per_node)
    except ParameterError as error:
        raise ParameterError(
            f"{error}; or '1000 d {PER_NODE}', the name of a log, or {UNKNOWN} "
            f"({one_line(text)!r} is no file)"
        ) from None


def for_nodes(section: dict[str, Any], n_nodes: int) -> tuple[dict[str, Any], str]:
    """A section `failures` for a job on so many nodes, and in words from what to what it is scaled.

    Nodes are taken to fail alike and independently: the rate is in proportion to their number.
    Raises ParameterError where the section does not say of how many nodes its rate is.
    """
    known = section.get("nodes")
    if section.get("kind") != "job" or known == n_nodes:
        return section, ""  # the others have a clock for each node
    if not isinstance(known, int) or known < 1:
        raise ParameterError(
            "failures.nodes is missing: of how many nodes is this rate? Write for example "
            f"`nodes: {n_nodes}` below `kind: {section['kind']}`"
        )
    factor = {"hazards": n_nodes / known} | dict.fromkeys(TIMES_OF_JOB, known / n_nodes)
    scaled = {key: _times(value, factor.get(key, 1)) for key, value in section.items()}
    first = next((key for key in ("mtbf", "hazards") if key in section), "rate")
    return scaled | {"nodes": n_nodes}, (
        f"scaled from {known} to {n_nodes} nodes, {first} from {section.get(first)} to "
        f"{scaled.get(first)} ({ASSUMED}: nodes fail alike and independently)"
    )


def _times(value: Any, factor: float) -> Any:
    """A quantity, or a list of them, `factor` as large."""
    if factor == 1:
        return value
    if isinstance(value, list):
        return [_times(one, factor) for one in value]
    return NUMBER.sub(lambda found: f"{float(found[0]) * factor:.6g}", str(value), count=1)


def read_saves(text: str) -> SavesToday:
    """``30 min, 2 min``: the interval and what a save takes; ``unknown`` for either, or for both.

    Raises ParameterError.
    """
    parts = [part.strip() for part in text.split(",")]
    if [part.lower() for part in parts] == [UNKNOWN]:
        return SavesToday()
    if len(parts) != 2:
        raise ParameterError(
            f"{one_line(text)!r} is not how a job saves: write the interval and what a save "
            f"takes, such as '30 min, 2 min', or {UNKNOWN}"
        )
    interval_h, cost_h = (
        None if part.lower() == UNKNOWN else read(quantity, part)
        for part, quantity in zip(parts, (INTERVAL, SAVE), strict=True)
    )
    return SavesToday(interval_h, cost_h)


def read(quantity: Quantity, text: str) -> float:
    """A quantity as an answer has it. Raises ParameterError."""
    try:
        return quantity.read(text.strip())
    except ParameterError as error:
        raise ParameterError(f"{one_line(text.strip())!r} {error}") from None
