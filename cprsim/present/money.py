"""Money: what a job costs by strategy and part, and a month (730.5 h) of useful work."""

from __future__ import annotations

from collections.abc import Mapping

from cprsim.present.document import Column, Table
from cprsim.prices import ACCURACY, Bill, shown
from cprsim.records import RecoveryPolicy
from cprsim.results import Result
from cprsim.results.money import JobPrices, JobUse, prices_in, use_of

Used = Mapping[str, tuple[RecoveryPolicy, JobUse]]  # by strategy


def used_in(result: Result) -> Used:
    """What a job uses under each strategy of a result under which all jobs finish."""
    found = result.spreads()
    uses = {one.name: (one, use_of(result.useful_h, found[one.name])) for one in result.policies}
    return {name: (policy, use) for name, (policy, use) in uses.items() if use is not None}


def money_of(result: Result) -> list[Table]:
    """The bill of a result, where its scenario has prices."""
    prices, used = prices_in(result.path), used_in(result)
    return [] if prices is None or not used else [money_table(prices, used)]


def money_table(prices: JobPrices, used: Used) -> Table:
    """A row per part, a column per strategy; the last rows are the sum, and that of a month."""
    bills = {name: prices.bill(*of) for name, of in used.items()}
    monthly = [shown(prices.monthly(*of).total_cents, "") for of in used.values()]
    parts = dict.fromkeys(part for bill in bills.values() for part in bill.cents)
    rows = [
        (part, *(shown(bill.cents.get(part, 0), "") for bill in bills.values()))
        for part in parts
        if any(bill.cents.get(part) for bill in bills.values())
    ]
    totals = [shown(bill.total_cents, "") for bill in bills.values()]
    unit = prices.prices.currency or "units of the prices"
    return Table(
        caption=f"What a job costs on average, in {unit}, and a month: 730.5 h of useful work",
        columns=[Column(f"{unit} a job", is_number=False), *map(Column, bills)],
        rows=[*rows, ("total", *totals), ("a month", *monthly)],
        n_totals=2,
    )


def money_differences(a: Result, b: Result) -> list[Table]:
    """What a job and a month cost in two results, strategy by strategy."""
    both = prices_in(a.path), prices_in(b.path)
    if both[0] is None or both[1] is None:
        return []
    if both[0].prices.currency != both[1].prices.currency:
        return []
    bills = [_totals(prices, used_in(one)) for prices, one in zip(both, (a, b), strict=True)]
    unit = both[0].prices.currency or "units of the prices"
    rows = [
        (name, what, *(shown(cents, "") for cents in (x, y, y - x)))
        for name in bills[0]
        if name in bills[1]
        for what, x, y in zip(("a job", "a month"), bills[0][name], bills[1][name], strict=True)
    ]
    return [
        Table(
            caption=f"What it costs in all, in {unit}",
            columns=[
                Column("strategy", is_number=False),
                Column(f"{unit} for", is_number=False),
                *map(Column, ("A", "B", "B - A")),
            ],
            rows=rows,
            grouped=True,
        )
    ]


def _totals(prices: JobPrices | None, used: Used) -> dict[str, tuple[int, int]]:
    assert prices is not None, "only results with prices are compared"
    return {
        name: (prices.bill(*of).total_cents, prices.monthly(*of).total_cents)
        for name, of in used.items()
    }


def cheapest(prices: JobPrices, used: Used) -> str:
    """Which strategy is the cheapest in all, and what it saves per month beside the next."""
    totals = {name: prices.monthly(*of).total_cents for name, of in used.items()}
    first, *others = sorted(totals, key=lambda name: totals[name])
    counted = "accuracy counted" if _counts_accuracy(prices, used) else "accuracy not counted"
    said = f"Cheapest in all, {counted}: {first}, {_money(prices, totals[first])} a month"
    if not others:
        return f"{said}."
    return f"{said}; {others[0]} costs {_money(prices, totals[others[0]] - totals[first])} more."


def _counts_accuracy(prices: JobPrices, used: Used) -> bool:
    bills: list[Bill] = [prices.bill(*of) for of in used.values()]
    return all(ACCURACY in bill.cents for bill in bills)


def _money(prices: JobPrices, cents: int) -> str:
    return shown(cents, prices.prices.currency)
