"""A first scenario of ``cprsim init``: a template with comments, filled with what is known.

What was not said is assumed, and marked so beside the number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from cprsim.errors import ParameterError, one_line
from cprsim.failures.presets import preset
from cprsim.records import MAX_NODES
from cprsim.scenario.failures import EMB_PS, WORKER
from cprsim.units import BANDWIDTH, SIZE, TIME, Quantity

UNKNOWN = "unknown"
ASSUMED = "assumed"
GIVEN = "given"
RECOMMENDER, LLM = "recommender", "llm"
INSTEAD = {RECOMMENDER: "cpr", LLM: "kokolis-rsc1"}  # rates of others
NODE_STATE_BYTES = {RECOMMENDER: 50e9, LLM: 100e9}  # where nobody said how much
SAVE_H = 2 / 60
WEEK_H = 168.0
MOST_FAILURES = 1_000  # in the assumed length of the job, so that a run takes seconds
MOST_SAVES = 10_000
COLUMN = 30  # from which comments stand
PER_NODE = "per node"
TIMES_OF_JOB = ("mtbf", "mtbf_95", "ages")  # of a rate, that grow as the job has fewer nodes
_NODES = re.compile(r"\s*(\d{1,9})\s*(?:([x×+])\s*(\d{1,9})\s*)?", re.ASCII)
_NUMBER = re.compile(r"[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)
QUANTITIES = {
    "--failures": Quantity(TIME, "1 s", "100000000 h", "28 h"),
    "--state": Quantity(SIZE, "1 B", "1000 PB", "6 TB"),
    "--storage": Quantity(BANDWIDTH, "1 kbit/s", "1 EB/s", "800 Gbit/s"),
    "--length": Quantity(TIME, "1 s", "100000 h", "7 d"),
}
INTERVAL = Quantity(TIME, "1 s", "100000 h", "30 min")
SAVE = Quantity(TIME, "100 ms", "10000 h", "2 min")

HEAD = """\
# {job}: written by `cprsim init`.
# A number marked `assumed` is nobody's answer: put yours there. Quantities have units
# (s, min, h, d; MB, GB, TB; Gbit/s, GB/s); `cprsim schema` has every key and its unit.
name: {name}

job:
  useful: {useful}  # {useful_mark}; useful work at full speed, a time
"""
CLUSTER = {
    RECOMMENDER: """
cluster:
  trainers: {trainers}  # {nodes_mark}; each with the dense model
  emb_ps: {servers}  # {nodes_mark}; embedding servers, each with a shard
  shard_size: {node_state}  # {state_mark}; tables on one server, a size
""",
    LLM: """\
  step: 10 s  # assumed; a training step at full speed, a time

cluster:
  workers: {servers}  # given; nodes{of_gpus}, each with its part
  state: {node_state}  # {state_mark}; on one node, with the optimizer's
  # replicas: 8  # absent: each part of the state exists once; a count
  link: 400 Gbit/s  # assumed; of one node to the others, a bandwidth
""",
}
RACKS = """\
  rack: 8  # assumed; neighbouring nodes that one failure may take, a count
  # spares: 4  # absent: a replacement is always free; a count
"""
OF_JOB = """\
failures:  # {mark}; mean time between failures of the job, a time
{source}  kind: job
  {lifetime}
  role: any  # assumed; each failure strikes one of the nodes, all alike
"""
OF_NODES = """\
failures:  # {mark}; mean time between failures of one node, a time
{source}  kind: node
  roles:
{clocks}"""
SCOPES = """
scopes:  # what a failure takes, with its share: by publications, for you to correct
  - {name: process, share: 0.15, reach: process}    # derived: Llama 3, software and NCCL, 63 of 419
  - {name: node, share: 0.76, reach: node}          # derived: the rest
  - {name: rack, share: 0.06, reach: rack}          # derived: InfiniteHBD's trace, 30 of 529
  - {name: all, share: 0.03, reach: all}            # recalled: Blue Waters, 39 of 1,490 outages
"""
"""By causes of interruptions of Llama 3 405B (2024, table recalled), faults of several of 400
servers at once in InfiniteHBD's trace, and system-wide outages of Blue Waters (Di Martino et al.
2014)."""
REST = """
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
TODAY = "  - {{strategy: full, name: today, interval: {}}}  # given\n"
PARTIAL = """\
  - partial  # the failed server alone goes back; it loses samples
  # as cheap as it gets where this portion of the samples may be lost:
  - {strategy: cpr, target_pls: 0.05, assumed: true}  # assumed; a share of all
"""
GEMINI = "  - {gemini}  # copies in a peer's memory, as often as they fit\n"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a job; None: nobody said."""

    kind: str  # RECOMMENDER or LLM
    servers: int  # that hold state: embedding servers, or workers of a language model
    trainers: int = 0
    gpus: str = ""  # of a node
    split: bool = True  # it was said how many are servers, not only how many nodes there are
    mtbf_h: float | None = None
    per_node: bool = False  # the MTBF is of each node, not of the job
    fitted: str = ""  # a section `failures`, instead of a rate
    interval_h: float | None = None
    save_h: float | None = None
    state_bytes: float | None = None  # of the whole model
    storage_bytes_per_h: float | None = None
    useful_h: float | None = None

    @property
    def n_nodes(self) -> int:
        return self.servers + self.trainers


# --------------------------------------------------------------------------- what options say


def quantity(option: str, text: str, as_written: Quantity | None = None) -> float:
    """A quantity that an option says. Raises ParameterError."""
    try:
        return (as_written or QUANTITIES[option]).read(text.strip())
    except ParameterError as error:
        raise ParameterError(f"{option}: {one_line(text.strip())!r} {error}") from None


def nodes_of(kind: str, text: str) -> dict[str, Any]:
    """``12``, ``128x8`` of 8 GPUs each, or of a recommender ``8+4``: trainers and servers.

    Of a total a third are embedding servers: the ratio of the scenario `quickstart`.
    Raises ParameterError.
    """
    found = _NODES.fullmatch(text)
    first, sign, second = found.groups() if found else ("", "", "")
    right = "a whole number such as 12, or 128x8 for nodes of 8 GPUs"
    if kind == RECOMMENDER:
        right += ", or trainers + embedding servers such as 8+4"
    if not found or (sign == "+" and kind == LLM):
        raise ParameterError(f"--nodes: {one_line(text)!r} is no number of nodes: write {right}")
    counts = [int(first), int(second)] if sign == "+" else [int(first)]
    if counts[-1] < 1 or sum(counts) > MAX_NODES:
        raise ParameterError(
            f"--nodes: {one_line(text)!r}: a job has 1 to {MAX_NODES} nodes that hold state: "
            f"write {right}"
        )
    if kind == LLM:
        return {"servers": counts[0], "gpus": second}
    if sign == "+":
        return {"trainers": counts[0], "servers": counts[1]}
    servers = max(1, counts[0] // 3)
    return {"trainers": counts[0] - servers, "servers": servers, "split": False}


def rate_of(text: str) -> dict[str, Any]:
    """``28 h`` of the job, ``1000 d per node``, or ``unknown``. Raises ParameterError."""
    said = " ".join(text.split())
    if said.lower() == UNKNOWN:
        return {}
    per_node = said.lower().endswith(f" {PER_NODE}")
    try:
        mtbf_h = quantity("--failures", said[: -len(PER_NODE)] if per_node else said)
    except ParameterError as error:
        raise ParameterError(
            f"{error}; or '1000 d {PER_NODE}', the name of a log, or {UNKNOWN} "
            f"({one_line(text)!r} is no file)"
        ) from None
    return {"mtbf_h": mtbf_h, "per_node": per_node}


def saves_of(text: str) -> dict[str, Any]:
    """``30 min, 2 min``, interval and cost; ``unknown`` for any of them. Raises ParameterError."""
    parts = [part.strip() for part in text.split(",")]
    if [part.lower() for part in parts] == [UNKNOWN]:
        return {}
    if len(parts) != 2:
        raise ParameterError(
            f"--saves: {one_line(text)!r} is not how a job saves: write the interval and what a "
            f"save takes, such as '30 min, 2 min', or {UNKNOWN}"
        )
    interval, cost = (
        None if part.lower() == UNKNOWN else quantity("--saves", part, as_written)
        for part, as_written in zip(parts, (INTERVAL, SAVE), strict=True)
    )
    return {"interval_h": interval, "save_h": cost}


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
            f"`nodes: {n_nodes}` below `kind: job`"
        )
    factors = {"hazards": n_nodes / known} | dict.fromkeys(TIMES_OF_JOB, known / n_nodes)
    scaled = {key: _times(value, factors.get(key, 1)) for key, value in section.items()}
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
    return _NUMBER.sub(lambda found: f"{float(found[0]) * factor:.6g}", str(value), count=1)


# --------------------------------------------------------------------------- the scenario


def first_scenario(known: Known, name: str) -> str:
    """The scenario as YAML, with a comment for every number: its unit, and given or assumed."""
    kind, servers = known.kind, known.servers
    state = known.state_bytes or NODE_STATE_BYTES[kind] * servers
    storage = known.storage_bytes_per_h
    instead = "transfer" if storage else TIME.format(SAVE_H)
    save = instead if known.save_h is None else TIME.format(known.save_h)
    today = "" if known.interval_h is None else TODAY.format(TIME.format(known.interval_h))
    gemini = "{strategy: gemini, options: {placement: ring}}" if servers % 2 else "gemini"
    several = GEMINI.format(gemini=gemini) if servers > 1 else ""
    job = {
        RECOMMENDER: "A recommendation model on trainers and embedding servers",
        LLM: "A language model on workers that each hold a part of its state",
    }
    failures = f"{known.fitted.rstrip()}\n" if known.fitted else _aligned(_failures(known))
    filled = (HEAD + CLUSTER[kind] + RACKS + "\n{{failures}}" + REST).format(
        name=name,
        job=job[kind],
        useful=TIME.format(useful_h(known)),
        useful_mark=GIVEN if known.useful_h else ASSUMED,
        trainers=known.trainers,
        servers=servers,
        nodes_mark=GIVEN if known.split else f"{ASSUMED}, of {known.n_nodes} nodes that are given",
        of_gpus=f" of {known.gpus} GPUs" if known.gpus else "",
        node_state=_rounded(SIZE, state / servers),
        state_mark=f"{GIVEN if known.state_bytes else ASSUMED}: {_rounded(SIZE, state)} in all",
        storage=_gbit_per_s(storage or state / (known.save_h or SAVE_H)),
        storage_mark=GIVEN if storage else f"{ASSUMED}, from the time of a save",
        save=save,
        save_mark=ASSUMED if known.save_h is None else GIVEN,
        load=instead if storage else save,
        today=today,
        strategies=PARTIAL if kind == RECOMMENDER else several,
    )
    scopes = SCOPES if known.n_nodes > 1 else ""
    return _aligned(filled).replace("{failures}", failures + scopes)


def n_assumed(text: str) -> int:
    """How many lines of a first scenario hold a number that nobody gave."""
    return sum(ASSUMED in line for line in text.partition("\nname:")[2].splitlines())


def useful_h(known: Known) -> float:
    """As given; else a week [h], or less where that has more failures or saves than needed."""
    if known.useful_h is not None:
        return known.useful_h
    bounds = [WEEK_H]
    if known.interval_h is not None:
        bounds.append(MOST_SAVES * known.interval_h)
    if known.mtbf_h is not None:
        bounds.append(MOST_FAILURES * known.mtbf_h / (known.n_nodes if known.per_node else 1))
    return max(min(bounds), 1 / 3600)


def _failures(known: Known) -> str:
    """A rate that was given, or that of others."""
    mark, source, per_node = f"{GIVEN}; the family is {ASSUMED}", "", known.per_node
    if known.mtbf_h is not None:
        lifetime = ["family: exponential", f"mtbf: {TIME.format(known.mtbf_h)}"]
    else:
        rate, mark = preset(INSTEAD[known.kind]), ASSUMED
        source = f"  # of `cprsim presets`: {rate.name} ({rate.mark}; {rate.source})\n"
        lifetime = [f"family: {rate.family}", f"mtbf: {rate.mean_h:.6g} h"]
        lifetime += [] if rate.shape is None else [f"shape: {rate.shape:g}"]
        per_node = rate.of == "node"
    roles = {WORKER if known.kind == LLM else EMB_PS: known.servers, "trainer": known.trainers}
    clocks = [f"    {role}: {{{', '.join(lifetime)}}}\n" for role, n in roles.items() if n]
    return (OF_NODES if per_node else OF_JOB).format(
        mark=mark, source=source, clocks="".join(clocks), lifetime="\n  ".join(lifetime)
    )


def _rounded(dimension: Any, value: float) -> str:
    return str(dimension.format(float(f"{value:.4g}")))


def _gbit_per_s(bytes_per_h: float) -> str:
    number = bytes_per_h / BANDWIDTH.parse("1 Gbit/s")
    return f"{float(f'{number:.3g}'):g} Gbit/s"


def _aligned(text: str) -> str:
    """The lines with their comments one below the other, but those that are all comment."""
    lines = (line.rpartition("  # ") for line in text.split("\n"))
    return "\n".join(
        f"{before:{COLUMN}}  # {after}" if before.strip() else before + sign + after
        for before, sign, after in lines
    )
