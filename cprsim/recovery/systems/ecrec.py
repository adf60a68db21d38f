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

from dataclasses import dataclass

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
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
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option


@dataclass(frozen=True, slots=True)
class EcrecOptions:
    """The code, what it costs all the time, and what a rebuild costs."""

    data: int = option(4, "count", "servers over which the rows of a stripe are spread, k")
    parity: int = option(1, "count", "servers of parity that a stripe has on top, m")
    tax: float = option(
        0.0,
        "number",
        "hours that updating the parity adds to each hour of work; no figure known",
        unknown=True,
    )
    speed_meanwhile: float = option(
        0.9, "share", "speed of the job during a rebuild; 0.87 to 0.93 in the paper (published)"
    )
    rebuild: float | None = option(
        None, "time", "how long a rebuild takes; default: k shards over the link of a server"
    )
    encoding: float | None = option(
        None, "bandwidth", "at which a server computes lost rows; default: no time beside the link"
    )
    backstop: float | None = option(
        None, "time", "progress between saves; default: Young's for the losses beyond the parity"
    )


def plan(facts: JobFacts, options: EcrecOptions, name: str) -> Policy:
    check(facts, options)
    stripe = Groups(options.data + options.parity, options.parity)
    rebuild = rebuilding(facts, options)
    down_h = facts.replaced_h + rebuild.mean_h
    every_h = pieces.backstop_h(facts, options.backstop, stripe, down_h, neighbours=True)
    rebuilt = pieces.restart(facts, Stage(StageKind.REBUILD, rebuild, blocks=False))
    meanwhile = options.speed_meanwhile
    return Policy(
        name,
        rules=(
            Rule(Reverts.NOBODY, rebuilt, needs=("parity",), speed_meanwhile=meanwhile),
            pieces.back_to_remote(facts),
        ),
        tiers=(Tier("parity", Medium.DEVICE, stripe, facts.role), pieces.remote_tier(facts)),
        captures=(pieces.remote_saves(facts, every_h),),
        tax=Tax(compute=options.tax, memory=options.parity / options.data),
    )


def rebuilding(facts: JobFacts, options: EcrecOptions) -> Constant:
    """How long lost rows take: k shards over the link, or to be computed where that is slower."""
    if options.rebuild is not None:
        return Constant(options.rebuild)
    read_h = facts.to_peer("ecrec without `rebuild`", options.data).mean_h
    if options.encoding is None:
        return Constant(read_h)
    read_bytes = options.data * facts.needed("state_bytes", "ecrec without `rebuild`")
    return Constant(max(read_h, read_bytes / options.encoding))


def check(facts: JobFacts, options: EcrecOptions) -> None:
    """Raise ParameterError for options out of range, and servers that make no stripes."""
    n, size = facts.n_nodes, options.data + options.parity
    if options.data < 1 or options.parity < 1:
        raise ParameterError(f"`data` and `parity` are {options.data} and {options.parity}; not <1")
    if n % size:
        raise ParameterError(
            f"{n} nodes of `{facts.role}` make no stripes of {options.data} + {options.parity}: "
            "give `data` and `parity` whose sum divides them"
        )
    if options.encoding is not None and options.rebuild is not None:
        raise ParameterError("`rebuild` and `encoding` both say how long a rebuild takes")
    if options.tax < 0.0:
        raise ParameterError(f"`tax` is {options.tax}; it can't be negative")
    if not 0.0 < options.speed_meanwhile <= 1.0:
        raise ParameterError(
            f"`speed_meanwhile` is {options.speed_meanwhile}; it must be above 0 and at most 1"
        )
    if options.backstop is not None and not options.backstop > 0.0:
        raise ParameterError(f"`backstop` is {options.backstop} h; it must be positive")


SYSTEM = System(
    name="ecrec",
    summary="parity of the embedding shards, up to date in every step; lost shards are rebuilt "
    "while the job goes on",
    source="Liu et al. 2021 and PVLDB 2023: mechanism and speed published; backstop assumed",
    options=EcrecOptions,
    plan=plan,
    interval="backstop",
    family=Family.PARITY,
    cited="PVLDB'23",
    mark=Provenance.PUBLISHED,
)
