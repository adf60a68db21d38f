"""How often to save: Young's, Daly's and CPR's formulas, and the first-order overheads they price.

All of them are first-order models: failures are Poisson on the progress clock, a failure strikes
neither a save nor a recovery, and the job is a whole number of intervals. docs/model.md says by
how much the simulator differs where that does not hold.
"""

from __future__ import annotations

from math import floor, inf, sqrt

ROUNDING = 1e-9  # of an interval or a value: what differs by no more differs by rounding
WORTH_NO_SAVES = 0.005  # of useful time: what saving has to cost for never saving to be advised


def n_saves_due(interval_h: float, useful_h: float) -> int:
    """How many saves a job of `useful_h` hours has, one every `interval_h` hours of progress."""
    never = interval_h >= useful_h * (1.0 - ROUNDING)
    return 0 if never else floor(useful_h / interval_h + ROUNDING)


def young_h(save_cost_h: float, mtbf_h: float) -> float:
    """Interval between saves that minimises the first-order overhead of full recovery [h].

    ``sqrt(2 O_save T_fail)``; holds for ``O_save << T_fail``. Source: Young 1974.
    """
    return sqrt(2.0 * save_cost_h * mtbf_h)


def daly_h(save_cost_h: float, mtbf_h: float) -> float:
    """Daly's higher-order interval between saves for full recovery [h].

    With ``x = sqrt(O_save / (2 T_fail))``:
    ``sqrt(2 O_save T_fail) (1 + x/3 + x^2/9) - O_save`` for ``O_save < 2 T_fail``, else ``T_fail``.
    Exponential failures on the uptime clock. Source: Daly 2006, equation 37.
    """
    if mtbf_h == inf:
        return inf if save_cost_h > 0 else 0.0
    if save_cost_h >= 2.0 * mtbf_h:
        return mtbf_h
    x = sqrt(save_cost_h / (2.0 * mtbf_h))
    return young_h(save_cost_h, mtbf_h) * (1.0 + x / 3.0 + x * x / 9.0) - save_cost_h


def cpr_h(
    target_pls: float, n_emb_ps: int, mtbf_shard_h: float, n_together: float = 1.0,
    late_h: float = 0.0, p_bad: float = 0.0,
) -> float:  # fmt: skip
    """CPR's interval between saves for partial recovery [h]; 0 where none keeps the target.

    ``2 PLS N_emb T_fail / k``. Source: Maeng et al. 2021, facts in docs/model.md. Reduced for the
    rollback of a shard beyond half an interval: the hours by which a save is late, and whole
    intervals if saves fail.
    """
    if not target_pls:
        return 0.0
    most_h = 2.0 * target_pls * n_emb_ps * mtbf_shard_h / n_together
    return max(0.0, (most_h - 2.0 * late_h) * (1.0 - p_bad) / (1.0 + p_bad))


def expected_pls(
    save_interval_h: float, n_emb_ps: int, mtbf_shard_h: float, n_together: float,
    late_h: float = 0.0, p_bad: float = 0.0,
) -> float:  # fmt: skip
    """Expected portion of lost samples of a job under partial recovery; see `cpr_h`.

    ``k T_save / (2 T_fail N_emb)``, for saves that take no time. Exact for Poisson failures on the
    progress clock when the job is a whole number of intervals and saves keep their cadence.
    Source: Maeng et al. 2021.
    """
    if mtbf_shard_h == inf:
        return 0.0
    lost_h = save_interval_h * (1.0 + p_bad) / (1.0 - p_bad) + 2.0 * late_h
    return n_together * lost_h / (2.0 * mtbf_shard_h * n_emb_ps)


def full_overhead_fraction(
    save_interval_h: float, save_cost_h: float, recovery_cost_h: float, mtbf_h: float
) -> float:
    """First-order overhead of full recovery, as a share of useful time.

    ``O_save / T_save + (R + T_save / 2) / T_fail`` with R = load + detection + rescheduling.
    Source: Maeng et al. 2021.
    """
    lost_h = save_interval_h / 2.0 if mtbf_h != inf else 0.0
    return partial_overhead_fraction(save_interval_h, save_cost_h, recovery_cost_h + lost_h, mtbf_h)


def partial_overhead_fraction(
    save_interval_h: float, save_cost_h: float, recovery_cost_h: float, mtbf_h: float
) -> float:
    """First-order overhead of partial recovery, as a share of useful time.

    ``O_save / T_save + R / T_fail``: it only falls with the interval, so that accuracy has to
    bound it. Source: Maeng et al. 2021.
    """
    saving = save_cost_h / save_interval_h if save_cost_h else 0.0
    return saving + recovery_cost_h / mtbf_h
