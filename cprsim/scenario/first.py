"""A first scenario: answers about a job as commented YAML that runs.

What was not answered is assumed, and marked so beside the number.
"""

from __future__ import annotations

from cprsim.failures.presets import FailurePreset, preset
from cprsim.scenario.answers import Answers, FailuresSection, JobKind, Nodes, Rate
from cprsim.units import BANDWIDTH, SIZE, TIME

ASSUMED = "assumed"
INSTEAD = {JobKind.recommender: "cpr", JobKind.llm: "kokolis-rsc1"}  # rates of others
WEEK_H = 168.0
MOST_FAILURES = 1_000  # in the assumed length of the job, so that a run takes seconds
MOST_SAVES = 10_000
NODE_STATE_BYTES = {JobKind.recommender: 50e9, JobKind.llm: 100e9}  # where nobody said how much
SAVE_H = 2 / 60
GBIT_PER_S = BANDWIDTH.parse("1 Gbit/s")
SCOPES = (
    ("process", 0.15, "derived: Llama 3, software and NCCL, 63 of 419"),
    ("node", 0.76, "derived: the rest"),
    ("rack", 0.06, "derived: InfiniteHBD's trace, 30 of 529"),
    ("all", 0.03, "recalled: Blue Waters, 39 of 1,490 outages"),
)
"""What failures reach, with shares by publications.

Interruptions of Llama 3 405B (2024, table of causes recalled); faults of several of 400 servers at
once in the trace of InfiniteHBD; system-wide outages of Blue Waters (Di Martino et al. 2014).
"""
COLUMN = 32  # at which comments begin


def first_scenario(answers: Answers, name: str) -> str:
    """The text of a scenario.

    Parameters
    ----------
    answers : what is known of the job
    name : of the scenario

    Returns
    -------
    YAML with a comment for every number: its unit, and whether it was given or assumed
    """
    sections = (
        _head(answers, name),
        _job(answers),
        _cluster(answers),
        _failures(answers),
        *([_scopes()] if answers.nodes.total > 1 else []),
        _storage(answers),
        _costs(answers),
        _recovery(answers),
        [_line("simulation: {seed: 1, replications: 200}", "more: narrower intervals, longer")],
    )
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def n_assumed(text: str) -> int:
    """How many lines of a first scenario hold a number that nobody gave."""
    return sum(ASSUMED in line for line in text.partition("\nname:")[2].splitlines())


def _line(text: str, comment: str) -> str:
    return f"{text:{COLUMN - 2}}  # {comment}"


def _assumed(text: str, comment: str) -> str:
    return _line(text, f"{ASSUMED}; {comment}")


def _head(answers: Answers, name: str) -> list[str]:
    job = {
        JobKind.recommender: "A recommendation model on trainers and embedding servers",
        JobKind.llm: "A language model on workers that each hold a part of its state",
    }[answers.kind]
    return [
        f"# {job}: written by `cprsim init`.",
        f"# A number marked `{ASSUMED}` is nobody's answer: put yours there. Quantities have units",
        "# (s, min, h, d; MB, GB, TB; Gbit/s, GB/s); `cprsim schema` has every key and its unit.",
        f"name: {name}",
    ]


# ------------------------------------------------------------------------- the job and its nodes


def useful_h(answers: Answers) -> float:
    """As answered; else a week [h], or less where that has more failures or saves than needed."""
    if answers.useful_h is not None:
        return answers.useful_h
    interval_h, failures = answers.saves.interval_h, answers.failures
    bounds = [WEEK_H] if interval_h is None else [WEEK_H, MOST_SAVES * interval_h]
    if isinstance(failures, Rate):
        n_clocks = answers.nodes.total if failures.per_node else 1
        bounds.append(MOST_FAILURES * failures.mtbf_h / n_clocks)
    return max(min(bounds), 1 / 3600)


def _job(answers: Answers) -> list[str]:
    work = f"  useful: {TIME.format(useful_h(answers))}"
    mark = "given" if answers.useful_h else ASSUMED
    lines = ["job:", _line(work, f"{mark}; useful work at full speed, a time")]
    if answers.kind is JobKind.llm:
        lines.append(_assumed("  step: 10 s", "a training step at full speed, a time"))
    return lines


def _cluster(answers: Answers) -> list[str]:
    nodes = answers.nodes
    of_gpus = f" of {nodes.gpus} GPUs" if nodes.gpus else ""
    node_bytes = float(f"{_state_bytes(answers) / nodes.servers:.4g}")
    whole = f"{SIZE.format(float(f'{_state_bytes(answers):.4g}'))} in all"
    size = f"{'given' if answers.state_bytes else ASSUMED}: {whole}"
    if answers.kind is JobKind.llm:
        return [
            "cluster:",
            _line(f"  workers: {nodes.servers}", f"given; nodes{of_gpus}, each with its part"),
            _line(
                f"  state: {SIZE.format(node_bytes)}", f"{size}; on one node, with the optimizer's"
            ),
            _line("  # replicas: 8", "absent: each part of the state exists once; a count"),
            _assumed("  link: 400 Gbit/s", "of one node to the others, a bandwidth"),
            *_racks(),
        ]
    mark = "given" if nodes.split_known else f"{ASSUMED}, of {nodes.total} nodes that are given"
    return [
        "cluster:",
        _line(f"  trainers: {nodes.trainers}", f"{mark}; each with the dense model"),
        _line(f"  emb_ps: {nodes.servers}", f"{mark}; embedding servers, each with a shard"),
        _line(f"  shard_size: {SIZE.format(node_bytes)}", f"{size}; tables on one server, a size"),
        *_racks(),
    ]


def _state_bytes(answers: Answers) -> float:
    """Of the whole model."""
    guess = NODE_STATE_BYTES[answers.kind] * answers.nodes.servers
    return answers.state_bytes or guess


def _racks() -> list[str]:
    return [
        _assumed("  rack: 8", "neighbouring nodes that one failure may take, a count"),
        _line("  # spares: 4", "absent: a replacement is always free; a count"),
    ]


def _scopes() -> list[str]:
    lines = [f"  - {{name: {name}, share: {share:g}, reach: {name}}}" for name, share, _ in SCOPES]
    return [
        "scopes:  # what a failure takes, with its share: by publications, for you to correct",
        *(f"{line:50}  # {said}" for line, (_, _, said) in zip(lines, SCOPES, strict=True)),
    ]


def _storage(answers: Answers) -> list[str]:
    """The store's bandwidth; where nobody said it, a save moves the state in the time it takes."""
    per_h, mark = answers.storage_bytes_per_h, "given"
    if per_h is None:
        per_h = _state_bytes(answers) / (answers.saves.cost_h or SAVE_H)
        mark = f"{ASSUMED}, from the time of a save"
    text = f"storage: {{bandwidth: {float(f'{per_h / GBIT_PER_S:.3g}'):g} Gbit/s}}"
    return [_line(text, f"{mark}; shared by all nodes, a bandwidth")]


# ------------------------------------------------------------------------------------- failures


def _failures(answers: Answers) -> list[str]:
    match answers.failures:
        case FailuresSection(text, origin):
            return [f"# from {origin}: numbers and intervals are the fit's", text.rstrip("\n")]
        case Rate(mtbf_h, per_node):
            lifetime = f"family: exponential, mtbf: {TIME.format(mtbf_h)}"
            mark = f"given; the family is {ASSUMED}"
            return _clocks(answers.nodes, lifetime, mark, per_node=per_node)
    return _published(answers.nodes, preset(INSTEAD[answers.kind]))


def _published(nodes: Nodes, rate: FailurePreset) -> list[str]:
    """Failures of others, with their mark."""
    shape = "" if rate.shape is None else f", shape: {rate.shape:g}"
    lifetime = f"family: {rate.family}, mtbf: {rate.mean_h:.6g} h{shape}"
    lines = _clocks(nodes, lifetime, ASSUMED, per_node=rate.of == "node")
    source = f"# of `cprsim presets`: {rate.name} ({rate.mark}; {rate.source})"
    return [lines[0], f"  {source}", *lines[1:]]


def _clocks(nodes: Nodes, lifetime: str, mark: str, *, per_node: bool) -> list[str]:
    """One clock for the job, or one for each node; `lifetime` has keys and values."""
    if not per_node:
        return [
            _line("failures:", f"{mark}; mean time between failures of the job, a time"),
            *(f"  {part}" for part in ("kind: job", *lifetime.split(", "))),
            _assumed("  role: any", "each failure strikes one of the nodes, all alike"),
        ]
    return [
        _line("failures:", f"{mark}; mean time between failures of one node, a time"),
        "  kind: node",
        "  roles:",
        *(f"    {role}: {{{lifetime}}}" for role, n_nodes in _roles(nodes).items() if n_nodes),
    ]


def _roles(nodes: Nodes) -> dict[str, int]:
    return {nodes.stateful_role: nodes.servers, "trainer": nodes.trainers}


# ------------------------------------------------------------------------------ costs, recovery


def _costs(answers: Answers) -> list[str]:
    cost_h = answers.saves.cost_h
    instead = "transfer" if answers.storage_bytes_per_h else TIME.format(SAVE_H)
    cost, mark = (instead, ASSUMED) if cost_h is None else (TIME.format(cost_h), "given")
    load = instead if answers.storage_bytes_per_h else cost
    return [
        "costs:",
        _line(f"  save: {cost}", f"{mark}; how long a save stalls the job, a time"),
        _assumed(f"  load: {load}", "to load a checkpoint, a time, or `transfer` over the storage"),
        _assumed("  detect: 1 min", "until a failure is noticed, a time"),
        _assumed("  reschedule: 3 min", "until a replacement runs, a time"),
    ]


def _recovery(answers: Answers) -> list[str]:
    interval_h = answers.saves.interval_h
    lines = ["recovery:"]
    if interval_h is not None:
        every = TIME.format(interval_h)
        lines.append(f"  - {{strategy: full, name: today, interval: {every}}}  # given")
    lines.append(_line("  - full", "all go back to the last save; at Young's interval"))
    if answers.kind is JobKind.recommender:
        return [
            *lines,
            _line("  - partial", "the failed server alone goes back; it loses samples"),
            "  # as cheap as it gets where this portion of the samples may be lost:",
            _assumed("  - {strategy: cpr, target_pls: 0.05, assumed: true}", "a share of all"),
        ]
    if answers.nodes.servers > 1:
        odd = answers.nodes.servers % 2
        gemini = "{strategy: gemini, options: {placement: ring}}" if odd else "gemini"
        lines.append(_line(f"  - {gemini}", "copies in a peer's memory, as often as they fit"))
    return lines
