"""Charges per failure, against the published tables and a job with saves in flight."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.analytic.systems import pccheck_charge_h
from cprsim.errors import ParameterError
from tests import closed_forms
from tests.analytic.sampling import assert_mean, draws

# Published with PCcheck's code for VGG-16: steps per second without failures (fig8_vgg16.csv) and
# over its trace (fig9_vgg16.csv), with saves never and every 10, 25, 50 steps.
EVERY = (0, 10, 25, 50)
THROUGHPUT = {
    "checkfreq": (15.742874314174914, 2.938627628113705, 7.042363043171207, 12.18658951925483),
    "gpm": (15.756049145422713, 6.651017406282624, 10.387977578704326, 12.998492611136836),
    "pccheck": (15.769409833983385, 6.3503108341382175, 14.2728865888275, 15.52581113138962),
}
GOODPUT = {
    "checkfreq": (15.690597341199657, 2.9218082347356775, 6.976672784383198, 11.999707338861933),
    "gpm": (15.703728423111512, 6.620947425543189, 10.322307257580645, 12.877309632420706),
    "pccheck": (15.71704474516446, 6.29114014126634, 14.090085346725347, 15.320044894926651),
}
IDEAL = (15.71704474516446, 15.698130637465306, 15.669759475916575, 15.622474206668688)
TRACE_S, N_FAILURES, N_IN_FLIGHT = 13_482.0, 51, 4
HOUR_S = 3600.0
# Not published with the tables: the load, from what the tables pay where nothing is redone.
LOAD_S = (1.0 - GOODPUT["pccheck"][0] / THROUGHPUT["pccheck"][0]) * TRACE_S / N_FAILURES


def goodput_per_s(charge_h: float, throughput: float) -> float:
    per_h = closed_forms.charged_steps_per_h(
        TRACE_S / HOUR_S, N_FAILURES, charge_h, 1.0 / throughput / HOUR_S
    )
    return per_h / HOUR_S


@pytest.mark.parametrize("i", range(4))
@pytest.mark.parametrize("system", ["checkfreq", "gpm"])
def test_the_charges_make_the_published_goodput_from_the_published_throughput(
    system: str, i: int
) -> None:
    charge = {"checkfreq": closed_forms.checkfreq_charge_h, "gpm": closed_forms.gpm_charge_h}[
        system
    ]
    step_h = 1.0 / THROUGHPUT[system][0] / HOUR_S
    charge_h = charge(step_h, EVERY[i], LOAD_S / HOUR_S)
    found = goodput_per_s(charge_h, THROUGHPUT[system][i])
    assert found == pytest.approx(GOODPUT[system][i], rel=1e-12)


@pytest.mark.parametrize("i", range(4))
def test_the_ideal_pays_half_an_interval_and_no_save(i: int) -> None:
    step_h = 1.0 / THROUGHPUT["pccheck"][0] / HOUR_S
    charge_h = closed_forms.gpm_charge_h(step_h, EVERY[i], LOAD_S / HOUR_S)
    assert goodput_per_s(charge_h, THROUGHPUT["pccheck"][0]) == pytest.approx(IDEAL[i], rel=1e-12)


def pccheck_goodput(i: int, write_s: float) -> float:
    step_h = 1.0 / THROUGHPUT["pccheck"][0] / HOUR_S
    charge_h = pccheck_charge_h(step_h, EVERY[i], LOAD_S / HOUR_S, write_s / HOUR_S, N_IN_FLIGHT)
    return goodput_per_s(charge_h, THROUGHPUT["pccheck"][i])


def test_pcchecks_charge_makes_its_published_goodput_where_saves_in_flight_bound_it() -> None:
    """Every 10 steps: 4 saves of 0.63 s of work each are less than one takes, whatever that is."""
    assert pccheck_goodput(1, 2.6) == pytest.approx(GOODPUT["pccheck"][1], rel=1e-12)
    assert pccheck_goodput(1, 9.0) == pytest.approx(GOODPUT["pccheck"][1], rel=1e-12)


@pytest.mark.parametrize("i", [2, 3])
def test_pcchecks_charge_meets_its_published_goodput_at_writes_as_in_its_logs(i: int) -> None:
    """The published logs name syncs of 1.4 to 5 s; Tw itself is not published."""
    assert pccheck_goodput(i, 5.0) < GOODPUT["pccheck"][i] < pccheck_goodput(i, 1.4)


@pytest.mark.parametrize("intervals_to_write", [0.0, 0.4, 1.0, 2.5, 4.0])
def test_what_is_redone_is_as_old_as_the_newest_save_that_has_committed(
    intervals_to_write: float,
) -> None:
    rng, step_h, every, load_h = draws(f"charge/{intervals_to_write}"), 0.01, 20, 0.05
    interval_h = step_h * every
    write_h = intervals_to_write * interval_h
    starts_h = np.arange(0, 300) * interval_h
    redone = []
    for strike_h in rng.uniform(100 * interval_h, 300 * interval_h, 10_000):
        committed_h = starts_h[starts_h + write_h <= strike_h]
        redone.append(strike_h - committed_h[-1] + load_h)
    ours_h = closed_forms.in_flight_charge_h(step_h, every, load_h, write_h, 4)
    assert_mean(redone, ours_h)
    published_h = pccheck_charge_h(step_h, every, load_h, write_h, 4)
    assert_mean(np.array(redone) - published_h, write_h / 2)


@pytest.mark.parametrize(("write_h", "n_in_flight"), [(0.1, 1), (0.35, 1), (0.35, 2), (1.1, 4)])
def test_a_job_that_waits_for_saves_in_flight_makes_as_many_as_are_written(
    write_h: float, n_in_flight: int
) -> None:
    step_h, every, now_h = 0.01, 20, 0.0
    commits_h: list[float] = []
    starts_h: list[float] = []
    for step in range(1, 20 * 1300):
        now_h += step_h
        if step % every == 0:
            under_way = sorted(commit for commit in commits_h[-n_in_flight:] if commit > now_h)
            if len(under_way) == n_in_flight:
                now_h = under_way[0]
            starts_h.append(now_h)
            commits_h.append(now_h + write_h)
    found = 1200 / (starts_h[1210] - starts_h[10])
    expected = closed_forms.saves_per_h(step_h, every, write_h, n_in_flight)
    assert found == pytest.approx(expected, rel=1e-9)


def test_a_trace_of_nothing_but_failures_leaves_no_goodput() -> None:
    assert closed_forms.charged_steps_per_h(1.0, 10, 0.2, 0.01) == 0.0


def test_charges_that_can_not_be_are_refused() -> None:
    with pytest.raises(ParameterError):
        closed_forms.in_flight_charge_h(0.01, 20, 0.1, 0.9, 4)
    with pytest.raises(ParameterError):
        closed_forms.checkfreq_charge_h(0.0, 20, 0.1)
    with pytest.raises(ParameterError):
        closed_forms.gpm_charge_h(0.01, -1, 0.1)
    with pytest.raises(ParameterError):
        pccheck_charge_h(0.01, 20, 0.1, 0.1, 0)
    with pytest.raises(ParameterError):
        closed_forms.saves_per_h(0.01, 0, 0.1, 1)
    with pytest.raises(ParameterError):
        closed_forms.charged_steps_per_h(0.0, 1, 0.1, 0.1)
