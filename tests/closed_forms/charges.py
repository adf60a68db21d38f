"""What PCcheck's published evaluation charges each failure, and the exact mean beside it.

Letters: t step, f steps between saves, l load, Tw from the start of a save to its commit, N saves
in flight. Charges are of the work redone and the load; detection and rescheduling are left out
there.
"""

from __future__ import annotations

from cprsim.analytic.domain import require_count, require_not_negative, require_positive
from cprsim.errors import ParameterError


def checkfreq_charge_h(step_h: float, every_steps: int, load_h: float) -> float:
    """Published charge for CheckFreq and GEMINI: a whole interval, ``f t + l`` [h].

    Parameters
    ----------
    step_h : time of one training step without saves, t [h]
    every_steps : steps between saves, f; 0 for no interval
    load_h : loading a save, l [h]

    Notes
    -----
    The mean of content that is committed half an interval after its start, or the worst case of
    content that is committed at once. Source: code of PCcheck (ASPLOS 2025), published.
    """
    _require_steps(step_h, every_steps, load_h)
    return every_steps * step_h + load_h


def gpm_charge_h(step_h: float, every_steps: int, load_h: float) -> float:
    """Published charge for GPM: half an interval, ``f t/2 + l`` [h].

    Exact for saves that commit before the job goes on. Parameters and source as in
    `checkfreq_charge_h`.
    """
    _require_steps(step_h, every_steps, load_h)
    return every_steps * step_h / 2.0 + load_h


def in_flight_charge_h(
    step_h: float, every_steps: int, load_h: float, write_h: float, n_in_flight: int
) -> float:
    """Mean work redone and load per failure with N saves in flight: ``l + f t/2 + Tw`` [h].

    Parameters as in `pccheck_charge_h`.

    Raises
    ------
    ParameterError
        Tw is longer than N intervals, so that saves wait for those before them

    Notes
    -----
    Failures at uniform points of a long job; for a job of finite length see `content_age_h`.
    Source: derived here.
    """
    _require_steps(step_h, every_steps, load_h)
    require_not_negative(write_h=write_h)
    require_count(1, n_in_flight=n_in_flight)
    if write_h > every_steps * step_h * n_in_flight:
        raise ParameterError(f"a save takes {write_h} h, more than {n_in_flight} intervals")
    return load_h + every_steps * step_h / 2.0 + write_h


def charged_steps_per_h(
    wall_h: float, n_failures: int, charge_h: float, step_with_saves_h: float
) -> float:
    """Published goodput of a job that pays a fixed charge per failure [steps/h].

    Parameters
    ----------
    wall_h : length of the failure trace, T [h]
    n_failures : failures in it, n
    charge_h : charge per failure [h]
    step_with_saves_h : time of a step, its share of the saves included [h]

    Notes
    -----
    ``max(0, (T - n charge) / step / T)``. Source: code of PCcheck (ASPLOS 2025), published.
    """
    require_positive(wall_h=wall_h, step_with_saves_h=step_with_saves_h)
    require_not_negative(charge_h=charge_h)
    require_count(0, n_failures=n_failures)
    return max(0.0, (wall_h - n_failures * charge_h) / step_with_saves_h / wall_h)


def saves_per_h(step_h: float, every_steps: int, write_h: float, n_in_flight: int) -> float:
    """Saves per hour of a job that waits when N saves are in flight: ``1/max(f t, Tw/N)`` [1/h].

    Parameters as in `pccheck_charge_h`; at least one step between saves.

    Notes
    -----
    In the long run, without failures, for saves that each take Tw whatever is in flight beside
    them. Times `every_steps` it is the throughput in steps. Source: derived here.
    """
    require_positive(step_h=step_h)
    require_not_negative(write_h=write_h)
    require_count(1, every_steps=every_steps, n_in_flight=n_in_flight)
    return 1.0 / max(every_steps * step_h, write_h / n_in_flight)


def _require_steps(step_h: float, every_steps: int, load_h: float) -> None:
    require_positive(step_h=step_h)
    require_count(0, every_steps=every_steps)
    require_not_negative(load_h=load_h)
