"""What one job comes to in money, part by part, at the prices of the scenario in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from cprsim.errors import ResultError
from cprsim.estimate import Estimate
from cprsim.prices import (
    ACCURACY,
    GB,
    HOURS_PER_MONTH,
    Bill,
    Prices,
    Usage,
    bill_of,
    mean_node_hour,
    to_cents,
    watts_of,
)
from cprsim.records import RecoveryPolicy
from cprsim.recovery.remote import remote_share
from cprsim.results.folder import SCENARIO
from cprsim.results.inputs import stored_scenario
from cprsim.results.metrics import parts_among
from cprsim.scenario.cluster import ClusterSection
from cprsim.scenario.failures import SYNC_PS, TRAINER
from cprsim.scenario.prices import PricesSection

USEFUL, OVERHEAD, SYSTEM = "useful", "overhead", "system nodes"
AUC_LOSS = "auc_loss"


@dataclass(frozen=True, slots=True)
class JobUse:
    """What one job uses on average.

    Parameters
    ----------
    overhead : hours beside the useful ones, by part
    n_saves : that it makes
    auc_loss : expected; None: not known, or none
    """

    useful_h: float
    overhead: Mapping[str, float]
    n_saves: float
    auc_loss: float | None = None

    @property
    def wall_h(self) -> float:
        return self.useful_h + sum(self.overhead.values())


@dataclass(frozen=True, slots=True)
class JobPrices:
    """Prices, and what they are paid for: nodes by role, and the bytes of a save."""

    prices: Prices
    nodes: Mapping[str, int]
    state_bytes: float  # 0 where the scenario does not say

    def bill(self, policy: RecoveryPolicy, use: JobUse) -> Bill:
        """Of one job: a line per part, in whole cents."""
        return self._bill(policy, use, 1.0)

    def monthly(self, policy: RecoveryPolicy, use: JobUse) -> Bill:
        """Of as many such jobs as do the useful work of a month, 730.5 h of it."""
        return self._bill(policy, use, HOURS_PER_MONTH / use.useful_h)

    def _bill(self, policy: RecoveryPolicy, use: JobUse, n_jobs: float) -> Bill:
        hours = {USEFUL: use.useful_h, **use.overhead}
        node_h = {
            part: {role: n_jobs * n * part_h for role, n in self.nodes.items()}
            for part, part_h in hours.items()
        }
        if policy.extra_nodes:
            node_h[SYSTEM] = {SYSTEM: n_jobs * policy.extra_nodes * use.wall_h}
        keeps = n_jobs * self.state_bytes / GB if policy.save_interval_h < use.useful_h else 0.0
        usage = Usage(
            node_h,
            keeps * use.wall_h / HOURS_PER_MONTH,
            n_jobs * use.n_saves * self._bytes_per_save(policy, use.useful_h) / GB,
        )
        bill = bill_of(self._with_system(), usage)
        price = self.prices.auc_loss
        if price is None or use.auc_loss is None:
            return bill
        lost = to_cents(Decimal(n_jobs * use.auc_loss * 1e4) * price)
        return replace(bill, cents={**bill.cents, ACCURACY: lost})

    def _bytes_per_save(self, policy: RecoveryPolicy, useful_h: float) -> float:
        share = 1.0 if policy.sub_saves is None else policy.sub_saves.bytes_share
        if policy.system is not None:
            share *= remote_share(policy.system, useful_h)
        return self.state_bytes * share

    def _with_system(self) -> Prices:
        """The same with the nodes that a recovery system takes: as those of the job on average."""
        n = sum(self.nodes.values())
        price = Decimal(repr(mean_node_hour(self.prices, self.nodes)))
        watts = sum(watts_of(self.prices, role) * of for role, of in self.nodes.items()) / n
        return replace(
            self.prices,
            node_hour={SYSTEM: price, **self.prices.node_hour},
            watts={SYSTEM: watts, **self.prices.watts} if self.prices.watts else {},
        )


def prices_in(folder: Path) -> JobPrices | None:
    """The prices of the scenario of a results folder; None where it has none.

    Raises ResultError where it can't be read.
    """
    try:
        return _prices(stored_scenario(folder))
    except (ValueError, AttributeError, KeyError, TypeError) as error:
        raise ResultError(f"{folder / SCENARIO}: its prices can't be read: {error}") from None


def _prices(document: Mapping[str, Any]) -> JobPrices | None:
    if not document.get("prices"):
        return None
    prices = PricesSection.model_validate(document["prices"]).record()
    if not prices.has_money:
        return None
    cluster = ClusterSection.model_validate(document["cluster"])
    roles = {**cluster.n_nodes_of_stateful, TRAINER: cluster.trainers, **cluster.others}
    n_sync = int((document.get("sync") or {}).get("servers") or 0)
    nodes = {role: n for role, n in {**roles, SYNC_PS: n_sync}.items() if n}
    held = sum(cluster.n_nodes_of_stateful.values())
    return JobPrices(prices, nodes, (cluster.shard_bytes or 0.0) * held)


def use_of(useful_h: float, summary: Mapping[str, Estimate]) -> JobUse | None:
    """What a job uses by the means of a summary; None where not all jobs finish."""
    if "overhead_fraction" not in summary or isnan(summary["overhead_fraction"].mean):
        return None
    shares = {part: summary[part].mean for part in parts_among(summary)}
    parts = {part: useful_h * share for part, share in shares.items() if not isnan(share)}
    loss = summary.get(AUC_LOSS)
    return JobUse(
        useful_h,
        parts,
        summary["saves"].mean,
        loss.mean if loss is not None and isfinite(loss.mean) else None,
    )
