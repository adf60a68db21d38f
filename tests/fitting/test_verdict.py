"""The verdict: by hand and with known truth."""

from __future__ import annotations

import json
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest

from cprsim.fitting.trace_fit import fit_trace, verdict
from tests.fitting.logs import log_of, write_log
from tests.making import call


def poisson_log(seed: int, rate_per_h: float, window_h: float, n_nodes: int = 20):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    at_h = np.sort(rng.random(rng.poisson(rate_per_h * window_h)) * window_h)
    node = rng.integers(n_nodes, size=len(at_h))
    return log_of(at_h, window_h, node, n_nodes, 1e-3, given=True)


def test_the_verdict_is_the_jobs_share_of_the_failures_with_an_interval() -> None:
    log = poisson_log(1, 0.05, 4000.0)
    said = verdict(fit_trace(log, n_bootstrap=0), 5)
    n = log.n_outages
    assert said.mtbf_h.mean == pytest.approx(4000 / n * 20 / 5)
    assert said.mtbf_h.low <= said.mtbf_h.mean * exp(-1.96 / sqrt(n)) * 1.001
    assert said.mtbf_h.low < 80 < said.mtbf_h.high
    assert said.sentences[0].startswith("A job on 5 of the 20 nodes meets a failure every ")
    assert f"from {n} failures" in said.sentences[1]


def test_the_verdict_opens_the_output_and_names_what_does_not_fit(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", poisson_log(2, 0.05, 2000.0))
    shown = call("fit", log, "--time-unit", "h", "--bootstrap", 0)
    assert shown.stdout.startswith("A job on 20 of the 20 nodes meets a failure every ")
    third = shown.stdout.splitlines()[2]
    assert (
        "does not say how many nodes there are, when it begins and when it ends: that is inferred"
        in third
    )
    said = json.loads(call("fit", log, "--time-unit", "h", "--bootstrap", 0, "--json").stdout)
    assert said["verdict"]["sentences"][2] == third
    assert said["verdict"]["low_h"] < said["verdict"]["mtbf_of_job_h"] < said["verdict"]["high_h"]
