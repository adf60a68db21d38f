"""The options of recovery systems: each once, with its default and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, make_dataclass
from typing import Any, Literal, NamedTuple

Kind = Literal[
    "time", "size", "bandwidth", "count", "share", "number", "table", "times", "growth",
    "word", "records",
]  # fmt: skip


class Option(NamedTuple):
    """Its default (None: follows from the job), its kind, and what it means.

    `unknown`: no source has a figure; the default is the cheapest that it can be.
    """

    default: Any
    kind: Kind
    words: str
    unknown: bool = False


EVERY = "progress between saves; default: "
GROUP = Option(None, "count", "nodes of a replica group; default: by the job's `cluster.replicas`")
GROWS = "when nodes that are back are taken in: `at once`, at the `next loss` or every such time; "
OPTIONS = {
    "every": Option(None, "time", f"{EVERY}Young's, no shorter than one is written"),
    "remote_every": Option(
        None, "time", "progress between copies to the remote storage; default: as one is written"
    ),
    "backstop": Option(
        None, "time", f"{EVERY}Young's for the losses that copies or parity do not outlive"
    ),
    "snapshot": Option(
        None, "time", "of a copy to host memory; default: the stall of the job's saves"
    ),
    "persist": Option(
        None, "time", "of writing a whole save; default: the background of the job's saves"
    ),
    "window": Option(None, "time", "of training that hides a snapshot; default: a step, if any"),
    "size": Option(1.0, "share", "bytes of a save, as a share of the state's"),
    "in_flight": Option(2, "count", "saves on their way at once; 2 to 4 (published)"),
    "copies": Option(2, "count", "nodes that hold each shard, its own included"),
    "group": GROUP,
    "pipelines": Option(
        None, "count", "data-parallel pipelines; default: the job's `cluster.replicas`"
    ),
    "data": Option(4, "count", "nodes of data in a group of the code, k (assumed)"),
    "parity": Option(4, "count", "nodes that a group of the code can lose, m (assumed)"),
    "encoding": Option(
        None, "bandwidth", "at which a node computes its share; default: no time beside the link"
    ),
    "disk": Option(None, "bandwidth", "of a node's own disks or persistent memory; needed"),
    "tax": Option(0.0, "number", "hours added to each hour of work; no figure known", True),
    "reconfigure": Option(
        0.0, "time", "stall when nodes leave or come back; no figure known", True
    ),
    "throughput": Option(
        None,
        "table",
        "samples per time with all units, with one fewer, and so on; default: in proportion",
    ),
    "unit_nodes": Option(1, "count", "nodes that are left out together"),
    "grows": Option("at once", "growth", f"{GROWS}recalled"),
    "copy": Option(
        None, "time", "how long a group copies from its peers; default: a node's state by its link"
    ),
    "rebuild": Option(None, "time", "until what was lost is rebuilt; needed"),
}
TYPES: dict[str, Any] = {
    "count": int | None,
    "growth": float | str,
    "word": str,
    "table": tuple[float, ...] | None,
    "times": tuple[float, ...] | None,
}  # of values; else a number


def option(default: Any, kind: Kind, words: str, *, unknown: bool = False) -> Any:
    """A field of a system's options; see `Option`."""
    return field(default=default, metadata={"kind": kind, "words": words, "unknown": unknown})


def options(keys: str, own: Mapping[str, Option] | None = None, **defaults: Any) -> type[Any]:
    """A record of the options with these keys, and of a system's own."""
    known = {key: OPTIONS[key] for key in keys.split()} | dict(own or {})
    known |= {key: known[key]._replace(default=to, unknown=False) for key, to in defaults.items()}
    made = [
        (key, TYPES.get(one.kind, float | None), option(*one[:3], unknown=one.unknown))
        for key, one in known.items()
    ]
    return make_dataclass("Options", made, frozen=True, slots=True)
