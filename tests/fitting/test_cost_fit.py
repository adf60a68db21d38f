"""A log of saves and loads: what is read, what is fitted, and that a scenario takes it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from cprsim.errors import ParameterError, TraceError
from cprsim.logs.fit.cost_fit import (
    P_DRIFT,
    CostFit,
    _drift_h,
    bandwidth_of,
    costs_fragment,
    fit_costs,
    read_transfers,
)
from cprsim.logs.spec import LogSpec
from tests.fitting.logs import assembled

HEADER = "kind,start,end,bytes"


def log(folder: Path, rows: list[str], header: str = HEADER) -> Path:
    path = folder / "saves.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def transfers(duration_s: object, resolution_s: float = 1e-3) -> pd.DataFrame:
    """Saves, an hour apart."""
    duration_h = np.asarray(duration_s, dtype=float) / 3600
    rows = {"kind": "save", "n_bytes": math.nan, "resolution_h": resolution_s / 3600}
    return pd.DataFrame({"duration_h": duration_h, "start_h": np.arange(len(duration_h))} | rows)


def fitted(duration_s: object, resolution_s: float = 1e-3) -> CostFit:
    (one,) = fit_costs(transfers(duration_s, resolution_s), n_bootstrap=0)
    return one


# ------------------------------------------------------------------------- the choice


@pytest.mark.parametrize(
    ("family", "draw", "name", "truth"),
    [
        ("gamma", lambda rng: rng.gamma(3, 30, 2000), "shape", 3.0),
        ("lognormal", lambda rng: rng.lognormal(4.5, 0.8, 2000), "sigma", 0.8),
        ("weibull", lambda rng: 90 * rng.weibull(4, 2000), "shape", 4.0),
    ],
)
def test_the_family_that_was_drawn_is_found_again(family, draw, name, truth) -> None:
    drawn_s = draw(np.random.default_rng(7))
    one = fitted(drawn_s)
    assert one.family == family
    found = one.best.by_name[name]
    assert abs(found.mean - truth) <= 4 * found.standard_error
    assert one.best.distribution.mean_h == pytest.approx(one.mean.mean)
    assert one.mean.low < drawn_s.mean() / 3600 < one.mean.high


def test_a_fixed_time_is_found_behind_the_log_s_resolution() -> None:
    begins_s = np.random.default_rng(2).random(200)
    written_s = np.floor(begins_s + 94.3) - np.floor(begins_s)  # both ends to the second before
    one = fitted(written_s, resolution_s=1.0)
    assert one.family == "fixed"
    assert (one.mean.low * 3600, one.mean.high * 3600) == pytest.approx((94.0, 95.0))
    assert abs(one.mean.mean * 3600 - 94.3) <= 4 * math.sqrt(0.3 * 0.7 / 200)
    assert fitted(np.repeat([94.0, 95.0], 30), resolution_s=0.001).family != "fixed"
    equal = fitted([60.0] * 5)
    assert (equal.family, equal.ranking) == ("fixed", None)
    assert equal.mean.mean == pytest.approx(1 / 60)


def test_times_that_hardly_vary_are_never_called_exponential() -> None:
    rng = np.random.default_rng(4)
    for cv in (1e-5, 1e-4, 1e-3, 1e-2):
        one = fitted(94 * (1 + cv * rng.standard_normal(25)), resolution_s=1e-6)
        assert one.family != "exponential"
        assert one.mean.mean * 3600 == pytest.approx(94, rel=4 * cv)
        assert one.mean.low < one.mean.mean < one.mean.high


@pytest.mark.parametrize(
    ("duration_s", "resolution_s", "said"),
    [
        ([90.0, 98.0], 1e-3, "only 2 saves: taken as fixed"),
        ([60.0, 100.0, 200.0], 1e-3, "only 3 saves: their mean of 120 s may be anything"),
        ([0.0, 0.0, 60.0, 120.0, 180.0, 60.0], 1.0, "2 saves of no time at all"),
        ([60.0, 120.0, 180.0, 60.0], 60.0, "in steps of 60 s"),
        (np.random.default_rng(9).lognormal(0, 6, 200), 1e-9, "describes the saves best, but"),
        (np.random.default_rng(0).gamma(4, 20, 20), 1e-3, ""),
    ],
)
def test_what_few_coarse_or_wild_times_tell_is_noted(
    duration_s: Sequence[float], resolution_s: float, said: str
) -> None:
    one = fitted(duration_s, resolution_s)
    assert said in " / ".join(one.notes)
    assert bool(one.notes) == bool(said)
    assert one.mean.has_interval != (len(duration_s) < 3)


def test_rows_of_several_servers_are_noticed() -> None:
    several = transfers([60.0] * 4).assign(start_h=np.array([0.0, 0.0, 1.0, 1.01]))
    (one,) = fit_costs(several, n_bootstrap=0)
    assert "2 of the saves began before or as another ended" in one.notes[0]


@pytest.mark.parametrize("n", [10, 30, 60, 300])
def test_a_trend_is_false_in_one_of_a_hundred_logs(n: int) -> None:
    rng, n_logs = np.random.default_rng(n), 400
    n_false = sum(len(_drift_h(rng.gamma(4, 20, n), 0.0)) > 0 for _ in range(n_logs))
    error = math.sqrt(n_logs * P_DRIFT)
    assert n_false <= n_logs * P_DRIFT + 4 * error, f"{n_false}, error {error:.2g}"


@pytest.mark.parametrize(("begins", "ends"), [(48, 60), (20, 40)])
def test_a_slow_period_is_found_wherever_it_lies(begins: int, ends: int) -> None:
    rng, n_logs, number = np.random.default_rng(5), 100, np.arange(60)
    slower = np.where((number >= begins) & (number < ends), 2.0, 1.0)
    found = [_drift_h(rng.gamma(16, 5, 60) * slower, 0.0) for _ in range(n_logs)]
    assert sum(len(drift_h) > 0 for drift_h in found) >= 90
    assert all(most_h > 1.5 * least_h for *_, least_h, most_h in filter(None, found))


@pytest.mark.parametrize(
    "duration_s",
    [
        [30.0] * 40,
        [30.0, 31.0] * 20,
        [100.0 + number / 10 for number in range(60)],  # 6 % in all: too little to matter
        [10.0, 20.0, 30.0, 40.0],
    ],
)
def test_what_does_not_change_or_matter_is_no_trend(duration_s: list[float]) -> None:
    assert fitted(duration_s).drift_h == ()


def test_bandwidth_is_all_bytes_over_all_hours() -> None:
    found = bandwidth_of(np.array([100.0, 100.0, math.nan]), np.array([1.0, 2.0, 1.0]))
    assert (found.n, found.mean_bytes) == (2, 100)
    assert found.rate.mean == pytest.approx(200 / 3)
    # residuals 100/3 and -100/3 over a mean of 1.5 h
    error = math.sqrt(2 * (100 / 3) ** 2 / 2) / 1.5
    assert found.rate.high == pytest.approx(200 / 3 * math.exp(1.959964 * error / (200 / 3)))
    assert found.rate.low * found.rate.high == pytest.approx(found.rate.mean**2)


# ------------------------------------------------------------------------- the fragment


def fragment_of(path: Path, unit: str) -> str:
    fits = fit_costs(read_transfers(path, LogSpec(time_unit=unit))[0], n_bootstrap=0)
    return str(costs_fragment(fits, "a log"))


def test_costs_of_a_log_run_in_a_scenario_as_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for i, save_s in enumerate(rng.lognormal(math.log(90), 0.3, 300)):
        rows.append(f"save,{i * 3600},{i * 3600 + save_s:.3f},{save_s * 2e8:.0f}")
        rows.append(f"load,{i * 3600 + 1800},{i * 3600 + 1860},")
    text = fragment_of(log(tmp_path, rows), "s")
    assert "# 300 saves, lognormal; mean 95 %: " in text
    assert "# 300 loads, fixed; between 59 and 61 s" in text
    assert "reschedule: 0 s  # not in the log" in text
    costs = assembled(text).costs
    mean_s = 90 * math.exp(0.3**2 / 2)
    assert costs.mean_h(costs.save_stall, 4) * 3600 == pytest.approx(mean_s, rel=0.1)
    assert costs.mean_h(costs.load, 4) == pytest.approx(1 / 60)

    text = fragment_of(log(tmp_path, [f"save,{i},{i + 0.01},100 GB" for i in range(5)]), "h")
    (storage,) = (line[2:] for line in text.splitlines() if line.startswith("# storage:"))
    assert "`save: transfer`, 100 GB over `emb_ps` as `shard_size`" in text
    by_bytes = f"costs: {{save: transfer, load: 1 min, reschedule: 0 s}}\n{storage}"
    costs = assembled(by_bytes, "cluster.shard_size=25 GB").costs
    assert costs.mean_h(costs.save_stall, 4) == pytest.approx(0.01, rel=1e-4)

    rows = ["detect,0,30", "reschedule,30,150", "load,150,250"]
    text = fragment_of(log(tmp_path, rows, "kind,start,end"), "s")
    said = {"load": "100 s", "detect": "30 s", "reschedule": "2 min"}
    assert yaml.safe_load(text)["costs"] == said
    assert "# save: not in the log" in text


def test_what_is_fitted_lies_within_what_a_scenario_takes() -> None:
    rng = np.random.default_rng(9)
    wild = {
        "hardly varying": 94 * (1 + 3e-4 * rng.standard_normal(50)),
        "milliseconds": rng.gamma(2, 1e-3, 50),
        "days": rng.gamma(2, 1e5, 50),
        "far spread": rng.lognormal(0, 6, 50),
        "mostly nothing": rng.gamma(0.04, 100, 400).clip(1e-3),
    }
    for name, drawn_s in wild.items():
        fits = fit_costs(transfers(drawn_s, 1e-6), n_bootstrap=0)
        text = replace(costs_fragment(fits, name), below=())
        costs = assembled(f"{text}  load: 3 min\n").costs
        assert costs.mean_h(costs.save_stall, 4) == pytest.approx(fits[0].mean.mean, rel=1e-4)


# ------------------------------------------------------------------------- the reader


@pytest.mark.parametrize(
    ("start", "end", "unit", "step_s", "took_s"),
    [
        ("2026-03-01T10:00:00+01:00", "2026-03-01T09:01:30Z", None, 1.0, 90.0),
        ("2026-03-01 09:00:00.250", "2026-03-01 09:01:30.25", None, 0.001, 90.0),
        ("2026-03-01T09:00", "2026-03-01T09:02", None, 60.0, 120.0),
        ("2026-03-01", "2026-03-02", None, 86400.0, 86400.0),
        ("1772355600", "1772355690", None, 1.0, 90.0),
        ("1772355600000", "1772355690000", "ms", 0.001, 90.0),
        ("9.5", "9.525", "h", 3.6, 90.0),
        ("1e3", "1.09e3", "s", 1.0, 90.0),
    ],
)
def test_times_are_read_to_the_step_in_which_they_are_written(
    tmp_path: Path, start: str, end: str, unit: str | None, step_s: float, took_s: float
) -> None:
    found, _ = read_transfers(log(tmp_path, [f"SAVE,{start},{end},"]), LogSpec(time_unit=unit))
    assert found["kind"].tolist() == ["save"]
    assert found["duration_h"][0] * 3600 == pytest.approx(took_s, abs=1e-5)
    assert found["resolution_h"][0] * 3600 == pytest.approx(step_s)


def test_bytes_other_columns_repeats_and_rows_without_an_end(tmp_path: Path) -> None:
    rows = ["save,0,1,5e9", "save,2,3,5 GB", "save,4,5,1 GiB", "save,6,7,"]
    found, _ = read_transfers(log(tmp_path, rows), LogSpec(time_unit="h"))
    np.testing.assert_array_equal(found["n_bytes"], [5e9, 5e9, 2**30, math.nan])
    rows = ["save,0,1,a,x", "save,0,1,a,x", "save,0,1,a,x", "save,5,,a,x", "load,7,8,b,x"]
    path = log(tmp_path, rows, "what,begin,end,rank,note")
    found, notes = read_transfers(
        path, LogSpec(columns={"kind": "what", "start": "begin"}, time_unit="h")
    )
    assert found["kind"].tolist() == ["save", "load"]
    twice, unread, endless = notes
    assert twice == "2 rows said twice, counted once"
    assert unread == "column(s) not read: rank (a 4, b 1), note (x 5)"
    assert "1 save without an end left out" in endless


@pytest.mark.parametrize(
    ("row", "unit", "complaint"),
    [
        ("store,0,1,5", "h", "saves.csv:3: .*'store' is none of save, load"),
        ("save,3,1,5", "h", "saves.csv:3: .*'1' lies before the start"),
        ("save,,4,5", "h", "saves.csv:3: .*the row has no start"),
        ("save,3,4,-5", "h", "saves.csv:3: .*'-5' is no number of bytes"),
        ("save,3,4,5 s", "h", "saves.csv:3: .*'5 s' is no number of bytes"),
        ("save,2026-10-25T02:59:30,2026-10-25T02:01:00,", None, "local time that was"),
        ("save,1,3,", None, "saves.csv:2: time_unit: the times are numbers"),
        ("save,1,1,5", "h", "every save of the log takes no time"),
        ("save,1,,5", "h", "no row of the log has an end"),
    ],
)
def test_a_log_that_says_nothing_or_a_bad_row_is_refused(
    tmp_path: Path, row: str, unit: str | None, complaint: str
) -> None:
    with pytest.raises((TraceError, ParameterError), match=complaint):
        fit_costs(read_transfers(log(tmp_path, ["", row]), LogSpec(time_unit=unit))[0])
