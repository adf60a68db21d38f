"""What Python makes of the compiled loops is what machine code does, to the last bit."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.compiling import LOADING_S, Compiled, always
from cprsim.errors import CprsimError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.pipeline import Outcome, simulate
from cprsim.scenario import load_scenario
from cprsim.simulate import blocks
from cprsim.simulate.fast.loops import Interpreted, Loops
from cprsim.simulate.strikes import GivenFailures
from cprsim.workers.beside import both
from tests.making import SCENARIOS
from tests.recovery import by_fast
from tests.recovery.test_engines import CASES

N_REPLICATIONS = 40
NO_RUN = ("fleet", "rehearsal", "shadowsync")  # of other commands
SHIPPED = sorted(path.stem for path in SCENARIOS.glob("*.yaml") if path.stem not in NO_RUN)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_scenarios_have_the_same_bits(name: str) -> None:
    experiment = shipped(name)
    found = []
    for machine_code in (True, False):
        with always(machine_code=machine_code):
            found.append(bytes_of(simulate(experiment)))
    assert found[0] == found[1]


def shipped(name: str) -> Experiment:
    try:
        experiment = assemble(load_scenario(SCENARIOS / f"{name}.yaml"))
    except CprsimError as error:
        pytest.skip(f"without its files: {error}")
    return replace(experiment, n_replications=N_REPLICATIONS)


def bytes_of(outcome: Outcome) -> list[bytes]:
    """All numbers of all replications and losses."""
    arrays = [
        np.asarray(getattr(record, name))
        for one in outcome.strategies
        for record in (one.costs, one.losses)
        for name in record.__dataclass_fields__
    ]
    return [array.tobytes() for array in arrays]


@pytest.mark.parametrize("name", ["llm", "production", "moe"])
def test_two_processes_find_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = shipped(name)
    monkeypatch.setattr(Compiled, "pays", lambda loop, more_s=0.0: False)
    alone = bytes_of(simulate(experiment))
    halved = []
    monkeypatch.setattr(blocks, "TOLD_AFTER_S", 0.0)
    monkeypatch.setattr(blocks, "WORTH_A_COPY_S", 0.0)
    monkeypatch.setattr(
        blocks, "both", lambda here, there: halved.append(name) or both(here, there)
    )
    assert bytes_of(simulate(experiment)) == alone
    assert halved


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("seed", range(10))
def test_random_policies_have_the_same_bits(kind: str, seed: int) -> None:
    job, failures, draws = CASES[kind](seed)
    status, *compiled = by_fast.run(job, failures, draws)
    again, *interpreted = by_fast.run(job, failures, draws, Interpreted)
    assert again == status
    assert [array.tobytes() for array in interpreted] == [array.tobytes() for array in compiled]


def test_the_compiler_is_asked_as_soon_as_it_is_sooner_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loop = Compiled(lambda: None, {}, compiling_s=5.0)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # nothing is kept
    assert not loop.pays()
    assert not loop.pays(4.9)
    assert loop.pays(5.1)
    loop.interpreted_s = 3.0
    assert not loop.pays(1.9)
    assert loop.pays(2.1)


@dataclass(eq=False)
class Asked:
    """A loop whose machine code pays off from 0.3 s on."""

    interpreted_s: float = 0.0
    about_s: list[float] = field(default_factory=list)

    def pays(self, more_s: float) -> bool:
        self.about_s.append(more_s)
        return more_s > 0.3


@pytest.mark.parametrize(("by_two", "left_s"), [(False, 0.8), (True, 0.4)])
def test_how_long_the_others_take_is_guessed_of_enough_that_were_interpreted(
    by_two: bool, left_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 of 100 in 0.04 s tell nothing, 16 more in 0.16 s that one process takes 0.8 s for 80."""
    job, _, _ = CASES["random"](0)
    now_s, loop, n = 0.0, Asked(), 100
    monkeypatch.setattr(blocks, "thread_time", lambda: now_s)
    monkeypatch.setattr(blocks, "_interpreted", {})
    monkeypatch.setattr(blocks, "TOLD_AFTER_S", 0.05)
    monkeypatch.setattr(blocks, "may_copy", lambda: by_two)
    draws = blocks.BlockDraws(job, 0, 0, n, range(n))
    hours, counts = np.zeros((1, n)), np.zeros((3, n), dtype=np.int64)
    block = blocks._Block(job, GivenFailures(((),) * n), draws, hours, counts, keeps=False)
    ran = []

    def run(some: np.ndarray, loops: Loops) -> list[np.ndarray]:
        nonlocal now_s
        ran.append((len(some), type(loops)))
        now_s += 0.01 * len(some)
        return []

    assert list(block._by_whom(loop, run, np.arange(n))) == []
    assert ran == [(4, Interpreted), (16, Interpreted), (80, Loops)]
    assert loop.about_s == pytest.approx([0.0, 0.0, left_s])
    assert loop.interpreted_s == pytest.approx(0.2)


def test_within_a_block_of_always_nothing_else_is_asked() -> None:
    loop = Compiled(lambda: None, {}, compiling_s=5.0)
    with always(machine_code=True):
        assert loop.pays()
        with always(machine_code=False):
            assert not loop.pays(1e9)
        assert loop.pays()
    assert not loop.pays()


def test_what_is_kept_is_loaded_as_soon_as_that_is_sooner_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))  # read when it was imported
    source = tmp_path / "doubling.py"
    source.write_text("def double(x):\n    return 2 * x\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    double = importlib.import_module("doubling").double
    assert not Compiled(double, {}, compiling_s=5.0).pays(1.1 * LOADING_S)
    assert Compiled(double, {})(4) == 8  # compiled, and kept
    assert not Compiled(double, {}, compiling_s=5.0).pays(0.9 * LOADING_S)
    assert Compiled(double, {}, compiling_s=5.0).pays(1.1 * LOADING_S)


def test_a_first_small_run_does_without_the_compiler(tmp_path: Path) -> None:
    code = (
        "import sys; from cprsim.cli import main\n"
        "try: main()\n"
        "finally: print('numba' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", str(SCENARIOS / "quickstart.yaml"),
         "--replications", "100", "--out", str(tmp_path / "out")],
        capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "False"


def test_numba_switched_off_is_heeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not Compiled(lambda: None, {}).pays(1e9)
