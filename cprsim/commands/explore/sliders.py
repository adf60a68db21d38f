"""Sliders: the numbers of a scenario that can be moved alone, each with its unit and its range."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import inf
from typing import NamedTuple

from cprsim.errors import CprsimError, ParameterError, Place
from cprsim.files.units import DIMENSIONS, split_quantity, unit_factor
from cprsim.recovery.paper import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.identity import flat
from cprsim.results.words import hours
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import LoadedScenario, number_at, value_at
from cprsim.scenario.yaml_text import Plain

SECTIONS = (  # with numbers that decide what failures cost, in the order of the page
    "failures", "costs", "recovery", "cluster", "storage", "scopes", "silent", "planned", "job",
    "accuracy", "prices",
)  # fmt: skip
DEFAULTS, BY_HAND = "not in the file: defaults", "set by hand"
FACTORS = (8.0, 4.0, 2.0)  # from a value to an end of its range: the first that makes a scenario


class Slider(NamedTuple):
    """One number of the scenario: its value today, and its range."""

    key: str
    group: str  # heading under which the page shows it
    today: str | None = None  # as the scenario says it; empty: by a rule; None: the key is added
    rule: str = ""  # with its value today
    unit: str = ""  # of the numbers below
    number: float = 0.0
    low: float | None = None  # None: a field alone, without a slider
    high: float | None = None
    is_whole: bool = False


def sliders_of(loaded: LoadedScenario) -> dict[str, Slider]:
    """The sliders of a scenario by key: its numbers, intervals that rules decide, and defaults."""
    base, rows = loaded.varied({}, Place), dict[str, tuple[str, str, bool]]()
    filled = base.scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    for data in (loaded.data, filled):
        for key, _ in flat({section: data[section] for section in SECTIONS if section in data}):
            value = number_at(data, key)
            if value is not None and _takes(base, key, value, changes_nothing=True):
                rows.setdefault(key, (str(value), "", isinstance(value, int)))
    rows |= {key: (value, rule, False) for key, value, rule in _intervals(loaded)}
    found = list[Slider]()
    for key, (value, rule, is_whole) in rows.items():
        is_default = not rule and value_at(loaded.data, key) is None
        group = DEFAULTS if is_default else key.partition(".")[0]
        today, by_rule = ("", f"{rule}: {value}") if rule else (value, "")
        with suppress(ParameterError):  # it is no quantity
            unit, number, low, high = _range(base, key, value, is_whole)
            if low < high and "=" not in key:  # such a name would end the key of a `--set`
                found.append(Slider(key, group, today, by_rule, unit, number, low, high, is_whole))
    found.sort(key=lambda slider: [*SECTIONS, DEFAULTS].index(slider.group))
    return {slider.key: slider for slider in found}


def _takes(base: LoadedScenario, key: str, value: Plain, *, changes_nothing: bool = False) -> bool:
    """Whether a value makes a scenario at this key; the same one: then the key sets the number."""
    try:
        varied = base.varied({key: value}, Place)
    except CprsimError:
        return False
    return not changes_nothing or varied.scenario == base.scenario


def _intervals(loaded: LoadedScenario) -> Iterator[tuple[str, str, str]]:
    """Key, value today and rule of each interval that the scenario leaves to a rule."""
    for entry, policy in zip(loaded.scenario.recovery, assemble(loaded).policies, strict=True):
        option = SYSTEMS[entry.strategy].interval
        if option is None or isinstance(entry.interval, float) or option in (entry.options or {}):
            continue
        # of several tiers a user chooses how often the slowest is written
        tiers_h = [capture.every_h for capture in policy.captures if capture.every_h is not None]
        every_h = policy.interval_h if policy.from_cpr_paper else max(tiers_h, default=inf)
        if every_h < inf:
            below = option if entry.strategy in STRATEGIES else f"options.{option}"
            value = hours(every_h).replace(",", "")
            yield f"recovery.{entry.name}.{below}", value, policy.interval_rule


def _range(
    base: LoadedScenario, key: str, value: str, is_whole: bool
) -> tuple[str, float, float, float]:
    """Unit, number and both ends of its range. Raises ParameterError: it is no quantity."""
    exact, unit = split_quantity(value)
    number, unknown = float(exact), (base.scenario.unknown or {}).get(key)
    if unknown is not None:  # the scenario says the range
        ends = [split_quantity(str(end)) for end in (unknown.low, unknown.high)]
        low, high = (float(end * unit_factor(own, unit)) for end, own in ends)
        return unit, number, min(low, number), max(high, number)

    def first(*candidates: float) -> float:
        for end in candidates:
            at = max(1, round(end)) if is_whole else float(f"{end:.3g}")
            if _takes(base, key, f"{at:.15g} {unit}" if unit else at):
                return at
        return number

    if number:
        low = first(*(number / factor for factor in FACTORS))
        return unit, number, low, first(*(number * factor for factor in FACTORS))
    scales = [  # a zero has none: that of the least example of its quantity
        min(map(one.parse, one.examples)) / float(one.factors[unit])
        for one in DIMENSIONS if unit in one.factors
    ]  # fmt: skip
    return unit, number, number, first(*(factor * of for of in scales for factor in FACTORS))
