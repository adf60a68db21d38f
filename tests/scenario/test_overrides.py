"""``--set``: what it changes, and how a wrong one names itself."""

from pathlib import Path

import pytest

from cprsim.errors import Place
from tests.scenario.writing import GOOD_TEXT, load, message


def test_a_time_is_overridden_and_says_where_it_came_from() -> None:
    loaded = load("costs.save=90 s")
    assert loaded.scenario.costs.save.stall == pytest.approx(90 / 3600)
    assert loaded.place("costs.save") == Place("costs.save", option="--set")
    assert loaded.place("costs.load") == Place(Path("good.yaml"), 11)


def test_entries_of_recovery_go_by_name_or_number() -> None:
    by_name = load("recovery.cpr.target_pls=0.05").scenario
    assert by_name == load("recovery.1.target_pls=0.05").scenario
    assert by_name.recovery[1].target_pls == 0.05
    spelled_out = load("recovery.full.interval=2 h").scenario.recovery[0]
    assert (spelled_out.name, spelled_out.interval) == ("full", 2.0)
    whole = load("recovery=[none, full]").scenario.recovery
    assert [entry.name for entry in whole] == ["none", "full"]


def test_a_name_with_dots_is_found() -> None:
    text = GOOD_TEXT.replace("{strategy: cpr,", "{strategy: cpr, name: cpr-0.1,")
    loaded = load("recovery.cpr-0.1.target_pls=0.2", text=text)
    assert loaded.scenario.recovery[1].target_pls == 0.2
    place = loaded.place("recovery.cpr-0.1.target_pls")
    assert str(place) == "--set recovery.cpr-0.1.target_pls"
    assert loaded.place("recovery.cpr-0.1.strategy").line == 15


@pytest.mark.parametrize(
    ("override", "where", "hint"),
    [
        ("costs.save=5", "--set costs.save: `5`", "write its unit"),
        ("cots.save=5 s", "--set cots.save: unknown key", "`costs`"),
        ("costs.load.mean=5 s", "--set costs.load.mean:", "not a section"),
        ("recovery.cpr.target_pls=2", "--set recovery.cpr.target_pls: `2`", "equal to 1"),
        ("recovery.loose.target_pls=2", "--set recovery.loose.target_pls:", "full, cpr"),
        ("recovery.7.target_pls=2", "--set recovery.7.target_pls:", "0 to 1"),
        ("failures.together=19", "--set failures.together: 19 nodes", "has 18"),
        ("costs.load=[1", "--set costs.load: is not", "is not valid YAML"),
        ("costs.save", "--set costs.save:", "KEY=VALUE"),
        ("failures={kind: job}", "--set failures.family:", "is missing"),
        ("costs..save=5 s", "--set", "KEY=VALUE"),
    ],
)
def test_a_wrong_override_names_itself(override: str, where: str, hint: str) -> None:
    said = message(override)
    assert said.startswith(where)
    assert hint in said


def test_wrong_overrides_come_all_at_once() -> None:
    assert len(message("costs", "recovery.x.name=1", "costs.load=[").splitlines()) == 3
    assert len(message("costs.load=3", "costs.save=4").splitlines()) == 2
