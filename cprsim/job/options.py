"""The options of recovery systems: each once, with its kind, default, meaning and bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import ge, gt, le, lt
from types import SimpleNamespace
from typing import Any, NamedTuple

from annotated_types import Ge, Gt, Interval

from cprsim.errors import ParameterError

Bound = Gt | Ge | Interval
POSITIVE, NOT_NEGATIVE, SHARE = Gt(0), Ge(0), Interval(ge=0, le=1)
SOME = Interval(gt=0, le=1)
UP_TO_ALL, IN_GROUPS = "between 2 and all nodes", "2 or more and a divisor of the nodes"
DIVISOR = "a divisor of the nodes"
BOUNDS_BY_NODES: dict[str, Callable[[float, int], bool]] = {  # in a role of so many nodes
    UP_TO_ALL: lambda value, n: 2 <= value <= n,
    IN_GROUPS: lambda value, n: value >= 2 and n % value == 0,
    DIVISOR: lambda value, n: value >= 1 and n % value == 0,
}
OF_KIND: dict[str, Bound] = {"time": NOT_NEGATIVE, "times": NOT_NEGATIVE, "share": SHARE}  # by kind
ENDS = {"gt": (gt, "above"), "ge": (ge, "at least"), "lt": (lt, "below"), "le": (le, "at most")}


class Option(NamedTuple):
    """Its kind, meaning, default (None: follows from the job) and bound.

    `needed`: an example of an option without a default, as a scenario writes it. `unknown`: no
    source has a figure; the default is the cheapest that it can be. `fact`: what of `JobProfile` is
    the default. The bound of a word is the words that it can be. The kind of records is their type.
    """

    kind: Any
    words: str
    default: Any = None
    bound: Bound | str | tuple[str, ...] = ""
    needed: Any = None
    unknown: bool = False
    fact: str = ""

    @property
    def meaning(self) -> str:
        """Its words, and whether it has to be given."""
        is_needed = self.needed is not None and self.default is None
        return self.words + ("; needed" if is_needed else "")


EVERY = "progress between saves; default: "
GROWS = "admission of returned nodes: `at once`, at the `next loss` or every such time; "
time, bandwidth, count, share, number, table, times, growth, word = (
    partial(Option, kind)
    for kind in (
        "time", "bandwidth", "count", "share", "number", "table", "times", "growth", "word",
    )
)  # fmt: skip
OPTIONS = {
    "interval": Option("rule", "progress between saves, or a rule", "never"),
    "target_pls": share("portion of lost samples that is accepted"),
    "sub_saves": Option("records", "how each interval is cut"),
    "every": time(f"{EVERY}Young's, no shorter than one is written", bound=POSITIVE),
    "remote_every": time(
        "progress between copies to the remote storage; default: as one is written",
        bound=POSITIVE,
    ),
    "backstop": time(
        f"{EVERY}Young's for the losses that copies or parity do not outlive", bound=POSITIVE,
    ),
    "snapshot": time(
        "of a copy to host memory; default: the stall of the job's saves", fact="snapshot_h",
    ),
    "persist": time(
        "of writing a whole save; default: the background of the job's saves", fact="persist_h",
    ),
    "window": time("of training that hides a snapshot; default: a step, if any"),
    "transfer": time(
        "of a node's state to the server; default: by the node's own link", fact="to_peer_h",
    ),
    "server": bandwidth(
        "of the servers with persistent memory, all nodes together", needed="400 Gbit/s",
    ),
    "other_paths": bandwidth(
        "of all paths together besides the remote storage's", needed="100 Gbit/s",
    ),
    "size": share("bytes of a save, as a share of the state's", 1.0, POSITIVE),
    "in_flight": count("saves in flight simultaneously; 2 to 4 (published)", 1, POSITIVE),
    "chain": word(
        "`intermittent`, `one-shot` or `consecutive`",
        "intermittent", ("intermittent", "one-shot", "consecutive"),
    ),
    "first": share("of the model, that an increment holds (secondary; a workload's)", 0.26),
    "growth": number(
        "exponent by which increments since a whole save grow (secondary)", 0.28, NOT_NEGATIVE,
    ),
    "bits": count(
        "of each value; default: by the failures expected, 2 to 8 (secondary)",
        bound=Interval(ge=1, le=32),
    ),
    "fraction": share("of the model, above the threshold", needed=0.3),
    "copies": count("nodes that hold each shard, its own included", 2, IN_GROUPS),
    "placement": word(
        "`group`: all of a group hold its shards; `ring`: the next machines do",
        "group", ("group", "ring"),
    ),
    "idle": time(
        "how long a machine's link is free in a step; default: all of it", bound=POSITIVE,
    ),
    "unique": share(
        "of a node's state, that no other node holds anyway; default: 1/6 (secondary) of a "
        "state that has replicas", bound=POSITIVE,
    ),
    "wake": time(
        "until a warm standby has taken a lost node's place; no figure known", 0.0, unknown=True,
    ),
    "pool_fraction": share(
        "of the hours of rescheduling in which the standbys are enough (secondary)",
        0.99, Interval(gt=0, lt=1),
    ),
    "disk": bandwidth("of a node's own disks or persistent memory", needed="10 GB/s"),
    "data": count("nodes of data in a group of the code, k (assumed)", 4, POSITIVE),
    "parity": count("nodes that a group of the code can lose, m (assumed)", 4, POSITIVE),
    "encoding": bandwidth("at which a node computes its share; default: encoding takes no time"),
    "experts": count("experts of each layer", bound=POSITIVE, needed=64),
    "saved_each": count("experts of each layer that a save holds", 1, POSITIVE),
    "expert_share": share("of the state's bytes, the experts'", 0.74 + 0.12),
    "group": count("nodes of a replica group; default: by the job's `cluster.replicas`"),
    "pipelines": count(
        "data-parallel pipelines; default: the job's `cluster.replicas`", bound=IN_GROUPS,
    ),
    "shadow_nodes": count("servers that shadow the job", needed=4),
    "tax": number(
        "hours added to each hour of work; no figure known", 0.0, NOT_NEGATIVE, unknown=True,
    ),
    "replay_speed": number("of a replay, relative to training; no figure known", 1.0, POSITIVE),
    "rebuild": time("until the lost data are rebuilt", needed="9 min"),
    "speed_meanwhile": share(
        "speed of the job during a rebuild; 0.87 to 0.93 in the paper (published)",
        0.9, SOME,
    ),
    "less": share("of a rebuild, what approximating samples saves; 0: none is (published)", 0.559),
    "readers": word("the role that holds the training data", "reader"),
    "model": word(
        "whose state goes back to the last save: `all` or the shards `struck`",
        "all", ("all", "struck"),
    ),
    "load": time("to load the rolled-back part, from the last save; default: the whole model's"),
    "reconfigure": time("stall when nodes leave or come back; no figure known", 0.0, unknown=True),
    "throughput": table(
        "samples per time with all units, with one fewer, and so on; default: in proportion",
    ),
    "unit_nodes": count("nodes that are left out together", 1, DIVISOR),
    "grows": growth(f"{GROWS}recalled", "at once"),
    "restart": time(
        "stall of a restart, the load included; default: the job's rescheduling and load",
    ),
    "restarts": times(
        "the same with one unit missing, with two and so on, instead of one `restart`",
    ),
    "stacked": count("shards that each group holds, r (assumed)", 3, UP_TO_ALL),
    "regroup": time("until a lost group is masked; no figure known", 0.0, unknown=True),
    "stall": time(
        "how long a failure stalls the job, detection included; 3 min are published", 0.05,
    ),
    "quorum": time("until those that are left agree; no figure known", 0.0, unknown=True),
    "speed": share("speed of the job without one of its n groups; default: (n - 1)/n"),
    "copy": time(
        "how long a group copies from its peers; default: a node's state by its link",
        fact="to_peer_h",
    ),
    "migrate": time(
        "stall of a migration; default: a node's state by its link", fact="to_peer_h",
    ),
    "downtime": time("of a change of places; around 20 s are published", 20 / 3600),
    "prepare": time(
        "of a standby in the background; default: a node's state by its link", fact="to_peer_h",
    ),
}  # fmt: skip


def options(keys: str, overrides: Mapping[str, Any]) -> dict[str, Option]:
    """The options with these keys; `overrides` has other defaults, or other options."""
    declared = {key: OPTIONS[key] for key in keys.split()}
    for key, override in overrides.items():
        if not isinstance(override, Option):
            override = OPTIONS[key]._replace(default=override, unknown=False)
        declared[key] = override
    return declared


class OptionValues(SimpleNamespace):
    """The options that are given and the defaults of all others, with the name of the entry.

    A default that is a fact of the job is asked for when it is needed, as the job may lack it.
    """

    def __init__(
        self, declared: Mapping[str, Option], settings: Mapping[str, Any], job: Any, name: str
    ) -> None:
        """Refuse values out of bounds."""
        values = {key: option.default for key, option in {**OPTIONS, **declared}.items()}
        values.update(settings)
        for key, option in declared.items():
            _require(key, option, values[key], job.n_nodes)
        facts = {
            key: option.fact
            for key, option in declared.items()
            if option.fact and values[key] is None
        }
        values = {key: value for key, value in values.items() if key not in facts}
        super().__init__(**values, name=name, job=job, facts=facts)

    def __getattr__(self, key: str) -> Any:
        try:
            return getattr(self.job, self.facts[key])
        except ParameterError as error:
            raise ParameterError(f"without `{key}` {error}") from error


def _require(key: str, option: Option, value: Any, n_nodes: int) -> None:
    bound = option.bound or OF_KIND.get(option.kind)
    if value is None:
        if option.needed is not None:
            raise ParameterError(f"give `{key}`, a {option.kind} ({option.words})")
    elif isinstance(bound, tuple):
        if value not in bound:
            choices = ", ".join(f"`{word}`" for word in bound)
            raise ParameterError(f"`{key}` is `{value}`; it must be one of {choices}")
    elif bound and (wrong := beyond(key, value, bound, n_nodes)):
        raise ParameterError(wrong)


def beyond(key: str, value: Any, bound: Bound | str, n_nodes: int = 0) -> str:
    """Return the error in a number or in one of several; empty if all are within the bound."""
    several = value if isinstance(value, tuple) else (value,)
    if isinstance(bound, str):
        fits = [BOUNDS_BY_NODES[bound](number, n_nodes) for number in several]
        words = f"{bound}, of which there are {n_nodes}"
    else:
        ends = _ends(bound).items()
        fits = [ENDS[name][0](number, end) for number in several for name, end in ends]
        words = words_of(bound)
    return "" if all(fits) else f"`{key}` is {value}; it must be {words}"


def words_of(bound: Bound) -> str:
    """``positive``, ``between 0 and 1``, ``above 0 and below 1``."""
    ends = _ends(bound)
    if ends in ({"gt": 0}, {"ge": 0}):
        return "positive" if "gt" in ends else "0 or more"
    if ends.keys() == {"ge", "le"}:
        return f"between {ends['ge']} and {ends['le']}"
    return " and ".join(f"{ENDS[name][1]} {end}" for name, end in ends.items())


def _ends(bound: Bound) -> dict[str, Any]:
    return {name: end for name in ENDS if (end := getattr(bound, name, None)) is not None}
