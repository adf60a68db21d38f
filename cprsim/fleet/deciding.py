"""What a fleet should do: the cheapest option, what it saves, and which input would reverse it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

import numpy as np

from cprsim.codec import Finite
from cprsim.errors import ParameterError, ScenarioError
from cprsim.estimate import Estimate
from cprsim.fleet.cells import priced
from cprsim.fleet.options import Option, OptionAxis, prices_of, run_options, saving, varied
from cprsim.records import Floats
from cprsim.scenario import LoadedScenario
from cprsim.scenario.sweep import Values, values_along
from cprsim.scenario.yaml_text import Plain
from cprsim.streams import stream
from cprsim.workers import Workers

MOST_CONTENDERS = 6  # options that are tried at other values of what is unknown
N_TRIED = 5  # values of an unknown input, where each needs a simulation
N_PRICED = 101  # likewise, where none does
N_DRAWS, N_PRICED_DRAWS = 16, 1000  # of all unknown inputs together
WIDE = 5.0  # high over low, from which on values lie by factors
PRICES = "prices."
FLEET = "fleet.unknown"


@dataclass(frozen=True, slots=True)
class OptionFlip:
    """At which value of an unknown input another option is the cheapest; None: at none of its own.

    Parameters
    ----------
    low, high : between which it lies, in `unit`
    becomes : the option that is cheapest beyond `at`
    simulated : whether each value was simulated; else prices alone were changed
    """

    key: str
    unit: str
    low: float
    high: float
    at: float | None
    becomes: str | None
    simulated: bool


@dataclass(frozen=True, slots=True)
class FleetDecision:
    """The cheapest option, beside the present one.

    Parameters
    ----------
    saves : what it costs less per month, in cents or node-hours
    share : of the joint draws of all unknown inputs, in which it is the cheapest
    n_draws : how many there were; 0 where nothing is unknown
    others : how often other options were
    n_left_out : options in which some jobs did not finish
    """

    best: str
    present: str
    saves: Estimate
    flips: tuple[OptionFlip, ...]
    share: Finite
    n_draws: int
    others: Mapping[str, int]
    n_left_out: int


def decide(
    loaded: LoadedScenario,
    options: Sequence[Option],
    axes: Sequence[OptionAxis],
    workers: Workers,
    on_progress: Callable[[int, int], None] | None = None,
) -> FleetDecision:
    """Recommend an option.

    Parameters
    ----------
    options : the present one first: the scenario's first strategy at its own values

    Raises
    ------
    ScenarioError : an unknown input that can't be varied
    ParameterError : there is no option in which all jobs finish
    """
    able = [one for one in options if one.finished]
    if not able:
        raise ParameterError("under no option do all jobs of the fleet finish: nothing to decide")
    best, present = min(able, key=lambda one: one.cost), options[0]
    unknown = _unknown(loaded, axes)
    few = contenders(able, best, present, axes)
    lab = _Lab(loaded, able, few, workers, on_progress)
    flips = tuple(_flip(lab, key, values, best) for key, values in unknown.items())
    n_draws, counted = _joint(lab, unknown)
    return FleetDecision(
        best=best.name,
        present=present.name,
        saves=saving(present, best) if present.finished else Estimate(float("nan")),
        flips=flips,
        share=counted[best.name] / n_draws if n_draws else float("nan"),
        n_draws=n_draws,
        others={name: n for name, n in counted.most_common() if name != best.name},
        n_left_out=len(options) - len(able),
    )


def contenders(
    able: Sequence[Option], best: Option, present: Option, axes: Sequence[OptionAxis]
) -> list[Option]:
    """The options that could be the cheapest if something were otherwise.

    The best, the present, the best of each strategy, and the neighbours of the best on each axis.
    """
    cheapest = sorted(able, key=lambda one: one.cost)
    firsts = {one.strategy: one for one in reversed(cheapest)}
    beside = [one for one in cheapest if _are_neighbours(one, best, axes)]
    found = {one.name: one for one in (best, present, *firsts.values(), *beside) if one in able}
    return list(found.values())[:MOST_CONTENDERS]


def _are_neighbours(one: Option, other: Option, axes: Sequence[OptionAxis]) -> bool:
    if one.strategy != other.strategy or not (one.where and other.where):
        return False
    steps = [
        abs(axis.values.written.index(one.where[axis.key])
            - axis.values.written.index(other.where[axis.key]))
        for axis in axes
    ]  # fmt: skip
    return sum(steps) == 1


# ------------------------------------------------------------------------------ what is unknown


def _unknown(loaded: LoadedScenario, axes: Sequence[OptionAxis]) -> dict[str, Values]:
    """The values to try of each unknown input."""
    fleet = loaded.scenario.fleet
    found = {}
    for key, entry in ({} if fleet is None else fleet.unknown).items():
        place = loaded.place(FLEET)
        if key in [axis.key for axis in axes]:
            message = "is varied by --over: what is chosen is not unknown"
            raise ScenarioError.at(place, message, key=f"{FLEET}.{key}")
        try:
            values = _values(key, str(entry.low), str(entry.high))
        except ParameterError as error:
            raise ScenarioError.at(place, f"low to high {error}", key=f"{FLEET}.{key}") from None
        if values.numbers is None:
            message = "is no quantity between low and high"
            raise ScenarioError.at(place, message, key=f"{FLEET}.{key}")
        found[key] = values
    return found


def _values(key: str, low: str, high: str) -> Values:
    """From the low to the high end; amounts of money keep their label."""
    if not key.startswith(PRICES):
        return values_along(f"{low}:{high}:lin{N_TRIED}")
    (least, label), (most, other) = _amount(low), _amount(high)
    if label != other:
        raise ParameterError(f"mixes `{label or 'no currency'}` and `{other or 'no currency'}`")
    values = values_along(f"{least}:{most}:lin{N_PRICED}")
    written = [f"{number!r} {label}".strip() for number in values.numbers or ()]
    return replace(values, written=tuple(written), unit=label)


def _amount(text: str) -> tuple[float, str]:
    number, _, label = text.strip().partition(" ")
    try:
        return float(number), label.strip()
    except ValueError:
        raise ParameterError("holds what is no price: write for example 2.50 USD") from None


class _Lab:
    """Finds out what options cost if inputs were otherwise."""

    def __init__(
        self,
        loaded: LoadedScenario,
        able: Sequence[Option],
        few: Sequence[Option],
        workers: Workers,
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self.loaded, self.able, self.few, self.workers = loaded, able, few, workers
        self.on_progress = on_progress
        self._strategies = [entry.name for entry in loaded.scenario.recovery]

    def costs(self, all_changes: Sequence[Mapping[str, Plain]]) -> dict[str, Floats]:
        """Cost of each option under each of some changes, (n_changes,); by simulation if need be.

        Where prices alone change, all options are priced anew; else the few are simulated.
        """
        if all(key.startswith(PRICES) for changes in all_changes for key in changes):
            scenarios = [varied(self.loaded, changes, "unknown") for changes in all_changes]
            prices = [prices_of(scenario) for scenario in scenarios]
            return {
                one.name: np.array(
                    [np.mean([priced(cell, p).cost for cell in one.cells]) for p in prices]
                )
                for one in self.able
            }
        points = [{**one.where, **changes} for changes in all_changes for one in self.few]
        numbers = [[self._strategies.index(one.strategy)] for _ in all_changes for one in self.few]
        ran = run_options(self.loaded, points, self.workers, "unknown", self.on_progress, numbers)
        costs = np.array([one.cost if one.finished else np.inf for one in ran])
        table = costs.reshape(len(all_changes), len(self.few))
        return {one.name: table[:, place] for place, one in enumerate(self.few)}


def _flip(lab: _Lab, key: str, values: Values, best: Option) -> OptionFlip:
    """Where the best option stops to be the cheapest, nearest to where the input is now."""
    assert values.numbers is not None
    costs = lab.costs([{key: value} for value in values.written])
    at, becomes = crossing(np.array(values.numbers), costs, best.name)
    return OptionFlip(
        key, values.unit, values.numbers[0], values.numbers[-1], at, becomes,
        not key.startswith(PRICES),
    )  # fmt: skip


def crossing(x: Floats, costs: Mapping[str, Floats], best: str) -> tuple[float | None, str | None]:
    """Where another option becomes cheaper than the best, and which; None where none does.

    The costs lie on lines between the values. Where the best is cheapest in the middle of its
    values, the crossing that takes the least change from there counts.
    """
    lead = {name: costs[name] - costs[best] for name in costs if name != best}  # above 0: best is
    found: list[tuple[float, float, str]] = []
    holds = np.all([one >= 0 for one in lead.values()], axis=0) if lead else np.ones(len(x), bool)
    if not holds.any():
        name = min(lead, key=lambda name: float(lead[name].min()))
        return float(x[0]), name
    middle = float(x[holds].mean())
    for name, gap in lead.items():
        for left in np.nonzero((gap[:-1] >= 0) != (gap[1:] >= 0))[0].tolist():
            a, b = float(gap[left]), float(gap[left + 1])
            share = a / (a - b) if np.isfinite(a - b) else 0.5
            at = float(x[left] + share * (x[left + 1] - x[left]))
            found.append((abs(at - middle), at, name))
    if not found:
        return None, None
    _, at, name = min(found)
    return at, name


def _joint(lab: _Lab, unknown: Mapping[str, Values]) -> tuple[int, Counter[str]]:
    """How often each option is the cheapest if all unknown inputs vary at once.

    A Latin hypercube: each input is uniform between its ends, or log-uniform where they are far
    apart, independently of the others.
    """
    counted: Counter[str] = Counter()
    if not unknown:
        return 0, counted
    n = N_PRICED_DRAWS if all(key.startswith(PRICES) for key in unknown) else N_DRAWS
    rng = stream(lab.loaded.scenario.simulation.seed, 0, "fleet/unknown")
    drawn = {
        key: _between(values, (rng.permutation(n) + rng.random(n)) / n)
        for key, values in unknown.items()
    }
    changes = [{key: some[number] for key, some in drawn.items()} for number in range(n)]
    costs = lab.costs(changes)
    names = list(costs)
    table = np.array([costs[name] for name in names])
    counted.update(names[place] for place in table.argmin(axis=0).tolist())
    return n, counted


def _between(values: Values, shares: Floats) -> list[Plain]:
    """Values at shares of the way from the low to the high end, as a scenario says them."""
    assert values.numbers is not None
    low, high = values.numbers[0], values.numbers[-1]
    if low > 0 and high / low >= WIDE:
        found = [low * exp(share * log(high / low)) for share in shares.tolist()]
    else:
        found = [low + share * (high - low) for share in shares.tolist()]
    if all(isinstance(value, int) for value in values.written):
        return [round(value) for value in found]
    return [f"{value!r} {values.unit}" if values.unit else value for value in found]


# ------------------------------------------------------------------------------ how many spares


@dataclass(frozen=True, slots=True)
class Knee:
    """How many spares are enough for one strategy, of the numbers that were tried."""

    strategy: str
    cheapest: float  # from here on one more costs more than it saves
    nobody_waits: float | None  # from here on; None: at none that was tried
    at_end: bool  # whether the cheapest is the last that was tried, so that more may be better


def knees(options: Sequence[Option], axes: Sequence[OptionAxis]) -> tuple[Knee, ...]:
    """The knee of each strategy's curve of spares, where spares are what is varied alone."""
    if len(axes) != 1 or axes[0].key != "fleet.spares":
        return ()
    numbers = axes[0].values.numbers or ()
    found = []
    for strategy in dict.fromkeys(one.strategy for one in options):
        mine = [one for one in options if one.strategy == strategy and one.where]
        curve = sorted(zip(mine, (_spares(one) for one in mine), strict=True), key=lambda p: p[1])
        able = [(one, n) for one, n in curve if one.finished]
        if not able:
            continue
        cheapest = min(able, key=lambda pair: pair[0].cost)[1]
        free = [n for one, n in able if one.statistic("wait_h").mean == 0.0]
        found.append(Knee(strategy, cheapest, min(free, default=None), cheapest == max(numbers)))
    return tuple(found)


def _spares(one: Option) -> float:
    value = one.where["fleet.spares"]
    assert isinstance(value, int | float)
    return float(value)
