"""ECRec: embedding servers hold a parity of each other's rows, and a lost shard is rebuilt from it.

Rows and optimiser state are striped over k servers with m of parity, which is updated in every
step. As long as no more than m servers of a stripe are down no state is reverted: once the failure
is detected and the server replaced the job goes on, slower, while the lost rows are computed in the
background from those of k others. A further loss in the stripe before that is done takes the job
back to its last save (Liu et al. 2021, ECRM; PVLDB 2023, ECRec: mechanism published for m = 1).

Assumptions: saves against further losses are no part of ECRec and are assumed here, at Young's
interval for losses of more than the parity: of single nodes, which strike all roles alike, and of
racks and of all, since the servers of a stripe are neighbours. A failure of another role's node is
charged a rebuild too: which rule holds does not depend on the role that is struck.

Not modelled: rows that are asked for before they are rebuilt; what encoding takes of the servers.
"""

from __future__ import annotations

from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import (
    Groups,
    Medium,
    Policy,
    Reverts,
    Rule,
    Stage,
    StageKind,
    Tax,
    Tier,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

OPTIONS = options(
    "data parity tax encoding backstop",
    {
        "speed_meanwhile": Option(
            0.9, "share", "speed of the job during a rebuild; 0.87 to 0.93 in the paper (published)"
        ),
        "rebuild": Option(
            None, "time", "how long a rebuild takes; default: k shards over the link of a server"
        ),
        "parity": Option(1, "count", "servers of parity that a stripe has on top, m"),
    },
)


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    check(facts, o)
    stripe = Groups(o.data + o.parity, o.parity)
    rebuild = rebuilding(facts, o)
    down_h = facts.replaced_h + rebuild.mean_h
    every_h = pieces.backstop_h(facts, o.backstop, stripe, down_h, neighbours=True)
    rebuilt = pieces.restart(facts, Stage(StageKind.REBUILD, rebuild, blocks=False))
    return pieces.backed(
        name,
        facts,
        Rule(Reverts.NOBODY, rebuilt, needs=("parity",), speed_meanwhile=o.speed_meanwhile),
        Tier("parity", Medium.DEVICE, stripe, facts.role),
        every_h,
        tax=Tax(compute=o.tax, memory=o.parity / o.data),
    )


def rebuilding(facts: JobFacts, o: Any) -> Constant:
    """How long lost rows take: k shards over the link, or to be computed where that is slower."""
    if o.rebuild is not None:
        return Constant(o.rebuild)
    read_h = facts.to_peer("ecrec without `rebuild`", o.data).mean_h
    if o.encoding is None:
        return Constant(read_h)
    read_bytes = o.data * facts.needed("state_bytes", "ecrec without `rebuild`")
    return Constant(max(read_h, read_bytes / o.encoding))


def check(facts: JobFacts, o: Any) -> None:
    """Raise ParameterError for options out of range, and servers that make no stripes."""
    n = facts.n_nodes
    if o.data < 1 or o.parity < 1:
        raise ParameterError(f"`data` and `parity` are {o.data} and {o.parity}; not <1")
    if n % (o.data + o.parity):
        raise ParameterError(
            f"{n} nodes of `{facts.role}` make no stripes of {o.data} + {o.parity}: "
            "give `data` and `parity` whose sum divides them"
        )
    if o.encoding is not None and o.rebuild is not None:
        raise ParameterError("`rebuild` and `encoding` both say how long a rebuild takes")
    pieces.require_not_negative("ecrec", tax=o.tax)
    pieces.require_positive("ecrec", backstop=o.backstop)
    if not 0.0 < o.speed_meanwhile <= 1.0:
        raise ParameterError(
            f"`speed_meanwhile` is {o.speed_meanwhile}; it must be above 0 and at most 1"
        )


SYSTEM = System(
    "ecrec",
    "parity of the embedding shards, up to date in every step; lost shards are rebuilt while the "
    "job goes on",
    "Liu et al. 2021 and PVLDB 2023: mechanism and speed published; backstop assumed",
    OPTIONS, plan, interval="backstop", family=Family.PARITY, cited="PVLDB'23",
    mark=Provenance.PUBLISHED,
)  # fmt: skip
