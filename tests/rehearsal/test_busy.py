"""When a run says nothing: pace, steal, false alarms."""

from __future__ import annotations

import pytest

from cprsim.rehearsal.busy import Load, Ticks

CALM = Load(0.0, 60.0, 0.0, 0, 0.5)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (Load(0.61, 60.0, 0.0, 0, 9.0), "beyond its pace"),
        (Load(-0.61, 60.0, 0.0, 0, 0.0), "beyond its pace"),
        (Load(0.11, 6.0, 0.0, 0, 0.0), "beyond its pace"),
        (Load(0.0, 60.0, 0.06, 0, 0.0), "6 % of the processor time"),
        (Load(0.0, 60.0, 0.0, 1, 0.0), "heartbeat"),
    ],
)
def test_each_of_the_rules_makes_a_run_invalid(load: Load, said: str) -> None:
    assert said in (load.too_busy or "")


@pytest.mark.parametrize("load", [CALM, Load(0.59, 60.0, 0.04, 0, 30.0), Load(0.09, 6.0, 0, 0, 0)])
def test_a_run_within_all_of_them_is_valid(load: Load) -> None:
    assert load.too_busy is None


def test_steal_is_a_share_of_all_processor_time() -> None:
    assert Ticks(1100, 30).stolen_since(Ticks(1000, 20)) == pytest.approx(0.1)
    assert Ticks.now().all > 0
