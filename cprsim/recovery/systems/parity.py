"""Parity and codes: lost embedding rows, or training data, are rebuilt from what others hold.

ECRec: rows and optimiser state are striped over k servers with m of parity, which is updated in
every step. As long as no more than m servers of a stripe are down no state is reverted: once the
failure is detected and the server replaced the job goes on, slower, while the lost rows are
computed in the background from those of k others. A further loss in the stripe before that is done
takes the job back to its last save (Liu et al. 2021, ECRM; PVLDB 2023, ECRec: mechanism published
for m = 1).

Assumptions of ecrec: saves against further losses are no part of ECRec and are assumed here, at
Young's interval for losses of more than the parity: of single nodes, which strike all roles alike,
and of racks and of all, since the servers of a stripe are neighbours. A failure of another role's
node is charged a rebuild too: which rule holds does not depend on the role that is struck.

Not modelled of ecrec: rows that are asked for before they are rebuilt; what encoding takes of the
servers.

PRM: a reader that fails has its part of the training data rebuilt from the code while the job
waits, and no model state goes back. PRM reads less for that, since it approximates some of the
samples (PRM, IWQoS 2022: 64.5 % less network and 55.9 % less time published, the rest of it
recalled). Where any other node is struck, the model goes back to its last save.

Assumptions of prm: the readers are a role of the job, in `cluster.others`. Data that is rebuilt
takes as long for one reader as for several. Saves are the job's own, at Young's interval for all
failures, those of readers too.

Not modelled of prm: what a rebuild takes of the network beside the job; saves of the readers'
positions; samples that were read and are read again.
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

ECREC = options(
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


def ecrec(facts: JobFacts, o: Any, name: str) -> Policy:
    check_ecrec(facts, o)
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


def check_ecrec(facts: JobFacts, o: Any) -> None:
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


WHOSE = {"all": Reverts.ALL, "struck": Reverts.STRUCK}


PRM = options(
    "rebuild every",
    {
        "less": Option(
            0.559, "share", "of a rebuild, what approximating samples saves; 0: none is (published)"
        ),
        "readers": Option("reader", "word", "the role that holds the training data"),
        "model": Option(
            "all", "word", "whose state goes back to the last save: `all` or the shards `struck`"
        ),
        "load": Option(
            None, "time", "of what goes back, from the last save; default: of the whole model"
        ),
    },
)


def prm(facts: JobFacts, o: Any, name: str) -> Policy:
    check_prm(facts, o, name)
    rebuilt = Stage(StageKind.LOAD, Constant((1.0 - o.less) * o.rebuild))
    every_h = pieces.own_interval_h(facts, o.every, name)
    stages = pieces.restart(facts, pieces.LOAD)
    load = None if o.load is None else Constant(o.load)
    return Policy(
        name,
        rules=(
            Rule(Reverts.NOBODY, pieces.restart(facts, rebuilt), roles=(o.readers,)),
            Rule(WHOSE[o.model], stages, sources=(pieces.REMOTE,)),
        ),
        tiers=(pieces.remote_tier(facts, load),),
        captures=(pieces.remote_saves(facts, every_h),),
    )


def check_prm(facts: JobFacts, o: Any, name: str) -> None:
    """Raise ParameterError for options out of range, and a job without such readers."""
    roles = [role.name for role in facts.cluster.roles]
    if o.readers not in roles or o.readers == facts.role:
        raise ParameterError(
            f"{name} rebuilds the data of readers, and no other role of the job is called "
            f"`{o.readers}`: give `cluster.others`, as {{{o.readers}: 12}}"
        )
    if o.rebuild is None:
        raise ParameterError(f"{name} rebuilds a reader's data: give `rebuild`, a time")
    pieces.require_not_negative(name, rebuild=o.rebuild, load=o.load)
    if not 0.0 <= o.less <= 1.0:
        raise ParameterError(f"`less` of {name} is {o.less}; it lies between 0 and 1")
    if o.model not in WHOSE:
        raise ParameterError(f"`model` of {name} is `{o.model}`: say `all` or `struck`")


SYSTEMS = (
    System(
        "ecrec",
        "parity of the embedding shards, up to date in every step; lost shards are rebuilt while "
        "the job goes on",
        "Liu et al. 2021 and PVLDB 2023: mechanism and speed published; backstop assumed", ECREC,
        ecrec, interval="backstop", family=Family.PARITY, cited="PVLDB'23",
        mark=Provenance.PUBLISHED,
    ),
    System(
        "prm", "readers rebuild the training data that a lost one held, some of it approximated",
        "PRM (IWQoS 2022): savings published in its abstract, mechanism recalled", PRM, prm,
        interval="every", family=Family.PARITY, cited="IWQoS'22", mark=Provenance.RECALLED,
        needs=(("rebuild", "9 min"),),
        not_counted="what approximated samples cost in accuracy is not priced",
    ),
)  # fmt: skip
