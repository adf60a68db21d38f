"""``train``: the failures of one replication, on a real model."""

from functools import partial

import numpy as np
import pytest

from cprsim import run, train
from tests.cli.test_refusals import KERNEL


@pytest.fixture
def trained(scenario):
    """Train with the small scenario and overrides."""
    scenario.write_text(scenario.read_text() + KERNEL)
    return partial(train, scenario)


def by_name(answer) -> dict[str, dict]:
    return answer.frames["strategies"].set_index("strategy").to_dict("index")


def write_clicks(path, n: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for label in rng.integers(0, 2, n):
            categories = (f"{value:08x}" for value in rng.integers(0, 9, 26))
            print(label, *rng.integers(0, 50, 13), *categories, sep="\t", file=file)


def test_accuracy_stands_beside_overhead(trained, scenario):
    answer = trained(replay=3)
    strategies, whole = by_name(answer), answer.values["no_failures"]
    assert list(strategies) == ["full", "partial", "cpr"]
    assert 0.5 < whole["auc"] < answer.values["teacher"]["auc"] < 1
    assert {key: strategies["full"][key] for key in whole} == whole
    assert strategies["cpr"]["pls"] > 0
    assert {key: strategies["cpr"][key] for key in whole} != whole
    assert set(answer.rows["losses"]["run"]) == {"no failures", "partial", "cpr"}
    assert list(answer.figures) == ["loss"]
    ran = run(scenario, replay=3).frames["strategies"].set_index("strategy")
    for name, one in strategies.items():
        assert one["overhead_fraction"] == pytest.approx(ran.loc[name, "overhead_fraction"])
    assert strategies["cpr"]["pls"] == pytest.approx(ran.loc["cpr", "pls"])


def test_strategies_with_priority_save_their_urgent_rows_first(trained):
    often = "interval: 5 h, target_pls: 0.1"
    entries = ", ".join(
        f"{{strategy: cpr-{tracker}, {often}, sub_saves: {{large_tables: 5}}}}"
        for tracker in ("scar", "mfu", "ssu", "round-robin")
    )
    recovery = f"recovery=[{{strategy: cpr, {often}}}, {entries}]"
    strategies = by_name(trained([recovery, "failures.clock=progress"]))
    assert len({one["auc"] for one in strategies.values()}) == 5
    for one in strategies.values():
        assert one["pls"] == pytest.approx(strategies["cpr"]["pls"])
    memory = {name: one["tracker_memory_fraction"] for name, one in strategies.items()}
    assert memory["cpr"] == 0
    assert memory["cpr-mfu"] == pytest.approx(1 / 4)  # a counter beside four numbers
    written = strategies["cpr-round-robin"]["bytes_written"]
    assert written == pytest.approx(strategies["cpr"]["bytes_written"], rel=0.05)


def test_clicks_of_ones_own(trained, tmp_path, monkeypatch):
    write_clicks(tmp_path / "clicks.tsv", 1500)
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    answer = trained(['kernel.clicks={file: "${CPRSIM_DATA}/clicks.tsv"}'])
    assert answer.values["teacher"] is None
    assert "1,285 logged clicks" in answer.values["stand_in"]


def test_bad_clicks_are_an_error_with_file_and_line_or_skipped(cprsim, trained, scenario, tmp_path):
    log = tmp_path / "clicks.tsv"
    write_clicks(log, 1500)
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:7], "no click\n", *lines[7:]]))
    override = "kernel.clicks={file: clicks.tsv}"
    called = cprsim("train", scenario, "--set", override)
    assert (called.exit_code, called.stderr) == (2, f"{log}:8: 1 fields between tabs, not 40\n")
    answer = trained(["kernel.clicks={file: clicks.tsv, skip_bad: true}"])
    assert answer.values["skipped_lines"] == 1
    assert "Left out of the log: 1 bad line." in str(answer)
