"""Fitted costs as YAML to paste into a scenario, each number with its interval and its origin."""

from __future__ import annotations

from math import isfinite

from cprsim.fitting.cost_fit import Bandwidth, CostFit, count
from cprsim.records import Estimate

ONE_BY_ONE = {"save": "  save: {stall: %s}", "load": "  load: %s"}
UNITS = {"s": (3600.0, 120.0), "min": (60.0, 120.0), "h": (1.0, float("inf"))}  # of an hour; up to
GBIT_S = 3600e9 / 8  # bytes per hour


def costs_fragment(fits: tuple[CostFit, ...], origin: str) -> str:
    """The section `costs`, with `storage` as an alternative where the log names bytes.

    A scenario needs `reschedule`; where the log does not know it, it stands there as 0 s and says
    so. A save or load that is missing is left to the scenario, which will ask for it.
    """
    by_kind = {one.name: one for one in fits}
    lines = [f"# fitted to {origin}", "costs:"]
    for one in fits:
        lines += [f"  # {_said(one)}", _line(one)]
    lines += [
        f"  # {kind}: not in the log, say it" for kind in ("save", "load") if kind not in by_kind
    ]
    lines += [
        f"  {kind}: 0 s  # not in the log: put yours here"
        for kind in ("detect", "reschedule")
        if kind not in by_kind
    ]
    return "\n".join([*lines, *_alternative(by_kind)]) + "\n"


def _line(one: CostFit) -> str:
    return ONE_BY_ONE.get(one.name, f"  {one.name}: %s") % _duration(one)


def _duration(one: CostFit) -> str:
    mean = _time(one.mean.mean)
    if one.best is None:
        return mean
    fit = one.best.fit
    shapes = [f", {p.name}: {p.mean:.6g}" for p in fit.parameters if p.name in _SHAPES]
    return f"{{family: {fit.family}, mean: {mean}{''.join(shapes)}}}"


_SHAPES = ("shape", "sigma")


def _said(one: CostFit) -> str:
    """How many, and how sure that is."""
    what = "mean 95 %:" if one.best is not None else "between"
    parts = [f"{count(one.lifetimes.n, one.name)}, {one.family}", _interval_of(one.mean, what)]
    if one.best is not None:
        parts += [
            f"{p.name} 95 %: {p.low:.4g} to {p.high:.4g}"
            for p in one.best.fit.parameters
            if p.name in _SHAPES
        ]
    return "; ".join(parts)


def _interval_of(mean: Estimate, what: str) -> str:
    if not mean.has_interval:
        return "no interval: too few"
    unit = unit_of(mean.mean)
    low, high = (time_h * UNITS[unit][0] for time_h in (mean.low, mean.high))
    return f"{what} {low:.4g} {'to' if what.endswith(':') else 'and'} {high:.4g} {unit}"


def _time(time_h: float) -> str:
    unit = unit_of(time_h)
    return f"{time_h * UNITS[unit][0]:.6g} {unit}"


def unit_of(time_h: float) -> str:
    """The unit in which people say a time: seconds below 2 minutes, minutes below 2 hours."""
    return next((unit for unit, (per_hour, most) in UNITS.items() if time_h * per_hour < most), "h")


def _alternative(by_kind: dict[str, CostFit]) -> list[str]:
    """`storage` in place of times, as a comment; of the saves, or else the loads."""
    known = [
        (kind, one.bandwidth)
        for kind in ("save", "load")
        if (one := by_kind.get(kind)) is not None and one.bandwidth is not None
    ]
    if not known:
        return []
    kind, first = known[0]
    size = f"{first.mean_bytes / 1e9:.6g} GB"
    return [
        f"# or from the bytes: `{kind}: transfer`, {size} over `emb_ps` as `shard_size`, and",
        f"# storage: {{bandwidth: {first.rate.mean / GBIT_S:.6g} Gbit/s}}",
        *(f"# {bandwidth_of(name, bandwidth)}" for name, bandwidth in known),
    ]


def bandwidth_of(kind: str, bandwidth: Bandwidth) -> str:
    """A bandwidth in words."""
    low, high = bandwidth.rate.low / GBIT_S, bandwidth.rate.high / GBIT_S
    interval = f"95 %: {low:.4g} to {high:.4g}" if isfinite(low) else "no interval: one alone"
    return (
        f"{count(bandwidth.n, kind)} with bytes, {bandwidth.mean_bytes / 1e9:.4g} GB on average: "
        f"{bandwidth.rate.mean / GBIT_S:.4g} Gbit/s ({interval})"
    )


def bandwidth_in_words(kind: str, bandwidth: Bandwidth) -> str:
    """A bandwidth, and whether bytes or a time describe the log better."""
    said = bandwidth_of(kind, bandwidth)
    if bandwidth.n < 2:
        return said
    judged = {
        "better": "bytes (transfer) describe them better than a time does",
        "worse": "a time describes them better than bytes (transfer) do",
        "alike": "a time describes them as well as bytes (transfer) do",
    }[bandwidth.verdict]
    spreads = (f"{100 * cv:.3g} %" for cv in (bandwidth.duration_cv, bandwidth.per_byte_cv))
    return "{}; {}s vary by {}, per byte by {}: {}".format(said, kind, *spreads, judged)
