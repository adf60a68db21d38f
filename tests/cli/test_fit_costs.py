"""``cprsim fit-costs``: the table, the object, the fragment, and what is wrong with a log."""

from __future__ import annotations

import json
from math import exp
from statistics import NormalDist

import pytest


@pytest.fixture
def log(tmp_path):
    """Saves of about 90 s, lognormal, with their bytes, and three loads."""
    rows = ["kind,start,end,bytes"]
    lognormal = [exp(NormalDist(4.5, 0.8).inv_cdf((i + 0.5) / 60)) for i in range(60)]
    for i, save_s in enumerate(lognormal):
        rows.append(f"save,{3600 * i},{3600 * i + save_s:.1f},{3e9 * save_s:.0f}")
    rows += [f"load,{3600 * i + 1800},{3600 * i + 1860 + 20 * i}," for i in range(3)]
    path = tmp_path / "saves.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_the_printed_fragment_runs_in_a_scenario(cprsim, log, scenario):
    printed = cprsim("fit-costs", log, "--time-unit", "s", "--bootstrap", 0).stdout
    fragment = printed[printed.index("# fitted to") :]
    kept = [line for line in scenario.read_text().splitlines() if not line.startswith("costs:")]
    scenario.write_text("\n".join([*kept, fragment]))
    assert cprsim("validate", scenario).exit_code == 0


def test_json_is_one_object(cprsim, log):
    found = json.loads(
        cprsim("fit-costs", log, "--time-unit", "s", "--bootstrap", 9, "--json").stdout
    )
    save, load = found["save"], found["load"]
    assert (save["n"], load["n"], save["family"]) == (60, 3, "lognormal")
    names = [family["name"] for family in save["families"]]
    assert sorted(names) == ["exponential", "gamma", "lognormal", "weibull"]
    assert [family["aic"] for family in save["families"]] == sorted(
        family["aic"] for family in save["families"]
    )
    sigma = save["families"][0]["parameters"]["sigma"]
    assert sigma["low"] < sigma["estimate"] < sigma["high"]
    assert 0 < save["families"][0]["p_value"] <= 1
    assert save["bandwidth"]["bytes_per_h"]["estimate"] == pytest.approx(3e9 * 3600, rel=1e-3)
    assert load["bandwidth"] is None
    assert "\ncosts:\n" in found["fragment"]


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("kind,start,end\nsave,9,3\n", ["--time-unit", "s"], "log.csv:2: end: '3' lies before"),
        ("kind,start,end\nsave,1,3\n", [], "log.csv:2: time_unit: the times are numbers"),
        ("kind,begin,end\nsave,1,3\n", [], "log.csv:1: start: there is no column 'start'"),
        ("kind,start,end\nsave,1,3\n", ["--column", "start"], "--column: 'start' is no pair"),
        ("kind,start,end\nsave,1,1\n", ["--time-unit", "s"], "every save of the log takes no"),
        ("", [], "log.csv: is empty"),
    ],
)
def test_what_is_wrong_ends_in_one_clear_message(cprsim, tmp_path, text, options, complaint):
    path = tmp_path / "log.csv"
    path.write_text(text)
    called = cprsim("fit-costs", path, *options)
    assert called.exit_code == 2
    assert complaint in called.stderr
    assert len(called.stderr.strip().splitlines()) == 1
    assert called.stdout == ""
