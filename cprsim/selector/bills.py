"""What each candidate of a selection costs, at its best."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from cprsim.recovery.losses import strategy_key
from cprsim.results.money import OVERHEAD, Bills, JobPrices, JobUse, bills_of
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.limit import LimitedQuantity


def bills_of_selection(selection: Selection, prices: JobPrices | None) -> Bills:
    """The bill of each strategy at its best under which all jobs finish; none without prices."""
    used = {name: (one.policy, _use(selection, one)) for name, one in _finishing(selection)}
    return bills_of(prices, used)


def _finishing(selection: Selection) -> Iterator[tuple[str, Candidate]]:
    for name, one in {"full": selection.full, **selection.best}.items():
        if one is not None and one.finished_fraction == 1:
            yield name, one


def _use(selection: Selection, one: Candidate) -> JobUse:
    overhead = {OVERHEAD: one.overhead.mean * selection.useful_h}
    is_auc = selection.limit.quantity is LimitedQuantity.AUC and isfinite(one.loss.mean)
    known = 0.0 if strategy_key(one.policy) is None else None
    loss = one.loss.mean if is_auc and one.policy.leaves_stale else known
    return JobUse(selection.useful_h, overhead, one.n_saves, loss)
