"""What ``cprsim fit-costs`` says: a table for people, one object for scripts."""

from __future__ import annotations

from math import isnan
from typing import Any

from cprsim.files import finite_or_none
from cprsim.fitting.cost_fit import Bandwidth, CostFit, mean_of
from cprsim.fitting.cost_fragment import UNITS, bandwidth_of, unit_of, verdict_of
from cprsim.fitting.goodness import Judged
from cprsim.present.document import Block, Column, ListingBlock, Table, Words, word_columns
from cprsim.records import NO_NUMBER, Estimate, interval
from cprsim.results.words import count


def costs_blocks(
    fits: tuple[CostFit, ...], fragment: str, notes: tuple[str, ...] = ()
) -> list[Block]:
    """What a terminal shows: the ranking of each kind, what to know of it, and the fragment."""
    bandwidths = [_bandwidth_text(one.kind, one.bandwidth) for one in fits if one.bandwidth]
    remarks = [*notes, *(note for one in fits for note in one.notes)]
    remarks += [reason for one in fits if one.ranking for _, reason in one.ranking.failed]
    return [
        families_table(fits),
        Words(bandwidths),
        Words([f"note: {remark}" for remark in remarks]),
        ListingBlock("For the scenario", fragment),
    ]


def families_table(fits: tuple[CostFit, ...]) -> Table:
    """A row per kind of cost and family, the one that the scenario gets first."""
    return Table(
        caption="Families that were fitted to each kind of cost",
        columns=[
            *word_columns("", "family"),
            *map(Column, ("AIC", "KS", "p")),
            *word_columns("mean, 95 % interval", "parameter, 95 % interval"),
        ],
        rows=[[count(one.durations.n, one.kind), *row] for one in fits for row in _rows(one)],
        grouped=True,
    )


def costs_as_json(
    fits: tuple[CostFit, ...], fragment: str, notes: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The object that ``cprsim fit-costs --json`` prints; numbers that there are not are null."""
    remarks = [*notes, *(note for one in fits for note in one.notes)]
    return {**{one.kind: _kind(one) for one in fits}, "notes": remarks, "fragment": fragment}


def _rows(one: CostFit) -> list[list[str]]:
    """Families, the one that the scenario gets first."""
    rows = [_row(judged, one.mean) for judged in (one.ranking.judged if one.ranking else ())]
    if one.fixed is not None:
        aic = NO_NUMBER if isnan(one.fixed_aic) else f"{one.fixed_aic:.1f}"
        rows.insert(0, ["fixed", aic, NO_NUMBER, NO_NUMBER, _mean_text(one.fixed, one.mean), ""])
    return rows


def _row(judged: Judged, like: Estimate) -> list[str]:
    fit = judged.fit
    shapes = [p for p in fit.parameters if p.name in ("shape", "sigma")]
    return [
        fit.family,
        f"{fit.aic:.1f}",
        f"{judged.ks:.3f}",
        NO_NUMBER if isnan(judged.p_value) else f"{judged.p_value:.3f}",
        _mean_text(mean_of(judged), like),
        "".join(f"{p.name} {p.mean:.4g}, {p.low:.4g} to {p.high:.4g}" for p in shapes),
    ]


def _mean_text(mean: Estimate, like: Estimate) -> str:
    unit = unit_of(like.mean)
    per_hour = UNITS[unit][0]
    text = f"{mean.mean * per_hour:.4g} {unit}"
    if isnan(mean.low):
        return text
    return f"{text}, {mean.low * per_hour:.4g} to {mean.high * per_hour:.4g}"


def _bandwidth_text(kind: str, bandwidth: Bandwidth) -> str:
    text = bandwidth_of(kind, bandwidth)
    return text if isnan(bandwidth.duration_cv) else f"{text}; {verdict_of(kind, bandwidth)}"


def _kind(one: CostFit) -> dict[str, Any]:
    mean = one.mean
    judged = one.ranking.judged if one.ranking else ()
    return {
        "n": one.durations.n,
        "n_zero": one.durations.n_zero,
        "resolution_h": one.resolution_h,
        "family": one.family,
        "mean_h": interval(mean, mean="estimate"),
        "families": [*_fixed(one), *(_judged(each) for each in judged)],
        "not_fitted": dict(one.ranking.failed) if one.ranking else {},
        "bandwidth": None if one.bandwidth is None else _bandwidth(one.bandwidth),
        "notes": list(one.notes),
    }


def _fixed(one: CostFit) -> list[dict[str, Any]]:
    """The fixed time as a family of one parameter, where it is the choice."""
    if one.fixed is None:
        return []
    fixed = one.fixed
    return [
        {
            "name": "fixed",
            "log_likelihood": finite_or_none(1 - one.fixed_aic / 2),
            "aic": finite_or_none(one.fixed_aic),
            "ks": None,
            "p_value": None,
            "parameters": {"time_h": interval(fixed, mean="estimate")},
        }
    ]


def _judged(judged: Judged) -> dict[str, Any]:
    fit, mean = judged.fit, mean_of(judged)
    return {
        "name": fit.family,
        "log_likelihood": fit.log_likelihood,
        "aic": fit.aic,
        "ks": judged.ks,
        "p_value": finite_or_none(judged.p_value),
        "parameters": {p.name: interval(p, mean="estimate") for p in fit.parameters},
        "mean_h": interval(mean, mean="estimate"),
    }


def _bandwidth(bandwidth: Bandwidth) -> dict[str, Any]:
    return {
        "n": bandwidth.n,
        "bytes_per_h": interval(bandwidth.rate, mean="estimate"),
        "mean_bytes": bandwidth.mean_bytes,
        "duration_cv": finite_or_none(bandwidth.duration_cv),
        "per_byte_cv": finite_or_none(bandwidth.per_byte_cv),
    }
