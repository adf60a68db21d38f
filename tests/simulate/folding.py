"""A check that logs, accounts and losses agree; the fold itself is `cprsim.folding`."""

from __future__ import annotations

import numpy as np

from cprsim.engines import with_parts
from cprsim.folding import FOLDED, cost_breakdown, shard_loss
from cprsim.records import CostBreakdown, EventLog
from cprsim.simulate.blocks import losses_of
from cprsim.simulate.job import Outcome

__all__ = ["FOLDED", "cost_breakdown", "require_agreement", "shard_loss"]


def require_agreement(
    log: EventLog, accounts: Outcome, parts: tuple[str, ...], useful_h: float, n_emb_ps: int
) -> None:
    """The log of one replication folds to what its engine has booked meanwhile.

    Parameters
    ----------
    parts : of the hours of the accounts
    """
    costs, losses = cost_breakdown(log, useful_h), shard_loss(log, n_emb_ps)
    booked = CostBreakdown(
        replication=log.replication[:1],
        finished=np.array([accounts.finished]),
        wall_h=np.array([accounts.wall_h]),
        useful_h=np.array([accounts.useful_h]),
        parts=parts,
        hours=np.array([accounts.hours]),
        n_failures=np.array([accounts.n_failures]),
        n_saves=np.array([accounts.n_saves]),
    )
    booked_columns = with_parts(booked, FOLDED).columns()
    for name, column in costs.columns().items():
        np.testing.assert_allclose(column, booked_columns[name], rtol=1e-9, atol=1e-9, err_msg=name)
    lost = losses_of(accounts, int(log.replication[0]))
    for name in lost.dtype.names or ():
        np.testing.assert_allclose(
            getattr(losses, name), lost[name], rtol=1e-9, atol=1e-9, err_msg=name
        )
