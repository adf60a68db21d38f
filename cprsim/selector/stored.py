"""A selection as plain data for JSON, and back. Missing and infinite numbers are null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import inf, isfinite, nan
from typing import Any

from cprsim.records import OnFailure, RecoveryPolicy, SmallTables, SubSaves
from cprsim.results.metrics import Spread
from cprsim.selector.choice import Candidate, Drawn, Flip, Selection
from cprsim.selector.limit import Limit, Quantity

SPREADS = ("overhead", "pls", "loss", "benefit")


def as_plain(selection: Selection) -> dict[str, Any]:
    """The selection as what JSON holds; shares and overheads are fractions, times hours."""
    limit = selection.limit
    return {
        "useful_h": selection.useful_h,
        "replications": selection.n_replications,
        "limit": {
            "quantity": limit.quantity.value,
            "most": limit.most,
            "confidence": limit.confidence,
            "risk": limit.risk,
        },
        "curve": selection.curve,
        "recommended": selection.chosen.strategy,
        "fell_back": selection.fell_back,
        "full": _candidate(selection.full),
        "best": {name: one and _candidate(one) for name, one in selection.best.items()},
        "formula": [_candidate(one) for one in selection.formula],
        "flips": [asdict(flip) for flip in selection.flips],
        "drawn": selection.drawn and _drawn(selection.drawn),
        "notes": list(selection.notes),
        "left_out": list(selection.left_out),
        "front": {name: [_candidate(one) for one in of] for name, of in selection.front.items()},
    }


def _drawn(drawn: Drawn) -> dict[str, Any]:
    return {name: _number(value) for name, value in asdict(drawn).items()}


def _drawn_from(plain: Mapping[str, Any]) -> Drawn:
    high_h = inf if plain["high_h"] is None else plain["high_h"]
    low_h = inf if plain["low_h"] is None else plain["low_h"]
    return Drawn(**{**plain, "n": int(plain["n"]), "low_h": low_h, "high_h": high_h})


def _candidate(one: Candidate) -> dict[str, Any]:
    interval_h, way = one.policy.save_interval_h, one.policy.sub_saves
    return {
        "strategy": one.strategy,
        "interval_h": _number(interval_h),
        "sub_saves": way and asdict(way),
        "rule": one.rule,
        "saves": one.n_saves,
        "finished_fraction": one.finished_fraction,
        **{name: _spread(getattr(one, name)) for name in SPREADS},
        "held": _number(one.held),
        "keeps": one.keeps,
        "beyond_fraction": one.beyond_fraction,
    }


def _spread(spread: Spread) -> dict[str, float | int | None]:
    ends = {name: _number(getattr(spread, name)) for name in ("mean", "low", "high")}
    return {**ends, "n": spread.n}


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def from_plain(plain: Mapping[str, Any]) -> Selection:
    """The selection that `as_plain` wrote. Raises KeyError, TypeError or ValueError for others."""
    limit = plain["limit"]
    full = _candidate_from(plain["full"])
    best = {name: one and _candidate_from(one) for name, one in plain["best"].items()}
    return Selection(
        useful_h=float(plain["useful_h"]),
        n_replications=int(plain["replications"]),
        limit=Limit(
            Quantity(limit["quantity"]), limit["most"], limit["confidence"], limit["risk"]
        ),
        curve=plain["curve"],
        full=full,
        best=best,
        formula=tuple(_candidate_from(one) for one in plain["formula"]),
        front={
            name: tuple(_candidate_from(one) for one in of) for name, of in plain["front"].items()
        },
        chosen=full if plain["fell_back"] else best[plain["recommended"]],
        flips=tuple(
            Flip(**{**flip, "furthest": tuple(flip["furthest"])}) for flip in plain["flips"]
        ),
        drawn=plain["drawn"] and _drawn_from(plain["drawn"]),
        notes=tuple(plain.get("notes", ())),
        left_out=tuple(plain.get("left_out", ())),
    )  # fmt: skip


def _candidate_from(plain: Mapping[str, Any]) -> Candidate:
    strategy, rule = plain["strategy"], plain["rule"]
    policy = RecoveryPolicy(
        name=strategy,
        on_failure=OnFailure.ROLL_BACK if strategy == "full" else OnFailure.RELOAD,
        save_interval_h=inf if plain["interval_h"] is None else plain["interval_h"],
        interval_rule=rule or "selected",
        sub_saves=plain["sub_saves"] and _way(plain["sub_saves"]),
    )
    return Candidate(
        strategy=strategy,
        policy=policy,
        n_saves=plain["saves"],
        finished_fraction=plain["finished_fraction"],
        **{name: _spread_from(plain[name]) for name in SPREADS},
        held=nan if plain["held"] is None else plain["held"],
        keeps=plain["keeps"],
        beyond_fraction=plain["beyond_fraction"],
        rule=rule,
    )


def _way(plain: Mapping[str, Any]) -> SubSaves:
    return SubSaves(**{**plain, "small_tables": SmallTables(plain["small_tables"])})


def _spread_from(plain: Mapping[str, Any]) -> Spread:
    mean, low, high = (
        nan if plain[name] is None else plain[name] for name in ("mean", "low", "high")
    )
    return Spread(mean, low, high, plain["n"])
