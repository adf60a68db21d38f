"""The options of recovery systems: each once, with its kind, default, meaning and bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, make_dataclass
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

from cprsim.errors import ParameterError

Kind = Literal[
    "time", "size", "bandwidth", "count", "share", "number", "table", "times", "growth",
    "word", "records",
]  # fmt: skip
UP_TO_ALL, IN_GROUPS = "between 2 and all nodes", "2 or more and a divisor of the nodes"
BOUNDS: dict[str, Callable[[float, int], bool]] = {  # of values in a role of so many nodes
    "positive": lambda value, n: value > 0.0,
    "0 or more": lambda value, n: value >= 0.0,
    "between 0 and 1": lambda value, n: 0.0 <= value <= 1.0,
    "above 0 and at most 1": lambda value, n: 0.0 < value <= 1.0,
    "above 0 and below 1": lambda value, n: 0.0 < value < 1.0,
    "between 1 and 32": lambda value, n: 1 <= value <= 32,
    UP_TO_ALL: lambda value, n: 2 <= value <= n,
    IN_GROUPS: lambda value, n: value >= 2 and n % value == 0,
    "a divisor of the nodes": lambda value, n: value >= 1 and n % value == 0,
}
OF_KIND = {"time": "0 or more", "times": "0 or more", "share": "between 0 and 1"}  # without a bound


class Option(NamedTuple):
    """Its default (None: follows from the job), kind, meaning and bound.

    `needed`: it has no default. `unknown`: no source has a figure; the default is the cheapest
    that it can be. The bound of a word is the words that it can be.
    """

    default: Any
    kind: Kind
    words: str
    bound: str | tuple[str, ...] = ""
    needed: bool = False
    unknown: bool = False


EVERY = "progress between saves; default: "
GROWS = "when nodes that are back are taken in: `at once`, at the `next loss` or every such time; "
OPTIONS = {
    "every": Option(None, "time", f"{EVERY}Young's, no shorter than one is written", "positive"),
    "remote_every": Option(
        None, "time", "progress between copies to the remote storage; default: as one is written",
        "positive",
    ),
    "backstop": Option(
        None, "time", f"{EVERY}Young's for the losses that copies or parity do not outlive",
        "positive",
    ),
    "snapshot": Option(
        None, "time", "of a copy to host memory; default: the stall of the job's saves"
    ),
    "persist": Option(
        None, "time", "of writing a whole save; default: the background of the job's saves"
    ),
    "window": Option(None, "time", "of training that hides a snapshot; default: a step, if any"),
    "transfer": Option(
        None, "time", "of a node's state to the server; default: by the node's own link"
    ),
    "other_paths": Option(
        None, "bandwidth", "of all paths together besides the remote storage's", needed=True
    ),
    "size": Option(1.0, "share", "bytes of a save, as a share of the state's", "positive"),
    "in_flight": Option(1, "count", "saves on their way at once; 2 to 4 (published)", "positive"),
    "chain": Option(
        "intermittent", "word", "`intermittent`, `one-shot` or `consecutive`",
        ("intermittent", "one-shot", "consecutive"),
    ),
    "first": Option(
        0.26, "share", "of the model, that an increment holds (secondary; a workload's)"
    ),
    "growth": Option(
        0.28, "number", "exponent by which increments since a whole save grow (secondary)",
        "0 or more",
    ),
    "bits": Option(
        None, "count", "of each value; default: by the failures expected, 2 to 8 (secondary)",
        "between 1 and 32",
    ),
    "fraction": Option(None, "share", "of the model, above the threshold", needed=True),
    "copies": Option(2, "count", "nodes that hold each shard, its own included", IN_GROUPS),
    "placement": Option(
        "group", "word", "`group`: all of a group hold its shards; `ring`: the next machines do",
        ("group", "ring"),
    ),
    "idle": Option(
        None, "time", "how long a machine's link is free in a step; default: all of it", "positive"
    ),
    "unique": Option(
        None, "share", "of a node's state, that no other node holds anyway; default: 1/6 "
        "(secondary) of a state that has replicas", "positive",
    ),
    "wake": Option(
        0.0, "time", "until a warm standby has taken a lost node's place; no figure known",
        unknown=True,
    ),
    "pool_fraction": Option(
        0.99, "share", "of the hours of rescheduling in which the standbys are enough (secondary)",
        "above 0 and below 1",
    ),
    "disk": Option(None, "bandwidth", "of a node's own disks or persistent memory", needed=True),
    "data": Option(4, "count", "nodes of data in a group of the code, k (assumed)", "positive"),
    "parity": Option(
        4, "count", "nodes that a group of the code can lose, m (assumed)", "positive"
    ),
    "encoding": Option(
        None, "bandwidth", "at which a node computes its share; default: no time beside the link"
    ),
    "experts": Option(None, "count", "experts of each layer", "positive", needed=True),
    "saved_each": Option(1, "count", "experts of each layer that a save holds", "positive"),
    "expert_share": Option(0.74 + 0.12, "share", "of the state's bytes, the experts'"),
    "group": Option(
        None, "count", "nodes of a replica group; default: by the job's `cluster.replicas`"
    ),
    "pipelines": Option(
        None, "count", "data-parallel pipelines; default: the job's `cluster.replicas`", IN_GROUPS
    ),
    "shadow_nodes": Option(None, "count", "servers that shadow the job", needed=True),
    "tax": Option(
        0.0, "number", "hours added to each hour of work; no figure known", "0 or more",
        unknown=True,
    ),
    "replay_speed": Option(
        1.0, "number", "of a replay, relative to training; no figure known", "positive"
    ),
    "rebuild": Option(None, "time", "until what was lost is rebuilt", needed=True),
    "speed_meanwhile": Option(
        0.9, "share", "speed of the job during a rebuild; 0.87 to 0.93 in the paper (published)",
        "above 0 and at most 1",
    ),
    "less": Option(
        0.559, "share", "of a rebuild, what approximating samples saves; 0: none is (published)"
    ),
    "readers": Option("reader", "word", "the role that holds the training data"),
    "model": Option(
        "all", "word", "whose state goes back to the last save: `all` or the shards `struck`",
        ("all", "struck"),
    ),
    "load": Option(
        None, "time", "of what goes back, from the last save; default: of the whole model"
    ),
    "reconfigure": Option(
        0.0, "time", "stall when nodes leave or come back; no figure known", unknown=True
    ),
    "throughput": Option(
        None, "table",
        "samples per time with all units, with one fewer, and so on; default: in proportion",
    ),
    "unit_nodes": Option(1, "count", "nodes that are left out together", "a divisor of the nodes"),
    "grows": Option("at once", "growth", f"{GROWS}recalled"),
    "restart": Option(
        None, "time",
        "stall of a restart, the load included; default: the job's rescheduling and load",
    ),
    "restarts": Option(
        None, "times",
        "the same with one unit missing, with two and so on, instead of one `restart`",
    ),
    "stacked": Option(3, "count", "shards that each group holds, r (assumed)", UP_TO_ALL),
    "regroup": Option(0.0, "time", "until a lost group is masked; no figure known", unknown=True),
    "stall": Option(
        0.05, "time", "how long a failure stalls the job, detection included; 3 min are published"
    ),
    "quorum": Option(
        0.0, "time", "until those that are left agree; no figure known", unknown=True
    ),
    "speed": Option(
        None, "share", "speed of the job without one of its n groups; default: (n - 1)/n"
    ),
    "copy": Option(
        None, "time", "how long a group copies from its peers; default: a node's state by its link"
    ),
    "migrate": Option(None, "time", "stall of a migration; default: a node's state by its link"),
    "downtime": Option(20 / 3600, "time", "of a change of places; around 20 s are published"),
    "prepare": Option(
        None, "time", "of a standby beside the job; default: a node's state by its link"
    ),
}  # fmt: skip
TYPES: dict[str, Any] = {
    "count": int | None,
    "growth": float | str,
    "word": str,
    "table": tuple[float, ...] | None,
    "times": tuple[float, ...] | None,
}  # of values; else a number


def option(default: Any, kind: Kind, words: str, *, unknown: bool = False) -> Any:
    """A field of a system's options; see `Option`."""
    return _field(Option(default, kind, words, unknown=unknown))


def _field(one: Option) -> Any:
    words = one.words + ("; needed" if one.needed else "")
    metadata = {"kind": one.kind, "words": words, "unknown": one.unknown, "option": one}
    return field(default=one.default, metadata=metadata)


def options(keys: str, own: Mapping[str, Any]) -> type[Any]:
    """A record of the options with these keys; `own` has other defaults, or other options."""
    known = {key: OPTIONS[key] for key in keys.split()}
    for key, one in own.items():
        is_default = not isinstance(one, Option)
        known[key] = OPTIONS[key]._replace(default=one, unknown=False) if is_default else one
    made = [(key, TYPES.get(one.kind, float | None), _field(one)) for key, one in known.items()]
    return make_dataclass("Options", made, frozen=True, slots=True)


def checked(given: Any, name: str, n_nodes: int) -> SimpleNamespace:
    """The options that are given, and the defaults of all others; refuses what is out of bounds."""
    values = {key: one.default for key, one in OPTIONS.items()}
    for made in fields(given):
        value = values[made.name] = getattr(given, made.name)
        _require(name, made.name, made.metadata["option"], value, n_nodes)
    return SimpleNamespace(**values)


def _require(name: str, key: str, one: Option, value: Any, n_nodes: int) -> None:
    bound = one.bound or OF_KIND.get(one.kind)
    if value is None:
        if one.needed:
            raise ParameterError(f"{name}: give `{key}`, a {one.kind} ({one.words})")
    elif isinstance(bound, tuple):
        if value not in bound:
            known = ", ".join(f"`{word}`" for word in bound)
            raise ParameterError(f"`{key}` of {name} is `{value}`; it must be one of {known}")
    elif bound is not None:
        several = value if isinstance(value, tuple) else (value,)
        if not all(BOUNDS[bound](each, n_nodes) for each in several):
            of_how_many = f", of which there are {n_nodes}" if "nodes" in bound else ""
            raise ParameterError(f"`{key}` of {name} is {value}; it must be {bound}{of_how_many}")
