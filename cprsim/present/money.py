"""Money: what a job costs by strategy and part, and a month (730.5 h) of useful work."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cprsim.files import finite_or_none
from cprsim.present.document import Block, Column, Table, Words, row_columns, word_columns
from cprsim.results import Result
from cprsim.results.money import SYSTEM, Billed, Bills, bills_in, cheapest_of, comparable
from cprsim.results.words import significant
from cprsim.scenario.prices import ACCURACY, ENERGY, STORAGE_KEPT, STORAGE_WRITTEN, Bill, shown

UNPRICED = "not priced"
MOST_ACROSS = 6  # strategies side by side; more have a row each
NO_HOURS = (ACCURACY, SYSTEM, STORAGE_KEPT, STORAGE_WRITTEN, ENERGY)  # parts of a bill
WORK = "730.5 h of work"  # useful work of a month; more of the cluster's hours
MONTH = "730.5 h of useful work, a month's"


def unit_of(bills: Bills) -> str:
    """The label of the amounts, in words where there is none."""
    return next((one.job.currency for one in bills.values()), "") or "units of the prices"


def money_sentences(result: Result) -> list[str]:
    """Which strategy is the cheapest in all, where its scenario has prices."""
    bills = bills_in(result)
    return [cheapest(bills)] if bills and comparable(bills) else not_compared(bills)


def bills_frame(bills: Bills) -> pd.DataFrame:
    """A row per strategy and part: what a job and a month of useful work (730.5 h) cost."""
    rows = []
    for name, one in bills.items():
        job = {**one.job.cents, "total": one.job.total_cents}
        month = {**one.month.cents, "total": one.month.total_cents}
        rows += [
            {"strategy": name, "part": part, "job_cost": job.get(part, 0) / 100,
             "month_cost": cents / 100, "currency": one.job.currency}
            for part, cents in month.items()
        ]  # fmt: skip
    return pd.DataFrame(rows)


def money_section(result: Result) -> list[Block]:
    """The same for a page: of a job, and of a month."""
    bills = bills_in(result)
    if not bills:
        return []
    months = [month_table(bills)] if len(bills) <= MOST_ACROSS else []
    return [money_table(bills), *months, *_careful(bills)]


def _careful(bills: Bills) -> list[Block]:
    warnings = not_compared(bills)
    return [Words(warnings)] if warnings else []


def money_table(bills: Bills, of: str = "a job") -> Table:
    """A row per part, a column per strategy; the last rows are the sum, and what a month takes."""
    unit, found = unit_of(bills), list(bills.values())
    if len(found) > MOST_ACROSS:
        return _row_each(bills, of)
    totals = [
        ("total", *(shown(one.job.total_cents, "") for one in found)),
        (f"per {WORK}", *(shown(one.month.total_cents, "") for one in found)),
        *_energy(found),
    ]
    return Table(
        caption=f"What {of} costs on average, in {unit}, and {MONTH}",
        columns=row_columns(f"{unit} {of}", *bills),
        rows=[*_parts([one.job for one in found]), *totals],
        n_totals=len(totals),
    )


def _row_each(bills: Bills, of: str) -> Table:
    """A row per strategy, the cheapest first, those that do not compare last; hours in the sum."""
    unit, compared = unit_of(bills), comparable(bills)
    there = {part for one in bills.values() for part in one.job.cents if one.job.cents[part]}
    beside = [part for part in NO_HOURS if part in there]
    order = sorted(bills, key=lambda name: (name not in compared, bills[name].month.total_cents))
    totals = [(name, bills[name].job, bills[name].month.total_cents) for name in order]
    return Table(
        caption=f"What {of} costs on average, in {unit}, and {MONTH}",
        columns=[
            Column(f"{unit} {of}", is_number=False, brief=f"{unit}\n{of}"),
            Column("total"),
            Column(f"per {WORK}", brief="per 730.5 h\nof work"),
            *(Column(f"of it {name}", brief=f"of it\n{name}") for name in beside),
        ],
        rows=[
            (name, shown(job.total_cents, ""), shown(month, ""), *(_cell(job, p) for p in beside))
            for name, job, month in totals
        ],
    )


def month_table(bills: Bills) -> Table:
    """The parts of a month, and their sum."""
    unit, months = unit_of(bills), [one.month for one in bills.values()]
    total = ("total", *(shown(one.total_cents, "") for one in months))
    return Table(
        caption=f"What {MONTH} costs on average, in {unit}",
        columns=row_columns(f"{unit} per {WORK}", *bills),
        rows=[*_parts(months), total],
        n_totals=1,
    )


def _parts(bills: list[Bill]) -> list[tuple[str, ...]]:
    """A row for each part that costs anything."""
    parts = dict.fromkeys(part for bill in bills for part in bill.cents)
    return [
        (part, *(_cell(bill, part) for bill in bills))
        for part in parts
        if any(bill.cents.get(part) or _cell(bill, part) == UNPRICED for bill in bills)
    ]


def _cell(bill: Bill, part: str) -> str:
    """What a part costs; a loss of accuracy that some bills have and this one not is not known."""
    if part == ACCURACY and part not in bill.cents:
        return UNPRICED
    return shown(bill.cents.get(part, 0), "")


def _energy(found: list[Billed]) -> list[tuple[str, ...]]:
    rows = {
        f"kWh per {WORK}": [one.energy_kwh for one in found],
        f"kg of CO2 per {WORK}": [one.carbon_kg for one in found],
    }
    return [
        (name, *(significant(value) for value in values if value is not None))
        for name, values in rows.items()
        if None not in values
    ]


def money_differences(a: Result, b: Result) -> list[Table]:
    """What a job and a month cost in two results, strategy by strategy."""
    bills = bills_in(a), bills_in(b)
    if not all(bills) or unit_of(bills[0]) != unit_of(bills[1]):
        return []
    rows = [
        (name, what, *(shown(cents, "") for cents in (x, y, y - x)))
        for name, of_a in bills[0].items()
        if (of_b := bills[1].get(name)) is not None
        for what, x, y in (
            ("a job", of_a.job.total_cents, of_b.job.total_cents),
            (f"{WORK}", of_a.month.total_cents, of_b.month.total_cents),
        )
    ]
    unit = unit_of(bills[0])
    return [
        Table(
            caption=f"What it costs in all, in {unit}",
            columns=[
                *word_columns("strategy", f"{unit} for"),
                *map(Column, ("A", "B", "B - A")),
            ],
            rows=rows,
            grouped=True,
        )
    ]


def cheapest(bills: Bills, by_overhead: str | None = None) -> str:
    """Which strategy is the cheapest in all, and what it saves per month beside the next."""
    compared = comparable(bills)
    first, *others = sorted(compared, key=lambda name: bills[name].month.total_cents)
    counted = all(ACCURACY in one.job.cents for one in compared.values())
    words = "accuracy counted" if counted else "accuracy not counted"
    sentence = f"Cheapest in all, {words}: {first}, {_amount(bills[first].month)} per {WORK}"
    if by_overhead is not None and by_overhead in others:
        sentence = (
            f"{sentence}. By overhead it is {by_overhead}, {_why_more(bills, by_overhead, first)}"
        )
    elif others:
        sentence = f"{sentence}; {others[0]} costs {_more(bills, others[0], first)} more"
    return " ".join([f"{sentence}.", *not_compared(bills)])


def not_compared(bills: Bills) -> list[str]:
    """Which strategies are not taken for the cheapest: what they lose of accuracy is not priced."""
    others = [name for name in bills if name not in comparable(bills)]
    if not others:
        return []
    return [f"Not compared in money: {', '.join(others)}, whose loss of accuracy is {UNPRICED}."]


def _why_more(bills: Bills, name: str, first: str) -> str:
    """``which costs 12.00 USD more a month: 20.00 USD of it are storage written``."""
    a, b = bills[name].month.cents, bills[first].month.cents
    more = {part: a.get(part, 0) - b.get(part, 0) for part in {**a, **b}}
    part = max(more, key=lambda part: more[part])
    most = shown(more[part], bills[name].month.currency)
    return (
        f"which costs {_more(bills, name, first)} more per {WORK}: the part `{part}` alone "
        f"costs {most} more"
    )


def _more(bills: Bills, name: str, first: str) -> str:
    cents = bills[name].month.total_cents - bills[first].month.total_cents
    return shown(cents, bills[name].month.currency)


def _amount(bill: Bill) -> str:
    return shown(bill.total_cents, bill.currency)


# ------------------------------------------------------------------------------ for scripts


def bills_as_json(bills: Bills) -> dict[str, Any]:
    """The keys of an object that say what it costs; none where nothing has a price."""
    if not bills:
        return {}
    costs = {name: _billed_as_json(one) for name, one in bills.items()}
    label = next(iter(bills.values())).job.currency
    return {"money": {"currency": label, "cheapest": cheapest_of(bills), "costs": costs}}


def money_of_two_as_json(a: Result, b: Result) -> dict[str, Any]:
    """The same of two results that are compared."""
    both = {"a": bills_as_json(bills_in(a)), "b": bills_as_json(bills_in(b))}
    return (
        {"money": {name: one["money"] for name, one in both.items()}} if all(both.values()) else {}
    )


def _billed_as_json(one: Billed) -> dict[str, Any]:
    return {
        "job": _bill_as_json(one.job),
        "month": _bill_as_json(one.month),
        "energy_kwh_per_month": None if one.energy_kwh is None else finite_or_none(one.energy_kwh),
        "carbon_kg_per_month": None if one.carbon_kg is None else finite_or_none(one.carbon_kg),
    }


def _bill_as_json(bill: Bill) -> dict[str, Any]:
    return {"cents": dict(bill.cents), "total_cents": bill.total_cents}
