"""Cost of one job in money, part by part, at the prices of the scenario in its folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite, isnan, nan
from pathlib import Path

from cprsim.errors import ResultError
from cprsim.job.policy import Medium, Policy, remote_share
from cprsim.job.records import STATE, Estimate
from cprsim.results.folder import SCENARIO, stored_scenario
from cprsim.results.metrics import parts_among, share_of
from cprsim.scenario.cluster import ClusterSection
from cprsim.scenario.failures import ANY
from cprsim.scenario.prices import (
    ACCURACY,
    GB,
    HOURS_PER_MONTH,
    Bill,
    Money,
    Prices,
    Usage,
    bill_of,
    carbon_kg,
    energy_kwh,
    mean_node_hour,
    to_cents,
)
from cprsim.scenario.schema import Scenario

USEFUL, OVERHEAD, SYSTEM, SPARE = "useful", "overhead", "system nodes", "spare"
AUC_LOSS = "auc_loss"


@dataclass(frozen=True, slots=True)
class JobUse:
    """Mean use of resources by one job."""

    useful_h: float
    overhead: Mapping[str, float]  # hours beside the useful ones, by part
    n_saves: float  # that it makes
    auc_loss: float | None = None  # expected; None: not known

    @property
    def wall_h(self) -> float:
        return self.useful_h + sum(self.overhead.values())


@dataclass(frozen=True, slots=True)
class Billed:
    """Cost of a strategy: one job, and a month, 730.5 h of useful work, with its energy."""

    job: Bill
    month: Bill
    energy_kwh: float | None  # a month; None: the power of a node is not given
    carbon_kg: float | None
    is_unpriced: bool = False  # it loses accuracy at an unknown price


@dataclass(frozen=True, slots=True)
class JobPrices:
    """Prices, those of spares among them, the nodes by role, spares, and the bytes of a save."""

    prices: Prices
    nodes: Mapping[str, int]
    state_bytes: float  # 0 where the scenario does not say
    n_spares: int = 0  # which stand as long as the job; 0 where one is always free

    @property
    def currency(self) -> str:
        """Label of the amounts; in words if the prices have no label."""
        return self.prices.label or "units of the prices"

    @property
    def node_hour(self) -> float:
        """Price of a node-hour, the mean over the job's nodes; 0 where it has none."""
        return mean_node_hour(self.prices, self.nodes) if self.prices.node_hour else 0.0

    def billed(self, policy: Policy, use: JobUse) -> Billed:
        """A line per part, in whole cents; a month has as many jobs as do its useful work."""
        prices, hours = self.prices, {USEFUL: use.useful_h, **use.overhead}

        def bill(n_jobs: float) -> tuple[Bill, Usage]:
            usage = usage_of(
                policy, self.nodes, self.state_bytes, use.useful_h, hours, use.n_saves, n_jobs
            )
            if spare_h := self.n_spares * n_jobs * use.wall_h:
                usage = replace(usage, node_h={**usage.node_h, SPARE: {SPARE: spare_h}})
            total = bill_of(prices, usage)
            if prices.auc_loss is not None and use.auc_loss is not None:
                lost = to_cents(Decimal(n_jobs * use.auc_loss * 1e4) * prices.auc_loss)
                total = replace(total, cents={**total.cents, ACCURACY: lost})
            return total, usage

        (job, _), (month, usage) = bill(1.0), bill(HOURS_PER_MONTH / use.useful_h)
        return Billed(
            job,
            month,
            energy_kwh(prices, usage) if prices.watts else None,
            carbon_kg(prices, usage),
            use.auc_loss is None
            and (prices.auc_loss is not None or policy.accuracy_model is not None),
        )


def usage_of(
    policy: Policy, nodes: Mapping[str, int], state_bytes: float, useful_h: float,
    hours: Mapping[str, float], n_saves: float, n_jobs: float,
) -> Usage:  # fmt: skip
    """What jobs of `useful_h` use, on `nodes` by role; each takes `hours`, by part."""
    node_h = {
        part: {role: n_jobs * n * part_h for role, n in nodes.items()}
        for part, part_h in hours.items()
    }
    wall_h = sum(hours.values())
    if policy.tax.nodes:  # more of the job's, by role
        times = n_jobs * policy.tax.nodes * wall_h / sum(nodes.values())
        node_h[SYSTEM] = {role: n * times for role, n in nodes.items()}
    share = 1.0 if policy.sub_saves is None else policy.sub_saves.bytes_share
    n_remote = n_saves * remote_share(policy, useful_h)
    kept_gb = n_jobs * state_bytes * mean_contents(policy, useful_h, n_remote) / GB
    written_gb = n_jobs * state_bytes * share * n_remote / GB
    return Usage(node_h, kept_gb * wall_h / HOURS_PER_MONTH, written_gb)


def mean_contents(policy: Policy, useful_h: float, n_saves: float) -> float:
    """Mean number of saves in storage over the job: the nth place is filled from save n on.

    The first counts from the start of the job.
    """
    if policy.interval_h >= useful_h:
        return 0.0
    kept = [tier.generations for tier in policy.tiers if tier.medium is Medium.REMOTE]
    return sum(max(0.0, 1.0 - n / max(n_saves, 1.0)) for n in range(max(kept, default=1)))


def prices_in(folder: Path) -> JobPrices | None:
    """The prices of the scenario of a results folder; None where it has none."""
    document = stored_scenario(folder)
    try:
        return prices_of(Scenario.model_validate(document)) if document.get("prices") else None
    except (ValueError, AttributeError) as error:
        raise ResultError(f"{folder / SCENARIO}: its prices can't be read: {error}") from None


def prices_of(scenario: Scenario) -> JobPrices | None:
    """The prices of a scenario, and what its job has; None where nothing has a price."""
    if scenario.prices is None or not scenario.prices.has_money:
        return None
    nodes = {role: n for role, n in scenario.n_nodes_of.items() if n and role not in (ANY, STATE)}
    prices, cluster = scenario.prices, scenario.cluster
    mean = Money(repr(mean_node_hour(prices, nodes)))  # of a spare, which draws no power
    node_hour = {SPARE: mean, **prices.node_hour} if prices.node_hour else {}
    watts = {SPARE: 0.0, **prices.watts} if prices.watts else {}
    prices = prices.model_copy(update={"node_hour": node_hour, "watts": watts})
    return JobPrices(prices, nodes, state_bytes_of(cluster), cluster.spares or 0)


def state_bytes_of(cluster: ClusterSection) -> float:
    """The state of a job, each part once, as saves write it; 0 where the scenario does not say."""
    on_all_nodes = (cluster.shard_bytes or 0.0) * sum(cluster.n_nodes_of_stateful.values())
    return on_all_nodes / cluster.replicas


Used = Mapping[str, tuple[Policy, JobUse]]  # by strategy


def use_of(useful_h: float, summary: Mapping[str, Estimate]) -> JobUse | None:
    """Resources that a job uses, from the means of a summary; None if a job does not finish."""
    if "overhead_fraction" not in summary or isnan(summary["overhead_fraction"].mean):
        return None
    shares = {part: summary[share_of(part)].mean for part in parts_among(summary)}
    parts = {part: useful_h * share for part, share in shares.items() if not isnan(share)}
    loss = summary.get(AUC_LOSS, Estimate(nan)).mean
    return JobUse(useful_h, parts, summary["saves"].mean, loss if isfinite(loss) else None)


def uses_of(
    policies: Iterable[Policy], summary: Mapping[str, Mapping[str, Estimate]], useful_h: float
) -> Used:
    """Resources that a job uses under each policy under which all jobs finish."""
    uses = ((policy, use_of(useful_h, summary[policy.name])) for policy in policies)
    return {policy.name: (policy, use) for policy, use in uses if use is not None}


def at_overhead(use: JobUse, share: float) -> JobUse:
    """The same job with another overhead, a share of useful time, as a single part."""
    return replace(use, overhead={OVERHEAD: share * use.useful_h})


Bills = Mapping[str, Billed]  # by strategy


def bills_of(prices: JobPrices | None, used: Used) -> Bills:
    """Bill of each strategy; empty without prices."""
    return {} if prices is None else {name: prices.billed(*of) for name, of in used.items()}


def summed(bills: Sequence[Billed], useful_h: Sequence[float]) -> Billed:
    """Total cost of several jobs, and of 730.5 h of their useful work."""
    parts = dict.fromkeys(part for billed in bills for part in billed.job.cents)
    cents = {part: sum(billed.job.cents.get(part, 0) for billed in bills) for part in parts}
    per_month = HOURS_PER_MONTH / sum(useful_h)
    month = {part: round(of * per_month) for part, of in cents.items()}
    shares = [of / sum(useful_h) for of in useful_h]
    currency = bills[0].job.currency
    return Billed(
        Bill(currency, cents),
        Bill(currency, month),
        _weighted([billed.energy_kwh for billed in bills], shares),
        _weighted([billed.carbon_kg for billed in bills], shares),
        any(billed.is_unpriced for billed in bills),
    )


def _weighted(values: Sequence[float | None], shares: Sequence[float]) -> float | None:
    stated = [value for value in values if value is not None]
    if len(stated) < len(values):
        return None
    return sum(value * share for value, share in zip(stated, shares, strict=True))


def comparable(bills: Bills) -> Bills:
    """Strategies without an unpriced loss, if there are any; others can't be compared."""
    return {name: billed for name, billed in bills.items() if not billed.is_unpriced} or bills


def cheapest_by_bill(bills: Bills) -> str:
    """The strategy that costs least a month, the first of several, of those that compare."""
    bills = comparable(bills)
    return min(bills, key=lambda name: bills[name].month.total_cents)
