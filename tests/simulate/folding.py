"""A check that logs, accounts and losses agree; the fold itself is `cprsim.simulate.folding`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprsim.records import CostBreakdown, EventLog
from cprsim.simulate.blocks import losses_of, with_parts
from cprsim.simulate.folding import FOLDED, cost_breakdown, shard_loss
from cprsim.simulate.job import ReplicationOutcome

__all__ = ["FOLDED", "cost_breakdown", "require_agreement", "shard_loss"]


def require_agreement(
    log: EventLog,
    booked: Sequence[ReplicationOutcome],
    parts: tuple[str, ...],
    useful_h: float,
    n_emb_ps: int,
) -> None:
    """The log of one replication folds to what its engine has booked meanwhile, each time.

    Parameters
    ----------
    parts : of the hours of the accounts
    """
    costs, losses = cost_breakdown(log, useful_h), shard_loss(log, n_emb_ps)
    for accounts in booked:
        _require_costs(costs, accounts, parts)
        lost = losses_of(accounts, int(log.replication[0]))
        for name in lost.dtype.names or ():
            _require_close(getattr(losses, name), lost[name], name)


def _require_costs(
    costs: CostBreakdown, accounts: ReplicationOutcome, parts: tuple[str, ...]
) -> None:
    booked = CostBreakdown(
        replication=costs.replication,
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
        _require_close(column, booked_columns[name], name)


def _require_close(folded: NDArray[Any], booked: NDArray[Any], name: str) -> None:
    if folded.shape != booked.shape or not (folded == booked).all():  # most are the same bits
        np.testing.assert_allclose(folded, booked, rtol=1e-9, atol=1e-9, err_msg=name)
