"""What Python makes of the compiled loop is what machine code does, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cprsim.compiling import COMPILING_S, LOADING_S, Compiled, always
from cprsim.errors import CprsimError
from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import Outcome, simulate
from cprsim.scenario import load_scenario
from cprsim.simulate import blocks
from cprsim.simulate.fast import replications
from cprsim.simulate.fast.interpreting import interpreted
from cprsim.simulate.strikes import GivenFailures
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
    again, *by_python = by_fast.run(job, failures, draws, interpreted)
    assert again == status
    assert [array.tobytes() for array in by_python] == [array.tobytes() for array in compiled]


@pytest.mark.parametrize(("each_s", "ran"), [(0.01, [4, 16, 64, 16]), (0.1, [4, -96])])
def test_the_first_ones_tell_how_long_the_others_would_be_interpreted(
    each_s: float, ran: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    job, _, _ = CASES["random"](0)
    n, now_s, found = 100, 0.0, []
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # nothing is kept
    loop = Compiled(lambda: None, {})
    monkeypatch.setattr(replications, "run", loop)
    monkeypatch.setattr(blocks, "thread_time", lambda: now_s)
    draws = blocks.BlockDraws(job, 0, 0, n, range(n))
    hours, counts = np.zeros((1, n)), np.zeros((3, n), dtype=np.int64)
    block = blocks._Block(job, GivenFailures(((),) * n), draws, hours, counts, keeps=False)

    def by(how: Any, rows: np.ndarray) -> list[np.ndarray]:
        nonlocal now_s
        now_s += each_s * len(rows)
        found.append(-len(rows) if how is loop else len(rows))
        return []

    monkeypatch.setattr(block, "_by", by)
    assert list(block.run(np.arange(n))) == []
    assert found == ran


def test_machine_code_is_used_where_it_is_sooner_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))  # read when it was imported
    loop, again = Compiled(doubled, {}), Compiled(doubled, {})
    assert not loop.pays(0.9 * COMPILING_S)
    assert loop.pays(1.1 * COMPILING_S)
    loop.interpreted_s = 0.5 * COMPILING_S
    assert loop.pays(0.6 * COMPILING_S)
    assert loop(4) == 8  # compiled, and kept
    assert loop.pays()
    assert not again.pays(0.9 * LOADING_S)
    assert again.pays(1.1 * LOADING_S)
    with always(machine_code=False):
        assert not loop.pays()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not again.pays(1e9)


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
