"""Numbers as people read them, the same in tables and figures."""

from __future__ import annotations

from math import inf, isnan

from cprsim.records import RecoveryPolicy
from cprsim.setting import n_saves_due

NO_NUMBER = "–"


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


def with_interval(value: float, half_width: float) -> str:
    """``10.2 ± 0.6``: both with as many decimals as `significant` gives the value."""
    if isnan(value) or isnan(half_width):
        return significant(value)
    half = f"{half_width:,.{_decimals(value)}f}"
    return f"{significant(value)} ± {significant(half_width) if not half.strip('0.') else half}"


def ten_thousandths(loss: float, half_width: float) -> str:
    """A loss of accuracy in the unit that suits it: 0.00027 ± 0.00008 as ``2.70 ± 0.80``."""
    if loss == 0 == half_width:  # exactly: no shard ever goes stale
        return "0"
    return with_interval(1e4 * loss, 1e4 * half_width)


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


def saves(policy: RecoveryPolicy, useful_h: float) -> str:
    """How often a policy saves in a job: ``every 2.05 h``, or that it never does.

    A priority strategy whose interval is at least the job writes no whole checkpoint, but parts:
    ``12.5 % of the rows every 3 h``.
    """
    interval_h, parts = policy.save_interval_h, policy.sub_saves
    if interval_h == inf:
        return "no saves"
    if n_saves_due(interval_h, useful_h):
        return f"every {hours(interval_h)}"
    if parts is not None and writes_parts_only(policy, useful_h):
        return f"{percent(parts.fraction)} of the rows every {hours(parts.fraction * interval_h)}"
    return f"{hours(interval_h)}: no saves"


def writes_parts_only(policy: RecoveryPolicy, useful_h: float) -> bool:
    """Whether a priority strategy's interval is at least the job, but not that of its sub-saves."""
    interval_h, parts = policy.save_interval_h, policy.sub_saves
    return (
        parts is not None
        and n_saves_due(interval_h, useful_h) == 0
        and n_saves_due(parts.fraction * interval_h, useful_h) > 0
    )


def count(n: int, thing: str) -> str:
    """``1 replication``, ``1,000 replications``."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def priced_by(curve: str, origin: str) -> str:
    """Which staleness curve priced what stale shards lose; `origin` is where it is from."""
    return f"AUC loss by the staleness curve {curve} ({origin}); its error is in the interval."
