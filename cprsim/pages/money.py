"""Money: cost of a job, and of a month (730.5 h) of useful work, by strategy and part."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from cprsim.pages.document import Table
from cprsim.results.money import OVERHEAD, SPARE, USEFUL, Bills, comparable
from cprsim.results.words import significant
from cprsim.scenario.prices import ACCURACY, Bill, shown

UNPRICED = "not priced"
WORK = "730.5 h of work"  # useful work of a month; more of the cluster's hours


def with_spares(parts: Mapping[str, float]) -> str:
    """Words for a cost that includes spares, or no node at all."""
    if not parts.get(USEFUL):
        return " without nodes"
    return " with spares" if parts.get(SPARE) else ""


def unit_of(bills: Bills) -> str:
    """The currency of the amounts, or words for it if the prices name none."""
    return next((billed.job.currency for billed in bills.values()), "") or "units of the prices"


def bills_frame(bills: Bills) -> pd.DataFrame:
    """A row per strategy and part: cost of a job and of a month (730.5 h) of useful work."""
    rows = []
    for name, billed in bills.items():
        job = {**billed.job.cents, "total": billed.job.total_cents}
        month = {**billed.month.cents, "total": billed.month.total_cents}
        rows += [
            {"strategy": name, "part": part, "job_cost": job.get(part, 0) / 100,
             "month_cost": cents / 100, "currency": billed.job.currency}
            for part, cents in month.items()
        ]  # fmt: skip
    return pd.DataFrame(rows)


def money_tables(bills: Bills, of: str = "a job") -> list[Table]:
    """A row per strategy, the cheapest first, those that do not compare last; empty: no prices."""
    if not bills:
        return []
    compared, months = comparable(bills), {name: billed.month for name, billed in bills.items()}
    order = sorted(bills, key=lambda name: (name not in compared, months[name].total_cents))
    parts = dict.fromkeys(part for billed in bills.values() for part in billed.job.cents)
    cells = {part: [_cell(bills[name].job, part) for name in order] for part in parts}
    columns = {part: costs for part, costs in cells.items() if set(costs) != {"0.00"}}
    columns["total"] = [shown(bills[name].job.total_cents, "") for name in order]
    columns[f"per {WORK}"] = [shown(months[name].total_cents, "") for name in order]
    for heading, attribute in (("kWh", "energy_kwh"), ("kg of CO2", "carbon_kg")):
        values = [getattr(bills[name], attribute) for name in order]
        if None not in values:
            columns[f"{heading} per {WORK}"] = [significant(value) for value in values]
    rows = list(zip(order, *columns.values(), strict=True))
    caption = f"What {of} costs on average, in {unit_of(bills)}"
    return [Table(caption, ["strategy", *columns], rows)]


def _cell(bill: Bill, part: str) -> str:
    """The cost of a part; a loss of accuracy that is missing from the bill is unknown."""
    unknown = part == ACCURACY and part not in bill.cents
    return UNPRICED if unknown else shown(bill.cents.get(part, 0), "")


def cheapest(bills: Bills, by_overhead: str | None = None) -> str:
    """The cheapest strategy in total, and its saving per month over the next."""
    compared = comparable(bills)
    first, *others = sorted(
        compared, key=lambda name: (bills[name].month.total_cents, name != by_overhead)
    )
    counted = "" if all(ACCURACY in billed.job.cents for billed in compared.values()) else "not "
    least = bills[first].month
    sentence = (
        f"Cheapest in all, accuracy {counted}counted: {first}, "
        f"{shown(least.total_cents, least.currency)} per {WORK}{with_spares(least.cents)}"
    )
    if by_overhead in others:
        more = bills[by_overhead].month
        by_part = {part: cents - least.cents.get(part, 0) for part, cents in more.cents.items()}
        part = max(by_part, key=lambda part: by_part[part])
        costs = f"costs {_more(more, least)} more"
        sentence += (
            f"; {by_overhead}, which is recommended, {costs}"
            if part == OVERHEAD
            else f". By overhead it is {by_overhead}, which {costs} per {WORK}: "
            f"{part} alone costs {shown(by_part[part], least.currency)} more"
        )
    elif others := [n for n in others if bills[n].month.total_cents > least.total_cents]:
        sentence += f"; {others[0]} costs {_more(bills[others[0]].month, least)} more"
    unpriced = ", ".join(name for name in bills if name not in compared)
    if unpriced:
        sentence += f". Not compared in money: {unpriced}, whose loss of accuracy is {UNPRICED}"
    return f"{sentence}."


def _more(bill: Bill, least: Bill) -> str:
    return shown(bill.total_cents - least.total_cents, bill.currency)
