"""PRM: readers hold the training data under an erasure code, and rebuild what a lost one held.

A reader that fails has its part of the training data rebuilt from the code while the job waits, and
no model state goes back. PRM reads less for that, since it approximates some of the samples (PRM,
IWQoS 2022: 64.5 % less network and 55.9 % less time published, the rest of it recalled). Where any
other node is struck, the model goes back to its last save.

Assumptions: the readers are a role of the job, in `cluster.others`. Data that is rebuilt takes as
long for one reader as for several. Saves are the job's own, at Young's interval for all failures,
those of readers too.

Not modelled: what a rebuild takes of the network beside the job; saves of the readers' positions;
samples that were read and are read again.
"""

from __future__ import annotations

from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import Policy, Reverts, Rule, Stage, StageKind
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

WHOSE = {"all": Reverts.ALL, "struck": Reverts.STRUCK}


OPTIONS = options(
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


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    check(facts, o, name)
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


def check(facts: JobFacts, o: Any, name: str) -> None:
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


SYSTEM = System(
    "prm", "readers rebuild the training data that a lost one held, some of it approximated",
    "PRM (IWQoS 2022): savings published in its abstract, mechanism recalled",
    OPTIONS, plan, interval="every", family=Family.PARITY, cited="IWQoS'22",
    mark=Provenance.RECALLED, needs=(("rebuild", "9 min"),),
    not_counted="what approximated samples cost in accuracy is not priced",
)  # fmt: skip
