from pathlib import Path

import pytest

from tests.making import Make, maker


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Make:
    """An experiment from the `SCENARIO` of the test's file, with overrides."""
    return maker(tmp_path, request.module.SCENARIO)
