"""What tests of several rooms need."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import hypothesis
import pytest

from cprsim.cli import SEARCH_AFTER

pytest.register_assert_rewrite("tests.engines", "tests.recovery.lives")
gc.set_threshold(*SEARCH_AFTER)  # as the program does
hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def failure_logs() -> Path:
    """The folder with the real failure logs."""
    if "CPRSIM_DATA" not in os.environ:
        pytest.skip("CPRSIM_DATA does not name the folder with the real failure logs")
    return Path(os.environ["CPRSIM_DATA"]) / "failures"
