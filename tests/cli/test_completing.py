"""What a shell offers after TAB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cprsim.cli import completing
from cprsim.curves import shipped_names
from cprsim.fleets.options import SHORT
from cprsim.recovery import STRATEGIES
from cprsim.recovery.systems import SYSTEMS
from cprsim.reproduce import STUDIES
from cprsim.scenario import load_scenario
from cprsim.scenario.answers import JobKind
from cprsim.shipping import shipped_scenarios
from cprsim.sweeps.points import TAKES
from tests.making import SCENARIOS

HEAVY = ("numpy", "pandas", "yaml", "numba", "cprsim.scenario", "cprsim.recovery")


def offered(offer, incomplete="", scenario=None) -> list[str]:
    context = SimpleNamespace(params={"scenario": scenario}, args=[])
    return [name for name, _ in offer(context, incomplete)]


def test_all_names_are_offered() -> None:
    assert offered(completing.shipped) == list(shipped_scenarios())
    assert offered(completing.studies) == list(STUDIES)
    assert offered(completing.kinds) == list(JobKind)
    assert set(offered(completing.systems)) == {*STRATEGIES, *SYSTEMS}
    assert set(shipped_names()) <= set(offered(completing.curves))


def test_what_is_offered_begins_as_what_was_typed() -> None:
    assert offered(completing.systems, "gem") == ["gemini"]
    assert offered(completing.systems, "nothing-of-the-kind") == []


def test_scenarios_are_files_and_folders_of_ones_own_too(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for name in ("mine/a.yaml", "mine/b.txt", "mine.yml", ".mine.yaml"):
        (tmp_path / name).touch()
    assert offered(completing.scenarios, "mi") == ["mine/", "mine.yml"]
    assert offered(completing.scenarios, "mine/") == ["mine/a.yaml"]
    assert offered(completing.scenarios, f"{tmp_path}/mine/") == [f"{tmp_path}/mine/a.yaml"]
    assert offered(completing.scenarios, "nowhere/") == []


def test_units_of_keys_are_no_markup() -> None:
    context = SimpleNamespace(params={"scenario": None}, args=[])
    said = dict(completing.keys(context, "costs.detect.mean"))
    assert said["costs.detect.mean"].startswith("Mean (time)")


@pytest.mark.parametrize(
    ("typed", "key"),
    [
        ("", "failures.mtbf"),
        ("costs.s", "costs.save"),
        ("failures.fr", "failures.frailty.shape"),
        ("failures.roles.", "failures.roles.worker.mtbf"),
        ("recovery.", "recovery.hsdp.options"),
        ("recovery.hsdp.o", "recovery.hsdp.options.group"),
        ("scopes.h", "scopes.hang.detect"),
        ("cluster.sp", "cluster.spares"),
    ],
)
def test_keys_are_dotted_paths_of_the_schema(typed, key) -> None:
    keys = offered(completing.keys, typed, SCENARIOS / "llm.yaml")
    assert key in keys
    assert all(one.startswith(typed) for one in keys)
    assert len(keys) == len(set(keys))


def test_keys_that_are_offered_are_keys_that_a_scenario_takes() -> None:
    path = SCENARIOS / "llm.yaml"
    values = {"costs.detect": "1 min", "cluster.spares": "2", "recovery.hsdp.options.group": "8"}
    values |= {"scopes.hang.detect": "1 h", "job.useful": "3 h", "simulation.seed": "4"}
    for key in values:
        assert key in offered(completing.keys, key, path)
    load_scenario(path, [f"{key}={value}" for key, value in values.items()])


def test_the_entries_of_a_shipped_scenario_are_offered_by_its_name() -> None:
    for scenario in ("quickstart", Path("quickstart")):
        assert "recovery.cpr.target_pls" in offered(completing.keys, "recovery.cpr.t", scenario)


def test_an_axis_may_be_more_than_a_key() -> None:
    for_all = {f"recovery.{option}" for option in TAKES}
    assert set(completing.OF_ALL) == for_all
    assert for_all <= set(offered(completing.axes, "recovery.", "quickstart"))
    assert for_all.isdisjoint(offered(completing.keys, "recovery.", "quickstart"))
    assert set(completing.OF_FLEETS) == set(SHORT)
    bare = offered(completing.options_of_fleets, "s", "planning")
    assert {"spares", "storage", "savers"} <= set(bare)
    assert offered(completing.axes, "costs.s") == offered(completing.keys, "costs.s")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("simulation.engine=", ["auto", "simpy", "fast"]),
        ("failures.fam", []),
        ("failures.family=wei", ["weibull"]),
        ("recovery.hsdp.strategy=gem", ["gemini"]),
        ("costs.save=", ["transfer"]),
        ("costs.nothing=", []),
    ],
)
def test_after_the_sign_words_that_the_key_takes_are_offered(typed, words) -> None:
    key, _, _ = typed.partition("=")
    found = offered(completing.keys, typed, SCENARIOS / "llm.yaml")
    assert {f"{key}={word}" for word in words} <= set(found)
    assert all(one.startswith(typed) for one in found)
    assert "=" not in typed or bool(found) == bool(words)


def test_a_scenario_that_cannot_be_read_takes_no_keys_away(tmp_path) -> None:
    damaged = tmp_path / "damaged.yaml"
    damaged.write_bytes(b"\xff\xferecovery:\n  - full")
    assert "costs.save" in offered(completing.keys, "costs.", damaged)
    assert offered(completing.keys, "recovery.", damaged) == []


def test_nothing_is_offered_where_anything_goes_wrong(monkeypatch) -> None:
    monkeypatch.setattr(completing, "_schema", lambda: {"properties": 3})
    assert offered(completing.keys, "costs.") == []
    assert offered(completing.systems) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "quicks"], {"quickstart"}),
        (["sweep", "quickstart", "--over", "cluster.emb"], {"cluster.emb_ps"}),
        (["run", "quickstart", "--set", "recovery.cpr.t"], {"recovery.cpr.target_pls"}),
        (
            ["sweep", "--seed", "3", "quickstart", "--over", "recovery.full.i"],
            {"recovery.full.interval"},
        ),
        (["run", "no-such-scenario", "--set", "costs.lo"], {"costs.load"}),
        (["reproduce", "fig"], {"fig-overheads"}),
    ],
)
def test_a_real_shell_is_answered_without_loading_the_program(words, expected) -> None:
    """Modules that take a second to load stay out, so that the answer comes at once."""
    asked = {
        "_CPRSIM_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["cprsim", *words]),
        "COMP_CWORD": str(len(words)),
    }
    program = (
        "import sys; from cprsim.cli import main\n"
        "try: main()\n"
        f"finally: print(*[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked}, capture_output=True, text=True, check=False,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    assert expected <= set(answer.stdout.split())
    assert answer.stderr.strip() == ""
