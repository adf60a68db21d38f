"""The results folder of a comparison: that of a run of all systems, and what else is known.

So what reads runs reads comparisons too. `systems.json` has what no run knows: how intervals came
about, what each system survives and moves, and who is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

from cprsim.compare_systems.best import Found
from cprsim.compare_systems.lineup import Lineup
from cprsim.compare_systems.taking import Traffic, traffic_of
from cprsim.errors import ResultError
from cprsim.foreign import UNUSABLE, one_line, read_json
from cprsim.recovery.classic import as_system
from cprsim.recovery.fates import Fate, Kind, fates, strikes_of
from cprsim.recovery.policy import Policy
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.read import Result, load_result

BESIDE = "systems.json"


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known of one system besides its run."""

    strategy: str
    how: str  # its interval came about: see `Found`
    text: str  # its entry of `recovery`
    stale: bool  # some shards may go back while the job goes on
    not_counted: str  # what it loses that no number shows; empty: nothing
    fates: Mapping[str, Fate]
    traffic: Traffic


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison as read from its folder."""

    name: str  # of the scenario
    result: Result
    beside: Mapping[str, Beside]  # by the system's name
    left_out: Mapping[str, str]  # why, by name
    fixed: bool
    limit: Mapping[str, Any] | None  # of accuracy: quantity and most; None: none was said


def beside_of(
    name: str, lineup: Lineup, found: Sequence[Found], state_bytes: float | None
) -> dict[str, Any]:
    """What `systems.json` says, as plain data.

    Parameters
    ----------
    name : of the scenario
    state_bytes : of one node of the role whose state is saved, where the scenario says it
    """
    experiment = lineup.experiment
    strikes = list(strikes_of(experiment.cluster, experiment.scopes, lineup.rack))
    systems = {}
    for one in found:
        policy = policy_of(one, lineup)
        survived = fates(policy, experiment.cluster, strikes, experiment.useful_h)
        moved = traffic_of(policy, experiment.cluster, state_bytes, experiment.useful_h)
        system = SYSTEMS.get(one.strategy)
        systems[one.name] = {
            "strategy": one.strategy,
            "how": one.how,
            "entry": one.text,
            "stale": one.policy.leaves_stale,
            "not_counted": "" if system is None else system.not_counted,
            "after": {name: _plain_fate(fate) for name, fate in survived.items()},
            "traffic": asdict(moved),
        }
    limit = lineup.limit and {"quantity": lineup.limit.quantity.value, "most": lineup.limit.most}
    return {"name": name, "fixed": lineup.fixed, "limit": limit, "systems": systems}


def policy_of(one: Found, lineup: Lineup) -> Policy:
    """What a system does, as one record; the paper's strategies too."""
    if one.policy.system is not None:
        system: Policy = one.policy.system
        return system
    return as_system(one.policy, lineup.experiment.costs, lineup.experiment.cluster)


def _plain_fate(fate: Fate) -> dict[str, Any]:
    up_to_h = None if fate.up_to_h == inf else fate.up_to_h
    return {"takes": fate.kind.name.lower(), "up_to_h": up_to_h, "from": fate.tier or None}


def write_beside(folder: Path, said: Mapping[str, Any], left_out: Mapping[str, str]) -> None:
    """Write `systems.json` into a folder that is being made."""
    text = json.dumps(
        {**said, "left_out": dict(left_out)}, indent=2, ensure_ascii=False, allow_nan=False
    )
    (folder / BESIDE).write_text(text + "\n", "utf-8")


def is_comparison(folder: Path) -> bool:
    """Whether a folder holds a comparison of systems."""
    return (folder / BESIDE).is_file()


def load_comparison(folder: Path | str) -> Comparison:
    """Read a finished comparison. Raises ResultError where it is none, or is damaged."""
    return comparison_of(load_result(folder))


def comparison_of(result: Result) -> Comparison:
    """The comparison whose run this is. Raises ResultError where there is none."""
    try:
        plain = read_json(result.path / BESIDE)
        return Comparison(
            str(plain["name"]),
            result,
            {name: _beside_from(one) for name, one in plain["systems"].items()},
            {str(name): str(why) for name, why in plain["left_out"].items()},
            bool(plain["fixed"]),
            plain["limit"],
        )
    except (OSError, *UNUSABLE) as error:
        told = one_line(str(error), 200)
        raise ResultError(
            f"{result.path} can't be read as a comparison of systems: {told}"
        ) from error


def _beside_from(plain: Mapping[str, Any]) -> Beside:
    return Beside(
        strategy=str(plain["strategy"]),
        how=str(plain["how"]),
        text=str(plain["entry"]),
        stale=bool(plain["stale"]),
        not_counted=str(plain["not_counted"]),
        fates={str(name): _fate_from(one) for name, one in plain["after"].items()},
        traffic=Traffic(**plain["traffic"]),
    )


def _fate_from(plain: Mapping[str, Any]) -> Fate:
    up_to_h = inf if plain["up_to_h"] is None else float(plain["up_to_h"])
    return Fate(Kind[plain["takes"].upper()], up_to_h, plain["from"] or "")
