"""``cprsim systems``: the listing within a terminal, one system in words, both for scripts."""

from __future__ import annotations

import json

import pytest

from tests.making import SCENARIOS
from tests.recovery.systems.by_hand import OF_LITERATURE


@pytest.fixture
def narrow(cprsim, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    return cprsim


def test_the_listing_names_every_system_within_80_columns(narrow):
    called = narrow("systems")
    assert called.exit_code == 0
    lines = called.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    first_words = {line.split()[0] for line in lines if line.strip()}
    assert first_words >= {*OF_LITERATURE, "none", "full", "partial", "cpr"}


def test_the_listing_for_scripts(cprsim):
    found = json.loads(cprsim("systems", "--json").stdout)["systems"]
    by_name = {one["name"]: one for one in found}
    assert set(by_name) >= set(OF_LITERATURE)
    gemini = by_name["gemini"]
    assert gemini["mark"] == "published"
    assert gemini["goes_back_to"]["node"] == "memory"
    assert gemini["goes_back_to"]["two nodes"] == "remote"
    assert "host memory 2x" in gemini["needs"]
    assert "no time beside the transfers" in gemini["assumed"]
    assert by_name["check-n-run"]["not_counted"].endswith("is not priced")


@pytest.mark.parametrize(
    ("name", "words"), [("recshard", "`cluster.shards`"), ("MegaScale", "`async`"),
                        ("c4", "`detect`"), ("chameleon", "`oobleck`"),
                        ("flowcheck", "`checkmate`"), ("ecrm", "`ecrec`")],
)  # fmt: skip
def test_a_name_of_the_literature_that_is_no_system_here_says_what_it_is(narrow, name, words):
    called = narrow("systems", name)
    assert called.exit_code == 0
    assert words in called.stdout
    assert "is no system here" in called.stdout


def test_gemini_is_explained_by_its_rules_tiers_saves_and_assumptions(cprsim):
    said = " ".join(cprsim("systems", "gemini").stdout.split())
    for words in (
        "1. If own memory is there and a content of peers survives: all go back",
        "peers: host, groups of 2 nodes (neighbours) that outlive 1 of them",
        "remote: every 3 h of progress; is written in 40 s behind it",
        "a node is lost: memory, from `peers`",
        "remote_every = 3 h: progress between saves to the remote storage",
        "Assumed: a machine copies to its own memory",
    ):
        assert words in said, words


def test_a_scenario_s_job_with_its_own_options(cprsim):
    llm = SCENARIOS / "llm.yaml"
    said = " ".join(cprsim("systems", "hsdp", "--job", llm).stdout.split())
    assert "groups of 8 nodes (far apart) that outlive 7" in said  # `group: 16` of 128
    changed = cprsim("systems", "gemini", "--job", llm, "--set", "cluster.link=100 Gbit/s").stdout
    assert "written in 8 s behind it" in changed


def test_a_job_that_a_system_can_t_serve_says_what_is_missing(cprsim, scenario):
    said = " ".join(cprsim("systems", "nvrx-local", "--job", scenario).stdout.split())
    assert "It can't serve small: " in said
    assert "give `disk`, a bandwidth" in said
    found = json.loads(cprsim("systems", "--job", scenario, "--json").stdout)["systems"]
    refused = {one["name"]: one["cannot_serve"] for one in found}
    assert "give `snapshot`" in refused["async"]
    assert refused["full"] is None


def test_what_is_wrong_is_one_error(cprsim):
    called = cprsim("systems", "gemni")
    assert called.exit_code == 2
    assert "did you mean `gemini`?" in called.stderr
    assert "Traceback" not in called.stderr
    assert cprsim("systems", "gemini", "--set", "job.step=1 s").exit_code == 2
    assert cprsim("systems", "--job", "nowhere.yaml").exit_code == 2
