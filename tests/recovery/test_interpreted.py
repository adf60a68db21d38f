"""What Python makes of the compiled loop is what machine code does, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.compiling import Compiled, always
from cprsim.errors import CprsimError
from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import Outcome, simulate
from cprsim.scenario import load_scenario
from tests.making import SCENARIOS
from tests.recovery import by_fast
from tests.recovery.test_engines import CASES

N_REPLICATIONS = 40
NO_RUN = ("fleet", "rehearsal", "shadowsync")  # of other commands
SHIPPED = sorted(path.stem for path in SCENARIOS.glob("*.yaml") if path.stem not in NO_RUN)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_have_the_same_bits(name: str) -> None:
    try:
        experiment = assemble(load_scenario(SCENARIOS / f"{name}.yaml"))
    except CprsimError as error:
        pytest.skip(f"without its files: {error}")
    found = []
    for machine_code in (True, False):
        with always(machine_code=machine_code):
            found.append(bytes_of(simulate(replace(experiment, n_replications=N_REPLICATIONS))))
    assert found[0] == found[1]


def bytes_of(outcome: Outcome) -> list[bytes]:
    """All numbers of all replications and losses."""
    return [
        np.asarray(getattr(record, name)).tobytes()
        for one in outcome.strategies
        for record in (one.costs, one.losses)
        for name in record.__dataclass_fields__
    ]


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("seed", range(10))
def test_random_policies_have_the_same_bits(kind: str, seed: int) -> None:
    job, failures, draws = CASES[kind](seed)
    status, *compiled = by_fast.run(job, failures, draws)
    again, *by_python = by_fast.run(job, failures, draws, by_fast.in_python)
    assert again == status
    assert [array.tobytes() for array in by_python] == [array.tobytes() for array in compiled]


def test_more_than_three_seconds_of_python_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for given_s, pays in (
        ([2.9], [False]),
        ([3.1], [True]),
        ([2.0, 1.5, 0.1], [False, True, True]),
    ):
        loop = Compiled(doubled, {}, "")
        assert [loop.pays(one) for one in given_s] == pays
    loop = Compiled(doubled, {}, "")
    loop.expect(2.9)
    assert not loop.pays(0.2)
    loop.expect(2.9)
    assert loop.pays(0.2)
    with always(machine_code=False):
        assert not loop.pays(9.0)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not loop.pays(9.0)


def doubled(x: int) -> int:
    return 2 * x


@pytest.mark.long
def test_few_replications_need_no_compiler_and_many_say_that_it_is_asked(tmp_path: Path) -> None:
    code = (
        "import sys; from cprsim.cli import main\n"
        "try: main()\n"
        "finally: print('numba' in sys.modules, file=sys.stderr)"
    )

    def ran(n: int) -> list[str]:
        command = [sys.executable, "-c", code, "run", str(SCENARIOS / "quickstart.yaml")]
        done = subprocess.run(
            [*command, "--replications", str(n), "--out", str(tmp_path / str(n))],
            capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        return done.stderr.splitlines()

    assert ran(100)[-1] == "False"
    for n_times in (1, 0):
        lines = ran(30_000 + n_times)
        assert lines[-1] == "True"
        assert sum("compiling the simulation" in line for line in lines) == n_times
