"""What keeps systems out: keys that the scenario lacks, and a save that is one time."""

import pytest

from cprsim.commands.systems.candidates import (
    LeftOut,
    candidates_of,
    missing_sentence,
    split_save,
)
from cprsim.results.run import warnings_of
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario

TEXT = """\
name: lacking
job: {useful: 100 h, step: 1 s}
cluster: {workers: 8, state: 90 GB, link: 80 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 10 h, role: worker}
storage: {bandwidth: 96 Gbit/s}
costs: {save: 90 s, load: 1 min}
recovery: [full]
"""


def experiment(text: str = TEXT) -> Experiment:
    return assemble(load_scenario("lacking.yaml", text=text))


@pytest.mark.parametrize(
    ("key", "written"), [("cluster.link", ", link: 80 Gbit/s"), ("job.step", ", step: 1 s")]
)
def test_a_missing_key_is_named_with_the_number_of_systems(key: str, written: str) -> None:
    loaded = load_scenario("lacking.yaml", text=TEXT.replace(written, ""))
    candidates, left_out = candidates_of(loaded, assemble(loaded, with_policies=False))
    names = [name for name, why in left_out.items() if why.key == key]
    assert names
    assert "no embedding tables" in left_out["check-n-run"].words
    n = len(candidates) + len(left_out)
    assert f"of {n} systems are not compared" in missing_sentence(left_out, n)
    assert f"`{key}` ({len(names)})" in missing_sentence(left_out, n)
    again = candidates_of(load_scenario("lacking.yaml", text=TEXT), experiment())[0]
    assert set(names) & {candidate.name for candidate in again}


def test_nothing_is_said_where_no_key_of_every_job_is_missing() -> None:
    assert missing_sentence({"a": LeftOut("give `disk`, a bandwidth")}, 9) == ""


def test_a_save_of_one_time_is_the_copy_and_the_writing() -> None:
    made = experiment()  # 720 GB at 12 GB/s: 60 s; 90 GB at 10 GB/s: 9 s
    assert made.facts.snapshot_h == pytest.approx(30 / 3600)
    assert "30 s to copy to host memory, 1 min to write" in next(split_save(made))
    made = experiment(TEXT.replace("save: 90 s", "save: 62 s"))  # not less than over the link
    assert made.facts.snapshot_h == pytest.approx(9 / 3600)
    assert not warnings_of(made)


def test_a_save_that_is_shorter_than_its_writing_is_said() -> None:
    made = experiment(TEXT.replace("save: 90 s", "save: 20 s"))
    assert made.facts.snapshot_h == pytest.approx(20 / 3600)
    assert made.facts.persist_h == pytest.approx(60 / 3600)
    (warning,) = warnings_of(made).values()
    assert "`costs.save`: it is 20 s, and the storage takes 1 min to write the state" in warning
