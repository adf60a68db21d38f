"""A selection as plain data for JSON, and back (`results.plain`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cprsim.results.metrics import Spread
from cprsim.results.plain import (
    interval_from,
    number_from,
    plain_interval,
    plain_number,
    plain_policy,
    policy_from,
)
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
        "limited": selection.limited,
        "front": {name: [_candidate(one) for one in of] for name, of in selection.front.items()},
    }


def _drawn(drawn: Drawn) -> dict[str, Any]:
    ends = {"low_h": plain_interval(drawn.low_h), "high_h": plain_interval(drawn.high_h)}
    return asdict(drawn) | ends


def _drawn_from(plain: Mapping[str, Any]) -> Drawn:
    ends = {name: interval_from(plain[name]) for name in ("low_h", "high_h")}
    return Drawn(**{**plain, **ends})


def _candidate(one: Candidate) -> dict[str, Any]:
    return {
        "strategy": one.strategy,
        **plain_policy(one.policy),
        "rule": one.rule,
        "option": one.option,
        "entry": one.entry,
        "saves": one.n_saves,
        "finished_fraction": one.finished_fraction,
        **{name: _spread(getattr(one, name)) for name in SPREADS},
        "held": plain_number(one.held),
        "keeps": one.keeps,
        "beyond_fraction": one.beyond_fraction,
    }


def _spread(spread: Spread) -> dict[str, float | str | None]:
    ends = {name: plain_number(getattr(spread, name)) for name in ("mean", "low", "high")}
    return {**ends, "n": spread.n}


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
        limited=bool(plain.get("limited", True)),
    )  # fmt: skip


def _candidate_from(plain: Mapping[str, Any]) -> Candidate:
    return Candidate(
        strategy=plain["strategy"],
        policy=policy_from(plain),
        n_saves=plain["saves"],
        finished_fraction=plain["finished_fraction"],
        **{name: _spread_from(plain[name]) for name in SPREADS},
        held=number_from(plain["held"]),
        keeps=plain["keeps"],
        beyond_fraction=plain["beyond_fraction"],
        rule=plain["rule"],
        option=plain.get("option", ""),
        entry=plain.get("entry", ""),
    )


def _spread_from(plain: Mapping[str, Any]) -> Spread:
    mean, low, high = (number_from(plain[name]) for name in ("mean", "low", "high"))
    return Spread(mean, low, high, plain["n"])
