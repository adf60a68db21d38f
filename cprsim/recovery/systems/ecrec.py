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

from dataclasses import dataclass, replace
from math import comb

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery.intervals import young_h
from cprsim.recovery.pieces import for_whole_losses_h
from cprsim.recovery.policy import (
    Capture,
    Groups,
    Medium,
    Outside,
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
class Options:
    """The code, what it costs all the time, and what a rebuild costs."""

    data: int = option(4, "count", "servers over which the rows of a stripe are spread, k")
    parity: int = option(1, "count", "servers of parity that a stripe has on top, m")
    tax: float = option(
        0.0, "number", "hours that updating the parity adds to each hour of work; no figure known"
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


def plan(facts: JobFacts, options: Options, name: str) -> Policy:
    check(facts, options)
    size, tolerates = options.data + options.parity, options.parity
    rebuild = rebuilding(facts, options)
    every_h = options.backstop
    if every_h is None:
        every_h = backstop_h(facts, size, tolerates, replaced_h(facts) + rebuild.mean_h)
        every_h = for_whole_losses_h(facts, every_h, neighbours=True)
    replaced = (
        Stage(StageKind.DETECT),
        Stage(StageKind.WAIT),
        Stage(StageKind.RESCHEDULE, facts.reschedule),
    )
    rebuilt = Stage(StageKind.REBUILD, rebuild, blocks=False)
    return Policy(
        name,
        rules=(
            Rule(
                Reverts.NOBODY, (*replaced, rebuilt), needs=("parity",),
                speed_meanwhile=options.speed_meanwhile,
            ),
            Rule(Reverts.ALL, (*replaced, Stage(StageKind.LOAD)), sources=("remote",)),
        ),
        tiers=(
            Tier("parity", Medium.DEVICE, Groups(size, tolerates), facts.role),
            Tier("remote", Medium.REMOTE, Outside(), facts.role, facts.load),
        ),
        captures=(
            Capture(
                "remote", min(every_h, facts.useful_h), stall=facts.save_stall,
                background=facts.save_background,
            ),
        ),
        tax=Tax(compute=options.tax, memory=options.parity / options.data),
    )  # fmt: skip


def rebuilding(facts: JobFacts, options: Options) -> Constant:
    """How long lost rows take: k shards over the link, or to be computed where that is slower."""
    if options.rebuild is not None:
        return Constant(options.rebuild)
    read_h = facts.to_peer("ecrec without `rebuild`", options.data).mean_h
    if options.encoding is None:
        return Constant(read_h)
    read_bytes = options.data * facts.needed("state_bytes", "ecrec without `rebuild`")
    return Constant(max(read_h, read_bytes / options.encoding))


def check(facts: JobFacts, options: Options) -> None:
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


def replaced_h(facts: JobFacts) -> float:
    """From a failure until its node is replaced: the longest detection of all scopes [h]."""
    return max(scope.detect.mean_h for scope in facts.scopes) + facts.reschedule.mean_h


def backstop_h(facts: JobFacts, size: int, tolerates: int, down_h: float) -> float:
    """Young's interval for the failures that strike a group with `tolerates` members down [h].

    Notes
    -----
    Each of the others is down for a share ``q = down_h lambda/n`` of the time, n all nodes of the
    job, so that ``C(size - 1, tolerates) q^tolerates`` of the failures of the role meet that many.
    First order in q. Saves without a stall follow one another. Source: derived here.
    """
    p_down = min(1.0, down_h / (facts.mtbf_h * facts.cluster.n_nodes))
    share = facts.n_nodes / facts.cluster.n_nodes * comb(size - 1, tolerates) * p_down**tolerates
    if share == 0.0:
        return facts.useful_h  # no saves
    every_h = young_h(facts.save_stall.mean_h, facts.mtbf_h / share)
    if facts.save_background is not None:
        every_h = max(every_h, facts.save_background.mean_h)
    if every_h == 0.0:
        raise ParameterError("saves cost nothing, so no rule says how often: give `backstop`")
    return every_h


SYSTEM = System(
    name="ecrec",
    summary="parity of the embedding shards, up to date in every step; lost shards are rebuilt "
    "while the job goes on",
    source="Liu et al. 2021 and PVLDB 2023: mechanism and speed published; backstop assumed",
    options=Options,
    plan=plan,
    interval="backstop",
    family=Family.PARITY,
    cited="PVLDB'23",
    mark=Provenance.PUBLISHED,
)
SYSTEMS = (
    replace(
        SYSTEM,
        name="ecrm",
        summary="ecrec, as its preprint calls it",
        source="Liu et al. 2021",
        cited="preprint",
        alias_of="ecrec",
    ),
)
