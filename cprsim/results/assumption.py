"""The assumed or recalled input on which an answer turns most: each tried alone, at other values.

All are tried on the same failures, on one job. How far an input moves the answer is the greater of
two shares of useful time: by how much the least overhead changes, and what the present choice then
costs more than another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, cast

import numpy as np

from cprsim.errors import CprsimError, Place, watch
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.pipeline import Outcome, simulate
from cprsim.files import Endless
from cprsim.records import Estimate, Floats
from cprsim.recovery.intervals import WORTH_NO_SAVES, n_saves_due
from cprsim.recovery.policy import Policy
from cprsim.results.identity import failures_digest
from cprsim.scenario.first import times
from cprsim.scenario.reading import LoadedScenario, number_at
from cprsim.scenario.yaml_text import Plain, read_yaml

# An assumed number is tried at a third and at three times: published failure rates of clusters that
# are alike differ by nearly as much (`failures/presets.py`).
TIMES = 3.0
N_REPLICATIONS = 200  # of each value
MOST_CONTENDERS = 4  # of many systems, those that are tried
WITHOUT = "none"  # what is tried in place of a scope's share
Overheads = Mapping[str, Floats]  # of each replication, by strategy; infinite: it did not finish


@dataclass(frozen=True, slots=True)
class Assumption:
    """An input that is assumed or recalled, and the answer at another value of it."""

    key: str
    mark: str
    value: str  # as the scenario says it
    tried: str  # `WITHOUT`: such failures are left out
    overhead: Endless  # of the choice, as a share of useful time
    overhead_tried: Endless  # the least, at the other value
    choice: str
    choice_tried: str  # the same unless another surely costs less


def decisive_assumption(
    loaded: LoadedScenario, choice: str, entries: Mapping[str, str] | None = None
) -> Assumption | None:
    """The marked input that moves a choice or its overhead most; None where none moves it.

    `entries` are the strategies compared, as a scenario lists them; None: the scenario's.
    """
    marks, found = loaded.scenario.marks or {}, list[tuple[float, Assumption]]()
    if not marks:
        return None
    fixed: dict[str, Plain] = {
        "simulation.replications": min(
            loaded.scenario.simulation.replications or N_REPLICATIONS, N_REPLICATIONS
        ),
        "simulation.precision": None,
        "fleet": None,
    }
    if entries is not None:
        text = "\n".join(["recovery:", *(f"  - {entry}" for entry in entries.values())])
        fixed["recovery"] = cast(dict[str, Plain], read_yaml(text, loaded.path)[0])["recovery"]
    present, others = _experiments(loaded, fixed, list(marks))
    with watch.progress("assumed inputs") as on_progress:
        now = _overheads(simulate(present, keep_losses=False))
        overhead = _means(now)[choice]
        # what costs less already, and is not the choice, is none for another reason
        may_be = [name for name, mean in _means(now).items() if name == choice or mean >= overhead]
        for done, (key, value, tried, experiment) in enumerate(others, start=1):
            all_then = _overheads(simulate(experiment, keep_losses=False))
            then = {name: all_then[name] for name in may_be}
            cheapest, best = _cheapest(then)
            stays = not Estimate.of_mean(_difference(then, choice, cheapest)).low > 0
            moved = max(abs(best - overhead), _means(then)[choice] - best)
            found.append((moved, Assumption(
                key, marks[key], value, tried, overhead, best, choice, choice if stays else cheapest
            )))  # fmt: skip
            on_progress(done, len(others))
    moved, most = max(found, key=lambda one: one[0], default=(0.0, None))
    return most if moved > 0 else None


def _experiments(
    loaded: LoadedScenario, fixed: Mapping[str, Plain], keys: Sequence[str]
) -> tuple[Experiment, list[tuple[str, str, str, Experiment]]]:
    """The present experiment, and each that differs from it: key, its value, the one tried."""

    def varied(changes: Mapping[str, Plain]) -> tuple[Experiment, str]:
        changed = loaded.varied({**fixed, **changes}, lambda key: Place(f"marks {key}"))
        return assemble(changed), failures_digest(changed)

    def decided_by(experiment: Experiment, failures: str) -> tuple[Any, ...]:
        return experiment.policies, experiment.cluster, experiment.scopes, failures

    present, others = varied({}), list[tuple[str, str, str, Experiment]]()
    for key in keys:
        for value, tried, changes in _other_values(loaded, key):
            try:
                changed = varied(changes)
            except CprsimError:
                continue  # no such job can be
            if decided_by(*changed) != decided_by(*present):
                others.append((key, value, tried, changed[0]))
    return present[0], others


def _other_values(
    loaded: LoadedScenario, key: str
) -> Iterator[tuple[str, str, Mapping[str, Plain]]]:
    """A value as written, another that is tried, and what changes with it."""
    value = number_at(loaded.data, key)
    section, *names = key.split(".")
    if value is None:
        return
    if section == "scopes" and names[-1:] == ["share"]:
        rest = [
            dict(cast(dict[str, Any], scope)) for scope in cast(list[Plain], loaded.data[section])
        ]
        shares = {scope.name: scope.share or 0.0 for scope in loaded.scenario.scopes}
        share = shares.pop(".".join(names[:-1]))
        if sum(shares.values()) > 0:
            kept = [scope for scope in rest if scope["name"] in shares]
            for scope in kept:
                if shares[scope["name"]]:
                    scope["share"] = shares[scope["name"]] / (1.0 - share)
            yield str(value), WITHOUT, {section: cast(Plain, kept)}
        return
    unknown = (loaded.scenario.unknown or {}).get(key)
    ends = [times(value, 1 / TIMES), times(value, TIMES)]
    for tried in ends if unknown is None else [unknown.low, unknown.high]:
        if tried != value:
            yield str(value), str(tried), {key: tried}


def contending(entries: Mapping[str, str], costs: Mapping[str, float], best: str) -> dict[str, str]:
    """The entries that could be chosen instead: the cheapest few of many."""
    by_cost = sorted((name for name in costs if name != best), key=costs.__getitem__)
    return {name: entries[name] for name in [best, *by_cost][:MOST_CONTENDERS]}


def cheapest_of_finishing(overheads: Mapping[Policy, float], useful_h: float) -> Policy | None:
    """The policy of the least overhead, a share of useful time; None where there is none.

    One that never saves only where saving costs more than `WORTH_NO_SAVES`: what hardly ever
    happens is in few replications.
    """

    def cost(policy: Policy) -> float:
        saves = any(
            capture.every_h is None or n_saves_due(capture.every_h, useful_h)
            for capture in policy.captures
        )
        return overheads[policy] + (0.0 if saves else WORTH_NO_SAVES)

    return min(overheads, key=cost, default=None)


def choice_of(outcome: Outcome, useful_h: float) -> str | None:
    """The strategy that `cheapest_of_finishing` takes."""
    means = _means(_overheads(outcome))
    finishing = {
        of.policy: means[of.policy.name] for of in outcome.strategies if of.costs.finished.all()
    }
    cheapest = cheapest_of_finishing(finishing, useful_h)
    return None if cheapest is None else cheapest.name


def _overheads(outcome: Outcome) -> Overheads:
    return {
        of.policy.name: np.where(of.costs.finished, of.costs.wall_h / of.costs.useful_h - 1.0, inf)
        for of in outcome.strategies
    }


def _means(overheads: Overheads) -> dict[str, float]:
    return {name: float(of.mean()) for name, of in overheads.items()}


def _cheapest(overheads: Overheads) -> tuple[str, float]:
    return min(_means(overheads).items(), key=lambda strategy: strategy[1])


def _difference(overheads: Overheads, name: str, other: str) -> Floats:
    """Paired; infinite where the first alone does not finish."""
    first, second = overheads[name], overheads[other]
    return np.where(first == second, 0.0, first - np.where(second == inf, 0.0, second))
