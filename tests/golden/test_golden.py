"""What small scenarios do, event by event, compared as text with what is recorded beside this file.

These are records, not theory: where a change moves them on purpose, look at the difference, write
the recorded file anew (``CPRSIM_RECORD=1 pytest tests/golden``), name what moved in the changelog.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import replay
from cprsim.scenario import load_scenario
from tests.making import SCENARIOS
from tests.simulate.building import told

HERE = Path(__file__).parent

CASES = {
    "quickstart-1": ("quickstart", 1, []),
    "production-0": ("production", 0, ["recovery=[{strategy: cpr, target_pls: 0.1}]"]),
    "nodes-18": (
        "quickstart",
        18,
        [
            "failures={kind: node, roles: {emb_ps: {family: weibull, mtbf: 40 h, shape: 0.7}}}",
            "costs.save={stall: 5 s, background: 4 min}",
            "cluster.spares=0",
            "cluster.repair={family: lognormal, mean: 30 min, median: 20 min}",
            "recovery=[full, {strategy: cpr-mfu, target_pls: 0.05}]",
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_events(name: str) -> None:
    scenario, replication, overrides = CASES[name]
    experiment = assemble(load_scenario(SCENARIOS / f"{scenario}.yaml", overrides))
    text = "".join(
        f"{strategy}\n" + "".join(f"  {line}\n" for line in told(log))
        for strategy, log in replay(experiment, replication).items()
    )
    recorded = HERE / f"{name}.txt"
    if os.environ.get("CPRSIM_RECORD"):
        recorded.write_text(text)
    assert text == recorded.read_text()
