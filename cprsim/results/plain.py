"""Records as what JSON can hold, and back: what is read equals what was written.

JSON has neither NaN nor infinity: a missing number is null, an infinite one its name as a text. An
interval alone is never missing, so that there null is infinity: nothing is ever saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import inf, isfinite, isnan, nan
from typing import Any

from cprsim.records import Decision, OnFailure, RecoveryPolicy, SmallTables, SubSaves
from cprsim.results.plain_system import plain_system, system_from


def plain_number(value: float) -> float | str | None:
    """A number: None where it is NaN, ``inf`` or ``-inf`` where it is infinite."""
    if isnan(value):
        return None
    return float(value) if isfinite(value) else str(float(value))


def number_from(plain: float | str | None) -> float:
    """The number that `plain_number` wrote. Raises ValueError for other texts."""
    return nan if plain is None else float(plain)


def plain_interval(interval_h: float) -> float | None:
    """A time between saves, or a price; None where it is infinite."""
    return None if interval_h == inf else float(interval_h)


def interval_from(plain: float | None) -> float:
    """What `plain_interval` wrote."""
    return inf if plain is None else float(plain)


def plain_policy(policy: RecoveryPolicy) -> dict[str, Any]:
    """A recovery policy with everything that it says."""
    return {
        "name": policy.name,
        "on_failure": policy.on_failure.value,
        "interval_h": plain_interval(policy.save_interval_h),
        "interval_rule": policy.interval_rule,
        "decision": policy.decision and _plain_decision(policy.decision),
        "sub_saves": policy.sub_saves and _plain_sub_saves(policy.sub_saves),
        "system": policy.system and plain_system(policy.system),
    }


def policy_from(plain: Mapping[str, Any]) -> RecoveryPolicy:
    """The policy that `plain_policy` wrote; other keys are left aside.

    Results of earlier versions say nothing of sub-saves or systems: None then.

    Raises
    ------
    KeyError, TypeError, ValueError : it is none
    """
    decision, sub_saves = plain["decision"], plain.get("sub_saves")
    return RecoveryPolicy(
        name=str(plain["name"]),
        on_failure=OnFailure(plain["on_failure"]),
        save_interval_h=interval_from(plain["interval_h"]),
        interval_rule=str(plain["interval_rule"]),
        decision=decision and _decision_from(decision),
        sub_saves=sub_saves and _sub_saves_from(sub_saves),
        system=plain.get("system") and system_from(plain["system"]),
    )


def _plain_decision(decision: Decision) -> dict[str, Any]:
    return {
        name: value if isinstance(value, str) else plain_interval(value)
        for name, value in asdict(decision).items()
    }


def _decision_from(plain: Mapping[str, Any]) -> Decision:
    prices = {name: interval_from(value) for name, value in plain.items() if name != "chosen"}
    return Decision(chosen=plain["chosen"], **prices)


def _plain_sub_saves(sub_saves: SubSaves) -> dict[str, Any]:
    return asdict(sub_saves) | {"small_tables": sub_saves.small_tables.value}


def _sub_saves_from(plain: Mapping[str, Any]) -> SubSaves:
    return SubSaves(**{**plain, "small_tables": SmallTables(plain["small_tables"])})
