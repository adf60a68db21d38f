"""A first scenario of ``cprsim init``: a template with comments, filled with answers.

Missing answers are assumed, and marked so next to the number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from cprsim.commands.options import parsed
from cprsim.errors import ParameterError, choices, one_line
from cprsim.failures.presets import FAILURE_PRESETS
from cprsim.files.units import BANDWIDTH, SIZE, TIME, Quantity
from cprsim.job.records import MAX_NODES, WEEK_H
from cprsim.scenario.failures import EMB_PS, WORKER
from cprsim.scenario.quantities import times

UNKNOWN_ANSWER = "unknown"
ASSUMED, GIVEN = "assumed", "given"
RECOMMENDER, LLM = "recommender", "llm"
PER_NODE = "per node"
INSTEAD = {RECOMMENDER: "cpr", LLM: "kokolis-rsc1"}  # rates of others
NODE_STATE_BYTES = {RECOMMENDER: 50e9, LLM: 100e9}  # assumed unless given
ASSUMED_SAVE_H = 2 / 60
COLUMN = 30  # of the comments
TIMES_OF_JOB = ("mtbf", "mtbf_95", "ages")  # of a rate, that grow as the job has fewer nodes
_NODES = re.compile(r"(?:(\d{1,9})\s*\+\s*)?(\d{1,9})")
OR_LOG = f", 1000 d {PER_NODE}, {UNKNOWN_ANSWER}, the name of an existing log, or a published rate"
MTBF = Quantity(TIME, "1 s", "100000000 h", "28 h", OR_LOG)
STATE_SIZE = Quantity(SIZE, "1 B", "1000 PB", "6 TB")
STORAGE = Quantity(BANDWIDTH, "1 kbit/s", "1 EB/s", "800 Gbit/s")
USEFUL_TIME = Quantity(TIME, "1 s", "100000 h", "7 d")
INTERVAL_ASKED = Quantity(TIME, "1 s", "100000 h", "30 min")
SAVE = Quantity(TIME, "100 ms", "10000 h", "2 min")

TEMPLATE = """\
# {job}: written by `cprsim init`.
# Replace each number marked `assumed` by your own. Quantities have units
# (s, min, h, d; MB, GB, TB; Gbit/s, GB/s); `cprsim validate --schema` has every key and its unit.
name: {name}

job:
  useful: {useful}  # {useful_mark}; useful work at full speed, a time
{cluster}\
  rack: 8  # assumed; neighbouring nodes that one failure may take, a count
  # spares: 4  # absent, so it is assumed that a replacement is always free; a count
  repair: 24 h  # assumed; until a failed node is there again, a time

{failures}{scopes}
storage: {{bandwidth: {storage}}}  # {storage_mark}; shared by all nodes, a bandwidth

costs:
  save: {save}  # {save_mark}; how long a save stalls the job, a time
  load: {load}  # assumed; to load a checkpoint, a time, or `transfer` over the storage
  detect: 1 min  # assumed; until a failure is noticed, a time
  reschedule: 3 min  # assumed; until a replacement runs, a time

recovery:
{today}  - full  # all go back to the last save; at Young's interval
{strategies}
simulation: {{seed: 1, replications: 200}}  # more: narrower intervals, longer
"""
JOB_DESCRIPTIONS = {
    RECOMMENDER: "A recommendation model on trainers and embedding servers",
    LLM: "A language model on workers that each hold a part of its state",
}
CLUSTER = {
    RECOMMENDER: """\
  step: 200 ms  # assumed; a training step at full speed, a time

cluster:
  trainers: {trainers}  # {nodes_mark}; each with the dense model
  emb_ps: {servers}  # {nodes_mark}; embedding servers, each with a shard
  shard_size: {node_state}  # {state_mark}; tables on one server, a size
  link: 25 Gbit/s  # assumed; of one node to the others, a bandwidth
""",
    LLM: """\
  step: 10 s  # assumed; a training step at full speed, a time

cluster:
  workers: {servers}  # given; nodes, each with its part
  state: {node_state}  # {state_mark}; on one node, with the optimizer's
  # replicas: 8  # absent, so it is assumed that each part of the state exists once; a count
  link: 400 Gbit/s  # assumed; of one node to the others, a bandwidth
""",
}
FAILURES_OF_JOB = """\
failures:  # {mark}; mean time between failures of the job, a time
{source}  kind: job
  {lifetime}
  role: any  # assumed; each failure strikes one of the nodes, all alike
"""
FAILURES_OF_NODES = """\
failures:  # {mark}; mean time between failures of one node, a time
{source}  kind: node
  roles:
{clocks}"""
SCOPES = """
scopes:  # what a failure takes, with its share; no node breaks in `all`
  - {name: process, share: 0.15, reach: process}  # assumed; derived: Llama 3, 63 of 419
  - {name: node, share: 0.76, reach: node}  # assumed; derived: the rest
  - {name: rack, share: 0.06, reach: rack}  # assumed; derived: InfiniteHBD's trace, 30 of 529
  - {name: all, share: 0.03, reach: all, needs_node: false}  # assumed; recalled: Blue Waters
"""
"""By causes of interruptions of Llama 3 405B (2024, table recalled), faults of several of 400
servers at once in InfiniteHBD's trace, and system-wide outages of Blue Waters (39 of 1,490; Di
Martino et al. 2014), such as of storage or power, which seldom break nodes."""
_SCALED = "scaled from {} to {} nodes, from {:.6g} h: assumed that nodes fail alike, one by one"
TODAY_LINE = "  - {{strategy: full, name: today, interval: {}}}  # given\n"
PARTIAL = """\
  - partial  # the failed server alone goes back; it loses samples
  # as cheap as it gets where this portion of the samples may be lost:
  - {strategy: cpr, target_pls: 0.05, assumed: true}  # assumed; a share of all
"""
GEMINI_LINE = "  - {gemini}  # copies in a peer's memory, as often as they fit\n"


@dataclass(frozen=True, slots=True)
class Known:
    """The user's answers on a job; None: not given."""

    kind: str  # RECOMMENDER or LLM
    servers: int  # that hold state: embedding servers, or workers of a language model
    trainers: int = 0
    split: bool = True  # the number of servers was given, not only that of nodes
    mtbf_h: float | None = None
    per_node: bool = False  # the MTBF is of each node, not of the job
    rate: str = ""  # the name of a published one
    fitted: str = ""  # a section `failures`, instead of a rate
    interval_h: float | None = None
    save_h: float | None = None
    state_bytes: float | None = None  # of the whole model
    storage_bytes_per_h: float | None = None
    length_h: float | None = None

    @property
    def n_nodes(self) -> int:
        return self.servers + self.trainers


# --------------------------------------------------------------------------- what options say


def quantity(option: str, text: str | None, kind: Quantity) -> float | None:
    """A quantity from an option; None: unknown. Raises ParameterError."""
    written = UNKNOWN_ANSWER if text is None else text.strip()
    return None if written == UNKNOWN_ANSWER else parsed(option, written, kind.read)


def nodes_of(kind: str, text: str) -> dict[str, Any]:
    """``12``, or of a recommender ``8+4``: trainers and servers. Raises ParameterError.

    Of a total a third are embedding servers: the ratio of the scenario `quickstart`.
    """
    match = _NODES.fullmatch(text.strip())
    trainers, servers = (int(n or 0) for n in match.groups()) if match else (0, 0)
    is_total = match is None or match[1] is None
    if not 0 < servers <= trainers + servers <= MAX_NODES or (kind == LLM and not is_total):
        or_both = "" if kind == LLM else ", or trainers + embedding servers such as 8+4"
        raise ParameterError(
            f"{one_line(text)!r} is no number of nodes: write a whole number from 1 to "
            f"{MAX_NODES} such as 12{or_both}",
            option="--nodes",
        )
    if kind == LLM or not is_total:
        return {"trainers": trainers, "servers": servers}
    third = max(1, servers // 3)
    return {"trainers": servers - third, "servers": third, "split": False}


def rate_of(text: str) -> dict[str, Any]:
    """``28 h`` of the job, ``1000 d per node``, a published rate's name, or ``unknown``.

    Raises ParameterError.
    """
    if text in FAILURE_PRESETS:
        return {"rate": text}
    try:
        mtbf_h = quantity("--failures", text.removesuffix(PER_NODE), MTBF)
    except ParameterError as error:
        message = f"{error.args[0]}; {choices(text, FAILURE_PRESETS)}"
        raise ParameterError(message, error.option) from None
    return {"mtbf_h": mtbf_h, "per_node": text.endswith(PER_NODE)}


def saves_of(text: str) -> dict[str, Any]:
    """``30 min, 2 min``, interval and cost; ``unknown`` for any of them. Raises ParameterError."""
    if text == UNKNOWN_ANSWER:
        return {}
    every, comma, cost = text.partition(",")
    if not comma or "," in cost:
        raise ParameterError(
            f"{one_line(text)!r} is no interval with the duration of a save: write "
            f"both, such as '30 min, 2 min', or {UNKNOWN_ANSWER}",
            option="--saves",
        )
    return {
        "interval_h": quantity("--saves", every, INTERVAL_ASKED),
        "save_h": quantity("--saves", cost, SAVE),
    }


def for_nodes(section: dict[str, Any], n_nodes: int) -> tuple[dict[str, Any], str]:
    """A section `failures` scaled to a job on `n_nodes` nodes, and the scaling in words.

    Nodes are assumed to fail alike and independently: the rate is proportional to their number.
    Raises ParameterError where the section lacks the number of nodes of its rate.
    """
    n_known = section.get("nodes")
    if section.get("kind") != "job" or n_known == n_nodes:
        return section, ""  # the others have a clock for each node
    if not isinstance(n_known, int) or n_known < 1:
        raise ParameterError(
            "failures.nodes is missing: give the number of nodes of this rate, such as "
            f"`nodes: {n_nodes}` below `kind: job`"
        )
    factors = {"hazards": n_nodes / n_known} | dict.fromkeys(TIMES_OF_JOB, n_known / n_nodes)
    scaled = {key: times(section[key], by) for key, by in factors.items() if key in section}
    key = "mtbf" if "mtbf" in scaled else "hazards"
    return section | scaled | {"nodes": n_nodes}, (
        f"scaled from {n_known} to {n_nodes} nodes, {key} from {section.get(key)} to "
        f"{scaled.get(key)} ({ASSUMED}: nodes fail alike and independently)"
    )


# --------------------------------------------------------------------------- the scenario


def first_scenario(job: Known, name: str) -> str:
    """The scenario as YAML, with a comment for every number: its unit, and given or assumed."""
    kind, servers, storage = job.kind, job.servers, job.storage_bytes_per_h
    state = job.state_bytes or NODE_STATE_BYTES[kind] * servers
    instead = "transfer" if storage else TIME.format(ASSUMED_SAVE_H)
    save = instead if job.save_h is None else TIME.format(job.save_h)
    ring = "{strategy: gemini, options: {placement: ring}}"
    gemini = GEMINI_LINE.format(gemini=ring if servers % 2 else "gemini") if servers > 1 else ""
    gbit_per_s = (storage or state / (job.save_h or ASSUMED_SAVE_H)) / BANDWIDTH.parse("1 Gbit/s")
    cluster = CLUSTER[kind].format(
        trainers=job.trainers,
        servers=servers,
        nodes_mark=GIVEN if job.split else f"{ASSUMED}, of {job.n_nodes} nodes that are given",
        node_state=_size(state / servers),
        state_mark=f"{GIVEN if job.state_bytes else ASSUMED}: {_size(state)} in all",
    )
    text = TEMPLATE.format(
        name=name,
        job=JOB_DESCRIPTIONS[kind],
        useful=TIME.format(job.length_h or WEEK_H),
        useful_mark=GIVEN if job.length_h else ASSUMED,
        cluster=cluster,
        failures=f"{job.fitted.rstrip()}\n" if job.fitted else _failures(job),
        scopes=SCOPES if job.n_nodes > 1 else "",
        storage=f"{float(f'{gbit_per_s:.3g}'):g} Gbit/s",
        storage_mark=GIVEN if storage else f"{ASSUMED}, from the time of a save",
        save=save,
        save_mark=ASSUMED if job.save_h is None else GIVEN,
        load=instead if storage else save,
        today="" if job.interval_h is None else TODAY_LINE.format(TIME.format(job.interval_h)),
        strategies=PARTIAL if kind == RECOMMENDER else gemini,
    )
    lines = (line.rpartition("  # ") for line in text.split("\n"))
    return "\n".join(  # comments one below the other, but lines that are all comment
        f"{before:{COLUMN}}  # {after}" if before.strip() else before + sign + after
        for before, sign, after in lines
    )


def n_assumed(text: str) -> int:
    """Number of lines of a first scenario that hold an assumed number."""
    return sum(ASSUMED in line for line in text.partition("\nname:")[2].splitlines())


def _failures(job: Known) -> str:
    """A rate that was given, or that of others."""
    mark, source, per_node = f"{GIVEN}; the family is {ASSUMED}", "", job.per_node
    if job.mtbf_h is not None:
        lifetime = ["family: exponential", f"mtbf: {TIME.format(job.mtbf_h)}"]
    else:
        rate, mark = FAILURE_PRESETS[job.rate or INSTEAD[job.kind]], ASSUMED
        source = f"  # of `cprsim init --list`: {rate.name} ({rate.mark}; {rate.source})\n"
        mean_h = rate.mean_h * (rate.n_nodes or job.n_nodes) / job.n_nodes
        if rate.n_nodes not in (None, job.n_nodes):
            source += f"  # {_SCALED.format(rate.n_nodes, job.n_nodes, rate.mean_h)}\n"
        lifetime = [f"family: {rate.family}", f"mtbf: {mean_h:.6g} h"]
        lifetime += [] if rate.shape is None else [f"shape: {rate.shape:g}"]
        per_node = rate.of == "node"
    roles = {WORKER if job.kind == LLM else EMB_PS: job.servers, "trainer": job.trainers}
    clocks = [f"    {role}: {{{', '.join(lifetime)}}}\n" for role, n in roles.items() if n]
    return (FAILURES_OF_NODES if per_node else FAILURES_OF_JOB).format(
        mark=mark, source=source, clocks="".join(clocks), lifetime="\n  ".join(lifetime)
    )


def _size(n_bytes: float) -> str:
    return SIZE.format(float(f"{n_bytes:.4g}"))
