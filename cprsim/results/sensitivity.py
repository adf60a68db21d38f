"""Which unknown input would change a decision: break-even of each, and joint draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, nan

import numpy as np

from cprsim.failures.sources import stream
from cprsim.files import Number
from cprsim.records import Floats
from cprsim.scenario.job import Values
from cprsim.scenario.reading import PRICES
from cprsim.scenario.yaml_text import Plain

N_DRAWS, N_PRICED_DRAWS = 16, 1000  # of all unknown inputs together
MOST_CONTENDERS = 6  # options that are tried at other values of what is unknown
WIDE = 5.0  # high over low, from which on values lie by factors

CostsOf = Callable[[Sequence[Mapping[str, Plain]]], Mapping[str, Floats]]
"""Of each option its costs under each of some changes of the scenario, (n_changes,)."""


@dataclass(frozen=True, slots=True)
class OptionFlip:
    """The value of an unknown input where another option becomes the cheapest; None: no value."""

    key: str
    unit: str
    low: float  # low, high: between which it lies, in `unit`
    high: float
    at: float | None
    becomes: str | None  # the option that is cheapest beyond `at`
    simulated: bool  # whether each value was simulated; else prices alone were changed


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What would make another option the cheapest."""

    flips: tuple[OptionFlip, ...]
    share: Number  # of the joint draws of all unknown inputs, in which it is the cheapest
    n_draws: int  # how many there were; 0 where nothing is unknown
    others: Mapping[str, int]  # how often other options were


def sensitivity(
    unknown: Mapping[str, Values], best: str, costs_of: CostsOf, seed: int
) -> Sensitivity:
    """What would make another option cheaper than the best."""
    flips = tuple(_flip(costs_of, key, values, best) for key, values in unknown.items())
    counted = _joint(costs_of, unknown, seed)
    n = counted.pop(best, 0)
    total = n + counted.total()
    return Sensitivity(flips, n / total if total else nan, total, dict(counted.most_common()))


def only_prices(all_changes: Sequence[Mapping[str, Plain]]) -> bool:
    """Whether nothing has to be simulated anew."""
    return all(key.startswith(PRICES) for changes in all_changes for key in changes)


def _flip(costs_of: CostsOf, key: str, values: Values, best: str) -> OptionFlip:
    """Where the best option stops to be the cheapest, nearest to where the input is now."""
    assert values.numbers is not None
    changes = [{key: value} for value in values.written]
    at, becomes = crossing(np.array(values.numbers), costs_of(changes), best)
    low, high = values.numbers[0], values.numbers[-1]
    return OptionFlip(key, values.unit, low, high, at, becomes, not only_prices(changes))


def crossing(x: Floats, costs: Mapping[str, Floats], best: str) -> tuple[float | None, str | None]:
    """Where another option becomes cheaper than the best, and which; None where none does.

    The costs lie on lines between the values. Where the best is cheapest in the middle of its
    values, the crossing that takes the least change from there counts.
    """
    lead = {name: costs[name] - costs[best] for name in costs if name != best}  # above 0: best is
    holds = np.all([gap >= 0 for gap in lead.values()], axis=0) if lead else np.ones(len(x), bool)
    if not holds.any():
        return float(x[0]), min(lead, key=lambda name: float(lead[name].min()))
    crossings: list[tuple[float, float, str]] = []
    for name, gap in lead.items():
        for left in np.nonzero((gap[:-1] >= 0) != (gap[1:] >= 0))[0].tolist():
            a, b = float(gap[left]), float(gap[left + 1])
            share = a / (a - b) if np.isfinite(a - b) else 0.5
            at = float(x[left] + share * (x[left + 1] - x[left]))
            crossings.append((abs(at - float(x[holds].mean())), at, name))
    return min(crossings)[1:] if crossings else (None, None)


def _joint(costs_of: CostsOf, unknown: Mapping[str, Values], seed: int) -> Counter[str]:
    """How often each option is the cheapest if all unknown inputs vary at once."""
    if not unknown:
        return Counter()
    n = N_PRICED_DRAWS if only_prices([dict.fromkeys(unknown, "")]) else N_DRAWS
    rng = stream(seed, 0, "fleet/unknown")
    drawn = {key: _between(values, evenly(rng, n)) for key, values in unknown.items()}
    costs = costs_of([{key: some[number] for key, some in drawn.items()} for number in range(n)])
    names, table = list(costs), np.array(list(costs.values()))
    return Counter(names[place] for place in table.argmin(axis=0).tolist())


def evenly(rng: np.random.Generator, n: int) -> Floats:
    """Draws that fill 0 to 1 evenly; of several parameters they are a Latin hypercube."""
    shares: Floats = (rng.permutation(n) + rng.random(n)) / n
    return shares


def _between(values: Values, shares: Floats) -> list[Plain]:
    """Values at shares of the way from the low to the high end, as a scenario says them."""
    assert values.numbers is not None
    low, high = values.numbers[0], values.numbers[-1]
    if low > 0 and high / low >= WIDE:
        numbers = [low * exp(share * log(high / low)) for share in shares.tolist()]
    else:
        numbers = [low + share * (high - low) for share in shares.tolist()]
    if all(isinstance(value, int) for value in values.written):
        return [round(value) for value in numbers]
    return [f"{value!r} {values.unit}" if values.unit else value for value in numbers]
