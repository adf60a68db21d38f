"""What tests of several rooms need."""

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from cprsim.cli import SEARCH_AFTER
from tests.making import small_scenario, undrawing

pytest.register_assert_rewrite("tests.simulators", "tests.recovery.lives")
os.environ.pop("COLUMNS", None)  # of xdist's workers: answers would be that wide
gc.set_threshold(*SEARCH_AFTER)  # as the program does
too_slow = [hypothesis.HealthCheck.too_slow]  # a busy machine is no failure
hypothesis.settings.register_profile("untimed", deadline=None, suppress_health_check=too_slow)
hypothesis.settings.load_profile("untimed")
# It draws constants of the modules imported so far: examples would follow the order of the tests.
providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture
def failure_logs() -> Path:
    """The folder with the real failure logs."""
    if "CPRSIM_DATA" not in os.environ:
        pytest.skip("CPRSIM_DATA does not name the folder with the real failure logs")
    return Path(os.environ["CPRSIM_DATA"]) / "failures"


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small scenario's file, in the folder that the test works in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(small_scenario(), "utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    programs = [shutil.which("chromium"), shutil.which("chromedriver")]
    if None in programs:
        pytest.skip("no Chromium: apt-get install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = programs[0]
    for option in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1280,900"):
        options.add_argument(f"--{option}")
    with Chrome(options, ChromeService(programs[1])) as driver:
        yield driver


@pytest.fixture
def undrawn() -> Iterator[None]:
    """Without the seconds that figures take."""
    with undrawing():
        yield
