from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from cprsim.assemble import assemble
from cprsim.errors import ParameterError, TraceError
from cprsim.failures.cost_fit import costs_fragment, fit_costs
from cprsim.failures.traces import read_transfers
from cprsim.scenario import load_scenario

REST = """\
job: {useful: 50 h}
cluster: {trainers: 2, emb_ps: 4}
failures: {kind: job, family: exponential, mtbf: 10 h}
recovery: [full]
simulation: {replications: 10}
"""


def log(folder: Path, rows: list[str], header: str = "kind,start,end,bytes") -> Path:
    path = folder / "saves.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_costs_of_a_log_run_in_a_scenario(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for i, save_s in enumerate(rng.lognormal(math.log(90), 0.3, 300)):
        rows.append(f"save,{i * 3600},{i * 3600 + save_s},{save_s * 2e8:.0f}")
        rows.append(f"load,{i * 3600 + 1800},{i * 3600 + 1860},")
    fits = fit_costs(read_transfers(log(tmp_path, rows), time_unit="s"), n_bootstrap=9)
    save, load = fits
    assert save.ranking is not None
    assert save.ranking.best.fit.family == "lognormal"
    sigma = save.ranking.best.fit.parameter("sigma")
    assert abs(sigma.estimate - 0.3) <= 4 * sigma.standard_error
    assert save.bandwidth_bytes_per_h / 3600 == pytest.approx(2e8, rel=1e-6)
    assert load.ranking is None  # always a minute
    assert math.isnan(load.bandwidth_bytes_per_h)
    text = costs_fragment(fits, "a log")
    assert text.endswith("# not in this log: detect, reschedule\n")
    assert yaml.safe_load(text)["costs"]["load"] == "60 s"
    scenario = tmp_path / "costs.yaml"
    scenario.write_text(f"{REST}{text}  reschedule: 2 min\n")
    costs = assemble(load_scenario(scenario)).costs
    mean_s = 90 * math.exp(0.3**2 / 2)
    assert costs.mean_h(costs.save_stall, 4) * 3600 == pytest.approx(mean_s, rel=0.1)
    assert costs.mean_h(costs.load, 4) == pytest.approx(1 / 60)


def test_bandwidth_is_all_bytes_over_all_hours(tmp_path: Path) -> None:
    rows = ["save,0,1,100", "save,2,4,100", "save,5,6,"]
    (save,) = fit_costs(read_transfers(log(tmp_path, rows), time_unit="h"), n_bootstrap=0)
    assert save.bandwidth_bytes_per_h == pytest.approx(200 / 3)
    # residuals 100/3 and -100/3 over a mean of 1.5 h
    assert save.bandwidth_error == pytest.approx(math.sqrt(2 * (100 / 3) ** 2 / 2) / 1.5)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("store,0,1,5", "'store' is neither save nor load"),
        ("save,3,1,5", "'1' lies before the start"),
        ("save,3,,5", "there is no end"),
        ("save,3,4,-5", "'-5' is no number of bytes"),
        ("save,3,4,many", "'many' is no number of bytes"),
        ("save,3,x,5", "'x' is no finite number"),
    ],
)
def test_bad_rows(tmp_path: Path, row: str, complaint: str) -> None:
    path = log(tmp_path, ["save,0,1,5", row])
    with pytest.raises(TraceError, match=r"saves.csv:3: ") as caught:
        read_transfers(path, time_unit="h")
    assert complaint in str(caught.value)


def test_a_log_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no column 'kind'"):
        read_transfers(log(tmp_path, ["1,2"], "start,end"), time_unit="h")
    nothing = read_transfers(log(tmp_path, ["save,1,1,5"]), time_unit="h")
    with pytest.raises(ParameterError, match="every save of the log takes no time"):
        fit_costs(nothing)
