"""A trainer that a scenario names: whose code is run when, what is tried, what is measured."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cprsim
from cprsim.errors import ParameterError, ScenarioError
from cprsim.job.losses import RESPONSE_KEYS
from cprsim.scenario.reading import load_scenario
from cprsim.training.kernel.shared_run import run_trials
from cprsim.training.measuring import own_code, runs
from cprsim.training.measuring.design import Design
from cprsim.training.measuring.expectation import Expected, check_trainer, expect
from cprsim.training.measuring.measure import MeasureRequest, measure
from cprsim.training.measuring.runs import SeedRuns, own_model, read_seed, run_seed, setting_of
from cprsim.workers import HERE
from tests.making import call
from tests.measuring.conftest import JOB
from tests.measuring.wrapped import Wrapped, make

LOUD = """
from pathlib import Path
Path(__file__).with_name("was imported").touch()
from tests.measuring.wrapped import make
"""


@pytest.fixture
def tried(own_scenario) -> Callable[..., object]:
    def run(spoil: Callable[[Wrapped], None] = lambda one: None):
        loaded = load_scenario(own_scenario())
        models = [own_model(loaded, 1)[0] for _ in range(2)]
        for model in models:
            spoil(model.trainer)
        return check_trainer(*models)

    return run


@pytest.fixture
def here(tmp_path, monkeypatch) -> Iterator[Path]:
    """The working directory, with a module; another one stands elsewhere. None is imported."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "theirs.py").write_text(LOUD)
    (here / "mine" / "deeper").mkdir(parents=True)  # both without __init__.py
    (here / "mine" / "deeper" / "training.py").write_text(LOUD)
    monkeypatch.syspath_prepend(elsewhere)
    monkeypatch.chdir(here)
    yield here
    assert not list(tmp_path.rglob("was imported"))


def test_code_below_the_working_directory_is_the_users_own(own_scenario, here) -> None:
    mine, theirs = (
        load_scenario(own_scenario(f"{m}:make")) for m in ("mine.deeper.training", "theirs")
    )
    own_code.require_allowed(mine, False, here)
    with pytest.raises(ScenarioError, match=r"own.yaml:7: .*theirs.py, which does not stand below"):
        own_code.require_allowed(theirs, False, here)
    own_code.require_allowed(theirs, True, here)
    missing = load_scenario(own_scenario("not_there.training:make"))
    with pytest.raises(ScenarioError, match=r"not_there\.training:make` is not there"):
        own_code.require_allowed(missing, True, here)


@pytest.mark.parametrize("command", ["run", "validate", "measure", "train"])
def test_no_command_imports_foreign_code_unasked(command, own_scenario, here) -> None:
    ended = call(command, own_scenario("theirs:make"))
    trains = command in ("measure", "train")
    assert ended.exit_code == (2 if trains else 0), ended.output
    assert ("--allow-code" in ended.stderr) == trains


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("{trainer: 'no factory'}", "names no factory: write package.module:factory"),
        ("{trainer: 'a.b:make', samples: 2000}", "samples.* is of the built-in model"),
        ("{options: {a: 1}}", "are those of a trainer of your own"),
    ],
)
def test_a_section_that_mixes_models_is_refused(kernel, message, tmp_path) -> None:
    path = tmp_path / "mixed.yaml"
    path.write_text(JOB.replace("KERNEL", kernel))
    with pytest.raises(ScenarioError, match=message):
        load_scenario(path)


def test_a_trainer_that_repeats_is_tried_and_found_quiet(tried) -> None:
    expected = tried()
    assert expected.noise == 0 == expected.log_loss_noise
    assert not any("equal runs" in one for one in expected.warnings(0.2))
    alone = make(1, {"samples": 3000})
    alone.inner.run()
    assert expected.auc == alone.inner.evaluate(alone.test).auc
    assert expected.n_test_clicks == alone.test.label.sum()


def forgets_the_optimiser(one: Wrapped) -> None:
    whole = one.state
    one.state = lambda: whole() | {"row_state": one.inner.optimizer.row_state}


def forgets_a_table(one: Wrapped) -> None:
    whole = one.train

    def train(first, last, note) -> None:
        whole(first, last, lambda rows: note({k: v for k, v in rows.items() if k != "table 2"}))

    one.train = train


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (forgets_the_optimiser, "state is not whole"),
        (forgets_a_table, r"'table 2': row .* moved, and no batch noted"),
    ],
)
def test_what_breaks_the_protocol_is_found(tried, spoil, message) -> None:
    with pytest.raises(ParameterError, match=message):
        tried(spoil)


def test_noise_of_equal_runs_is_sized_and_priced(tried) -> None:
    rng = np.random.default_rng(0)

    def wobbles(one: Wrapped) -> None:
        whole = one.train

        def train(first, last, note) -> None:
            whole(first, last, note)
            one.inner.model.dense += rng.normal(0, 0.02, len(one.inner.model.dense))

        one.train = train

    expected = tried(wobbles)
    assert 0 < expected.noise < 0.2
    assert expected.seeds_for(0.05) > replace(expected, noise=0.0).seeds_for(0.05)
    assert "equal runs do not end equal" in next(expected.warnings(0.05))


def test_the_failures_of_a_simulated_job_are_trained_on_it(own_scenario) -> None:
    answer = cprsim.train(own_scenario(), allow_code=True)
    auc = answer.frames["strategies"].set_index("strategy")["auc"]
    assert auc["full"] == answer.values["no_failures"]["auc"] != auc["partial"]
    name = "tests.measuring.wrapped:make, trained on 2,571 samples"
    assert f"Accuracy was measured on a trainer of your own: {name}." in str(answer)
    assert answer.values["stand_in"] == name


def test_it_is_measured_by_what_it_says_of_itself(own_scenario, tmp_path) -> None:
    loaded, design = load_scenario(own_scenario()), Design(("partial",), n_more=2)
    request = MeasureRequest(loaded, tmp_path, design=design, workers=HERE, n_seeds=3)
    measured = measure(replace(request, described={"framework": "numpy"}))
    assert len(measured.results) == 3
    whose = json.loads((tmp_path / "measurement.json").read_text())
    assert whose["kernel"] == {
        "trainer": "tests.measuring.wrapped:make",
        "options": {"samples": 3000},
        "shard_by": "rows",
    }
    assert whose["trainer"] == {"framework": "numpy"}


def test_strategies_that_save_the_same_bytes_run_once(own_scenario, tmp_path, monkeypatch) -> None:
    loaded = load_scenario(own_scenario())
    trials = tuple(Design(("partial", "mfu", "mfu+"), n_more=0).trials(1, 4))
    ran = []

    def counted(model, shards, trials, savings):
        ran.extend(trials)
        return run_trials(model, shards, trials, savings)

    monkeypatch.setattr(runs, "run_trials", counted)
    assert run_seed(SeedRuns(loaded, 1, trials, tmp_path)) == len(trials)
    assert {one.saving.strategy for one in ran} == {"partial", "mfu"}
    found = read_seed(tmp_path, 1)
    assert set(found.quality) == set(trials)
    for trial in (one for one in trials if one.saving.strategy == "mfu+"):
        once = replace(trial, saving=replace(trial.saving, strategy="mfu"))
        assert found.quality[trial] == found.quality[once]
    written = {saving.strategy: n for saving, n in found.twin.bytes_written.items()}
    assert written["mfu"] == written["mfu+"]
    assert len(written) == len(RESPONSE_KEYS)


# --------------------------------------------------------------------------- what to expect

LEARNED = Expected(0.755, 0.52, 0.76, 11_000)


def test_a_model_that_guesses_has_hardly_learned() -> None:
    assert not LEARNED.hardly_learned
    assert not list(LEARNED.warnings(0.2))
    guesses = replace(LEARNED, auc=0.51, n_test_clicks=900)
    assert guesses.hardly_learned
    learned, few = guesses.warnings(0.2)
    assert "hardly learned: AUC 0.510, where logistic regression reaches 0.760" in learned
    assert "900 clicks in the test are few" in few
    assert replace(LEARNED, auc=0.6).hardly_learned  # logistic regression gains far more


def test_one_run_without_failures_stands_beside_logistic_regression(scenario: Path) -> None:
    stand_in = setting_of(load_scenario(scenario, ["kernel.samples=4000"]), 1)
    model, expected = stand_in.trainer(), expect(stand_in)
    model.run()
    assert expected.auc == model.evaluate().auc
    assert expected.n_test_clicks == stand_in.test.label.sum()
    assert 0.6 < expected.logistic_auc < 0.9
