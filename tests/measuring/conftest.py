"""A measurement small enough to be run whole."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cprsim.scenario.reading import load_scenario
from cprsim.training.measuring.design import Design
from cprsim.training.measuring.measure import Measured, MeasureRequest, measure
from cprsim.workers import HERE

JOB = """
job: {useful: 50 h}
cluster: {emb_ps: 4}
failures: {kind: injected, count: 2}
costs: {save: 5 min, load: 5 min, detect: 0 s, reschedule: 0 s}
recovery: [full, partial]
kernel: KERNEL
simulation: {seed: 1, replications: 100}
"""
SCENARIO = JOB.replace(
    "KERNEL",
    "{samples: 6000, most_rows: 30, dimension: 4, bottom: [8], top: [8], optimizer: adagrad, "
    "rate: 0.03, batch: 50}",
)
DESIGN = Design(
    strategies=("partial", "mfu"),
    n_more=2,
    shortest=0.6,
)
RUNS_PER_SEED = 4 * 2 + 2 + 2 * 2 + 1  # scenes, more of partial, histories held out, the twin


def request_in(folder: Path, scenario: Path, **more: object) -> MeasureRequest:
    options = {"design": DESIGN, "workers": HERE, "n_seeds": 3, **more}
    return MeasureRequest(load_scenario(scenario), folder, **options)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def own_scenario(tmp_path: Path) -> Callable[..., Path]:
    """Of a trainer that a module makes."""

    def write(trainer: str = "tests.measuring.wrapped:make") -> Path:
        path = tmp_path / "own.yaml"
        kernel = f"{{trainer: '{trainer}', options: {{samples: 3000}}}}"
        path.write_text(JOB.replace("KERNEL", kernel))
        return path

    return write


@pytest.fixture
def request_of(scenario: Path, tmp_path: Path) -> Callable[..., MeasureRequest]:
    def make(folder: str = "runs", **more: object) -> MeasureRequest:
        return request_in(tmp_path / folder, scenario, **more)

    return make


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[MeasureRequest, Measured]:
    """A measurement that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.yaml").write_text(SCENARIO)
    request = request_in(folder / "runs", folder / "small.yaml")
    return request, measure(request)
