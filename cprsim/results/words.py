"""Numbers as people read them, the same in tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf, isnan, log10

from cprsim.job.intervals import n_saves_due
from cprsim.job.policy import Policy
from cprsim.job.records import NO_NUMBER, Estimate

PART_LABELS = {"lost": "lost work, done again", "wait": "wait for a spare"}
NARROWEST = 1e-6  # of a value: an interval that is narrower is none


def part_label(part: str) -> str:
    """Full name of a part of overhead."""
    return PART_LABELS.get(part, part)


def percent(fraction: float) -> str:
    """A share in percent with about three significant digits, ``0.0849`` as ``8.49 %``."""
    return f"{percent_number(fraction)} %" if not isnan(fraction) else NO_NUMBER


def percent_number(fraction: float) -> str:
    """`percent` without its sign, for columns whose heading has it."""
    return significant(100 * fraction)


def significant(value: float) -> str:
    """About three significant digits, at most two decimals: 212, 10.2, 1.43, 0.05."""
    if isnan(value):
        return NO_NUMBER
    if abs(value) < 1e-9:  # nothing but rounding
        return "0"
    text = f"{value:,.{_decimals(value)}f}"
    return text if float(text.replace(",", "")) != 0 else f"{value:.1g}"


def suited(value: float, low: float, high: float) -> tuple[str, str, str]:
    """An estimate and the ends of its interval, all with the digits that the interval deserves.

    ``0.0025``, ``0.0021``, ``0.0029``. Those of `significant`, unless they would not show how wide
    the interval is; then as many as show the half-width with one or two digits.
    """
    decimals = _decimals_of(value, (high - low) / 2)
    if decimals is None:
        return significant(value), significant(low), significant(high)
    return _fixed(value, decimals), _fixed(low, decimals), _fixed(high, decimals)


def with_ends(value: float, low: float, high: float, unit: str = "") -> str:
    """``0.0025 (0.0021 to 0.0029)``; the estimate alone where there is no interval."""
    estimate, least, most = suited(value, low, high)
    of_unit = f" {unit}" if unit and estimate != NO_NUMBER else ""
    if NO_NUMBER in (least, most) or least == most:
        return f"{estimate}{of_unit}"
    return f"{estimate}{of_unit} ({least} to {most}{of_unit}, 95 % interval)"


def ends(low: float, high: float) -> str:
    """``0.0021 to 0.0029``, with the digits that the interval deserves; a dash without interval."""
    _, least, most = suited((low + high) / 2, low, high)
    return NO_NUMBER if NO_NUMBER in (least, most) or least == most else f"{least} to {most}"


def with_interval(value: float, half_width: float) -> str:
    """``10.2 ± 0.6``: both with the digits of `suited`; no interval where it has no width."""
    decimals = _decimals_of(value, half_width)
    if decimals is None:
        return significant(value)
    return f"{_fixed(value, decimals)} ± {_fixed(half_width, decimals)}"


def estimated(estimate: Estimate, scale: float = 1.0) -> str:
    """An estimate in another unit with its interval; `scale` 100 for per cent."""
    return with_interval(scale * estimate.mean, scale * estimate.half_width)


def portion(value: float) -> str:
    """A small share without an interval: four decimals, ``0.1000``; more where they are all 0."""
    if isnan(value):
        return NO_NUMBER
    text = f"{value:.4f}"
    return text if value == 0 or text.strip("-0.") else f"{value:.1g}"


def _decimals_of(value: float, half_width: float) -> int | None:
    """Decimals that suit an estimate and its interval; None without one, or for rounding alone.

    One digit of the half-width, two where the first is small, as the Particle Data Group rounds
    (Review of Particle Physics, Introduction, section 5.3).
    """
    if isnan(value) or not 0 < half_width < inf or half_width <= NARROWEST * abs(value):
        return None
    decimals = _decimals(value)
    if half_width < 10.0**-decimals:
        exponent = floor(log10(half_width))
        n_digits = 2 if half_width / 10.0**exponent < 3.55 else 1
        decimals = max(decimals, n_digits - 1 - exponent)
    return decimals


def _fixed(value: float, decimals: int) -> str:
    """Format a number with `decimals`, without a sign if all its digits are zero."""
    text = f"{value:,.{decimals}f}"
    return text if text.strip("-0.,") else text.removeprefix("-")


def _decimals(value: float) -> int:
    return 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2


def hours(value_h: float) -> str:
    """A time in the unit that suits it: ``2.05 h``, ``5.6 min``, ``30 s``, ``1,200 h``."""
    if isnan(value_h):
        return NO_NUMBER
    if abs(value_h) >= 1000:
        return f"{value_h:,.0f} h"
    if abs(value_h) >= 1 or value_h == 0:
        return f"{value_h:.3g} h"
    if abs(value_h) >= 1 / 60:
        return f"{60 * value_h:.3g} min"
    return f"{3600 * value_h:.3g} s"


def saves(policy: Policy, useful_h: float) -> str:
    """How often a policy saves in a job: ``every 2.05 h``, or that it never does."""
    interval_h, parts = policy.interval_h, policy.sub_saves
    if interval_h == inf:
        return "no saves"
    if n_saves_due(interval_h, useful_h):
        return f"every {every(policy, ' to ')}"
    if parts is not None and writes_parts_only(policy, useful_h):
        return f"{percent(parts.fraction)} of the rows every {hours(parts.fraction * interval_h)}"
    return f"{hours(interval_h)}: no saves"


def every(policy: Policy, to: str = " ") -> str:
    """Intervals of a policy; with their tiers where several differ: ``10 s peers, 3 h remote``."""
    tiers = {c.tier: c.every_h for c in policy.captures if c.every_h is not None}
    if len(set(tiers.values())) < 2:
        return hours(policy.interval_h)
    return ", ".join(f"{hours(every_h)}{to}{tier}" for tier, every_h in tiers.items())


def writes_parts_only(policy: Policy, useful_h: float) -> bool:
    """Whether a priority strategy's interval is at least the job, but not that of its sub-saves."""
    interval_h, parts = policy.interval_h, policy.sub_saves
    return (
        parts is not None
        and n_saves_due(interval_h, useful_h) == 0
        and n_saves_due(parts.fraction * interval_h, useful_h) > 0
    )


def count(n: int, noun: str) -> str:
    """``1 replication``, ``1,000 replications``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def priced_by(
    curve: str, origin: str, notes: Sequence[str], unpriced: Mapping[str, str], *, is_shown: bool
) -> list[str]:
    """Sentences on the curve that prices losses from stale shards, and on unpriced strategies."""
    used = f"the staleness curve {curve} ({origin})"
    whys = [f"{name}: {curve} predicts no loss for it: {why}." for name, why in unpriced.items()]
    if is_shown:
        return [f"AUC loss by {used}; its error is in the interval.", *notes, *whys]
    none = f"There is no AUC loss to show: {used} covers no strategy that finished every job."
    return [none, *notes, *whys]
