"""The command ``fit``, and a scenario that runs on what they print."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from cprsim.experiments.assemble import assemble
from cprsim.fitting.trace_fit import fit_trace
from cprsim.plots.fit import fit_figures
from cprsim.plots.save import save_figure
from cprsim.scenario import load_scenario
from tests.failures.tidy import read_tidy
from tests.making import call

REST = """\
job: {useful: 50 h}
cluster: {trainers: 2, emb_ps: 4}
costs: {save: 5 min, load: 3 min, reschedule: 2 min}
recovery: [full]
simulation: {replications: 10}
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Six nodes, gamma gaps of the cluster with shape 0.6 and mean 20 h, in days."""
    rng = np.random.default_rng(3)
    at = np.cumsum(rng.gamma(0.6, 20 / 0.6, 200)) / 24
    rows = [f"{t:.6f},rack{rng.integers(6)},{t + 0.1:.6f},disk" for t in at]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["begin,host,end,cause", *rows]) + "\n")
    return path


@pytest.fixture
def options() -> list[str]:
    columns = ["--column", "start=begin", "--column", "node=host"]
    return [*columns, "--time-unit", "d", "--bootstrap", "3"]


def test_fit_prints_tables_and_a_fragment_that_a_scenario_takes(
    log: Path, options: list[str], tmp_path: Path
) -> None:
    result = call("fit", log, *options)
    assert result.exit_code == 0, result.output
    for line in ("Gaps between failures", "Up-times of the nodes", "Repair times", "failures:"):
        assert line in result.stdout
    scenario = tmp_path / "fitted.yaml"
    scenario.write_text(REST + result.stdout[result.stdout.index("# fitted to log.csv") :])
    loaded = load_scenario(scenario)
    expected = assemble(loaded).failures.expected
    from cprsim.records import Cluster, Holds, Role

    cluster = Cluster((Role("emb_ps", 4, Holds.SHARD), Role("trainer", 2, Holds.REPLICA)))
    assert 16 < expected(cluster, 50.0).mtbf_h < 25


def test_fit_as_one_object(log: Path, options: list[str]) -> None:
    result = call("fit", log, *options, "--json", "--nodes", 10)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    best = said["gaps"]["families"][0]
    assert {"name", "log_likelihood", "aic", "ks", "p_value", "parameters"} <= set(best)
    gamma = next(one for one in said["gaps"]["families"] if one["name"] == "gamma")
    shape = gamma["parameters"]["shape"]
    assert shape["low"] < 0.6 < shape["high"]
    assert said["uptimes"]["n_censored"] in (9, 10)
    assert said["groups"]["share_of_zero_gaps"] == 0
    assert call("fit", log, *options, "--json", "--nodes", 10).stdout == result.stdout


def test_filters_and_figures(
    log: Path, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Figure, "savefig", lambda self, file, **how: file.write(b"drawn"))
    alone = call("fit", log, *options, "--node", "rack3", "--json", "--out", tmp_path / "drawn")
    assert alone.exit_code == 0, alone.output
    said = json.loads(alone.stdout)
    assert 10 < said["gaps"]["n_observed"] < 80
    assert len(said["figures"]) == 8 == len(list((tmp_path / "drawn").iterdir()))
    both = call("fit", log, *options, "--cause", "DISK", "--json")
    assert json.loads(both.stdout)["gaps"]["n_observed"] == 194  # of 199: 5 within


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--node", "rack9"], "no node 'rack9'; did you mean 'rack"),
        (["--cause", "power"], "no outage has a cause with 'power'; there are: disk"),
        (["--column", "start"], "'start' is no pair"),
        (["--from", "1e9"], "period"),
        (["--format", "infinitehbd"], "--column: belongs to format "),
        (["--format", "lanle"], "--format: there is no 'lanle'; known are "),
        (["--nodes", "2"], "2 nodes given, but the file names 6"),
    ],
)
def test_what_is_wrong_ends_in_one_clear_message(
    log: Path, options: list[str], arguments: list[str], complaint: str
) -> None:
    result = call("fit", log, *options, *arguments)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.long
def test_figures_are_drawn_of_outages_that_all_last_as_long(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)  # their ends differ by rounding so that no time lies between
    start_h = np.sort(rng.random(800)) * 8760
    rows = [f"{rng.integers(49)},{at!r},{at + 1.0!r}" for at in start_h.tolist()]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["node,start,end", *rows]) + "\n")
    figures = fit_figures(fit_trace(read_tidy(log, time_unit="h"), n_bootstrap=0))
    assert list(figures) == ["gaps", "uptimes", "repairs", "failures"]
    for name, draw in figures.items():
        (path,) = save_figure(draw(), tmp_path / name, ["png"])
        assert path.stat().st_size > 10_000


@pytest.mark.long
def test_the_page_of_a_large_log_is_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    at_h, node = np.sort(rng.uniform(0, 9000, 12_000)), rng.integers(0, 400, 12_000)
    rows = (f"n{k},{at!r},{at + 0.1!r}" for k, at in zip(node.tolist(), at_h.tolist(), strict=True))
    path, page = tmp_path / "log.csv", tmp_path / "page.html"
    path.write_text("node,start,end\n" + "\n".join(rows) + "\n")
    shown = call("fit", path, "--time-unit", "h", "--bootstrap", 0, "--page", page)
    assert shown.exit_code == 0, shown.output
    assert page.stat().st_size < 1.5e6
    assert "11,998 failures; 0 of 400 nodes never failed" in page.read_text()
