"""What tests of planned rehearsals share."""

from __future__ import annotations

import pytest

from cprsim.experiments.proxy_model import proxy_model
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.setting import material_of
from cprsim.scenario.reading import load_scenario
from tests.rehearsal.making import SCENARIO, SMALL


@pytest.fixture(scope="session")
def shipped() -> Material:
    """That of the shipped scenario: its shards, and fewer clicks."""
    return material_of(proxy_model(load_scenario(SCENARIO, [SMALL])))
