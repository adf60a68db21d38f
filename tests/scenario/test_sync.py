"""The section `sync`: what it takes, and one clear line for whatever does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from cprsim.errors import ScenarioError
from cprsim.experiments.train_in_step import sync_setting
from cprsim.scenario import dump_scenario, load_scenario
from cprsim.sync.setting import Stragglers
from tests.scenario.writing import GOOD_TEXT, problems, write

SYNC = """\
sync:
  algorithm: fr-easgd
  iteration: 36 ms
  dense_size: 8 MB
  servers: 2
  server_bandwidth: 8 Gbit/s
  every: 5
"""

WRONG = {
    "sync.algorithm=shadow": ("sync.algorithm", "should be 'shadow-easgd'"),
    "sync.every=0": ("sync.every", "or equal to 1"),
    "sync.every=5 m": ("sync.every", "is no unit of a time"),
    "sync.every=5 GB": ("sync.every", "is no unit of a time"),
    "sync.every=null": ("sync.every", "is missing: fr-easgd synchronises at a fixed rate"),
    "sync.algorithm=shadow-easgd": ("sync.every", "shadow-easgd has no rate"),
    "sync.algorithm=fr-ma": ("sync.trainer_bandwidth", "is missing: fr-ma averages over it"),
    "sync.servers=null": ("sync.servers", "keeps its central copy on sync servers"),
    "sync.server_bandwidth=8": ("sync.server_bandwidth", "bare number: write its unit"),
    "sync.iteration=0 s": ("sync.iteration", "takes no time"),
    "sync.iteration=36": ("sync.iteration", "bare number: write its unit"),
    "sync.dense_size=8": ("sync.dense_size", "bare number: write its unit"),
    "sync.threads=0": ("sync.threads", "or equal to 1"),
    "sync.elastic=1.5": ("sync.elastic", "or equal to 1"),
    "sync={algorithm: shadow-ma, elastic: 1, iteration: 1 s, dense_size: 8 MB, "
    "trainer_bandwidth: 1 Gbit/s}": ("sync.elastic", "undoes all that its workers learn"),
    "sync.momentum=0.9": ("sync.momentum", "is of shadow-bmuf and fr-bmuf alone"),
    "sync.shadow_cost=0.03": ("sync.shadow_cost", "bare number: write its unit"),
    "sync.stragglers={trainers: 30, factor: 2}": ("sync.stragglers.trainers", "30 of 20"),
    "sync.stragglers={trainers: 1, factor: 0.5}": ("sync.stragglers.factor", "or equal to 1"),
    "cluster.trainers=0": ("cluster.trainers", "`sync` says how trainers stay in step"),
    "sync.server=2": ("sync.server", "unknown key"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path, GOOD_TEXT + SYNC)


@pytest.mark.parametrize("override", WRONG)
def test_what_does_not_fit_is_one_line_that_says_what_would(path: Path, override: str) -> None:
    key, hint = WRONG[override]
    (found,) = problems(path, override)
    assert found.key == key
    assert hint in found.message


def test_a_problem_names_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD_TEXT + SYNC.replace("every: 5", "every: -5"))
    (found,) = problems(path)
    assert (found.place.line, found.key) == (23, "sync.every")


def test_units_become_hours_and_bytes(path: Path) -> None:
    setting = sync_setting(load_scenario(path, ["sync.stragglers={trainers: 2, factor: 3}"]))
    assert setting.n_trainers == 20
    assert setting.iteration.mean_h == pytest.approx(1e-5)
    assert setting.dense_bytes == 8e6
    assert setting.server_bandwidth_bytes_per_h == pytest.approx(2 * 1e9 * 3600)
    assert setting.every_iterations == 5
    assert setting.every_h is None
    assert setting.stragglers == Stragglers(2, 3.0)
    timed = sync_setting(load_scenario(path, ["sync.every=36 s"]))
    assert timed.every_iterations is None
    assert timed.every_h == pytest.approx(0.01)


def test_the_elastic_coefficient_is_smaller_where_an_average_undoes_what_workers_learn(
    path,
) -> None:
    link = ["sync.trainer_bandwidth=25 Gbit/s", "sync.every=null"]
    default = {
        name: sync_setting(load_scenario(path, [*link, f"sync.algorithm={name}"])).elastic
        for name in ("shadow-easgd", "shadow-ma", "shadow-bmuf")
    }
    assert default == {"shadow-easgd": 0.5, "shadow-ma": 0.1, "shadow-bmuf": 0.1}
    given = ["sync.algorithm=shadow-ma", "sync.elastic=0.3"]
    assert sync_setting(load_scenario(path, [*link, *given])).elastic == 0.3


def test_a_dumped_section_loads_to_the_same(path: Path, tmp_path: Path) -> None:
    for override in ("sync.every=5", "sync.every=15 s", "sync.shadow_cost=3 %", "sync.elastic=0.3"):
        scenario = load_scenario(path, [override]).scenario
        again = write(tmp_path, dump_scenario(scenario), "again.yaml")
        assert load_scenario(again).scenario == scenario


def test_a_scenario_without_the_section_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="sync: is missing: say how the trainers stay in step"):
        sync_setting(load_scenario(write(tmp_path, GOOD_TEXT)))
