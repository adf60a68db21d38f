"""The verdict on kept real runs: the model passes, and deliberately wrong ones are told by parts.

`results/rehearsal` has those of ten failure traces, under six strategies (`make campaign`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.experiments.proxy_model import proxy_model
from cprsim.failures.distributions import Constant
from cprsim.files import decode
from cprsim.records import Clock, EventKind
from cprsim.recovery.policy import Policy
from cprsim.rehearsal.calibration import RunCalibration
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.orders import SECONDS, Orders
from cprsim.rehearsal.prediction import (
    FoldedRun,
    bytes_share,
    folded,
    injected,
    model_of,
)
from cprsim.rehearsal.setting import (
    kills_of,
    material_of,
    orders_of,
    policies_to_rehearse,
    speeds_of,
)
from cprsim.rehearsal.verdict import (
    DETECT,
    OVERHEAD,
    PLS,
    ComparedQuantity,
    JudgedRun,
    MachineLoad,
    Silence,
    Ticks,
    compared,
    mean_of,
    quantities,
    silence_in,
)
from cprsim.scenario.reading import load_scenario
from tests.making import SCENARIOS

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "kept"
N_SERVERS = 4
HEARTBEAT_S = 0.2
Wrong = Callable[[Experiment], Experiment]
Quantities = dict[str, float]


@pytest.fixture(scope="module")
def what() -> Material:
    """Its shards are those of the kept runs; its clicks are fewer."""
    small = ["kernel.samples=20000"]
    return material_of(proxy_model(load_scenario(SCENARIOS / "rehearsal.yaml", small)))


def load_is_not_shared(model: Experiment) -> Experiment:
    (policy,), storage = model.policies, model.costs.storage
    assert storage is not None
    alone = Constant(storage.transfer_h(1))
    tiers = tuple(replace(tier, load=tier.load and alone) for tier in policy.tiers)
    return replace(model, policies=(replace(policy, tiers=tiers),))


def failures_age_with_progress(model: Experiment) -> Experiment:
    return replace(model, failures=replace(model.failures, clock=Clock.PROGRESS))


def without_half_a_heartbeat(model: Experiment) -> Experiment:
    whole = Constant(model.costs.detect.mean_h + HEARTBEAT_S / 2 / 3600)
    return replace(model, scopes=tuple(replace(scope, detect=whole) for scope in model.scopes))


def test_several_who_die_at_once_are_noticed_with_the_last() -> None:
    silence = Silence(0.2, n_alone=3, n_others=1)
    assert silence.allowed_s == pytest.approx(3 * 0.2 * (4 / 12) ** 0.5 + 0.04 + 0.1)


# --------------------------------------------------------------------------- the campaign

CAMPAIGN = json.loads((ROOT / "results/rehearsal/ten-traces.json").read_text("utf-8"))
INTERVAL_S = {"full": 5, "async": 5, "gemini": 2, "partial": 5, "cpr": 15, "cpr-mfu": 16}
"""Of the saves that a failure takes the job, or its servers, back to."""


@pytest.fixture(scope="module")
def campaign() -> Experiment:
    return assemble(load_scenario(SCENARIOS / "rehearsal.yaml"))


@pytest.fixture(scope="module", autouse=True)
def bytes_told_once() -> Iterator[None]:
    """Of sub-saves: no failure changes them, and the kernel trains to tell them."""
    told: dict[str, float] = {}

    def once(policy: Policy, todo: Orders, what: Material) -> float:
        if policy.name not in told:
            told[policy.name] = bytes_share(policy, todo, what)
        return told[policy.name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cprsim.rehearsal.prediction.bytes_share", once)
        yield


def kept_runs(name: str) -> list[dict]:
    """The valid runs that the model predicts: one made a save fewer (docs/rehearsal.md)."""
    valid = [
        one for one in CAMPAIGN["attempts"] if one["strategy"] == name and one["too_busy"] is None
    ]
    found = [one for one in valid if not any(line["off"] for line in one["quantities"])]
    assert len(found) >= 9
    return found


def anew(
    job: Experiment, what: Material, run: dict, wrong: Wrong = lambda model: model
) -> FoldedRun:
    (policy,) = policies_to_rehearse(job, (run["strategy"],))
    speeds = speeds_of(job, what)
    todo = orders_of(job, policy, what, speeds, kills_of(job, run["trace"], speeds)[0])
    calibration = decode(RunCalibration, CAMPAIGN["calibrated"])
    (log,) = pipeline.replay(wrong(model_of(job, policy, todo, calibration, what)), 0).values()
    return folded(log, job.useful_h, N_SERVERS)


def verdict_on_campaign(
    job: Experiment, what: Material, name: str, changed: Callable[[dict, FoldedRun], Quantities]
) -> tuple[str, ...]:
    """What is off in all kept runs of a strategy, with what a wrong model changes of a run."""
    judged = []
    for run in kept_runs(name):
        right, lines = anew(job, what, run), run["quantities"]
        before, after = quantities(right), changed(run, right)
        ours = {line["name"]: line["predicted"] for line in lines}
        ours |= {part: ours.get(part, 0.0) + after[part] - before[part] for part in after}
        measured = {line["name"]: line["measured"] for line in lines}
        silence = silence_in(right.log, HEARTBEAT_S)
        judged.append(JudgedRun(compared(ours, measured), silence))
    return mean_of(judged).wrong


@pytest.mark.parametrize("name", INTERVAL_S)
def test_the_model_passes_on_the_campaign_and_is_what_was_predicted_then(
    campaign: Experiment, what: Material, name: str
) -> None:
    """To the bit, but for priority saving: its bytes the kernel tells of all the clicks."""
    assert verdict_on_campaign(campaign, what, name, lambda _, right: quantities(right)) == ()
    for run in kept_runs(name)[: 10 * (name != "cpr-mfu")]:
        found = quantities(anew(campaign, what, run))
        for line in run["quantities"]:
            assert found[line["name"]] == line["predicted"]


def half_an_interval_lost(job: Experiment, name: str, right: FoldedRun) -> Quantities:
    """Per failure. In the mean of ten traces that is so under full recovery: single runs tell."""
    found, n = quantities(right), int((right.log.kind == EventKind.FAILED).sum())
    half_s = n * INTERVAL_S[name] / 2
    if "lost" not in found or not found["lost"]:
        return found | {PLS: half_s / (job.useful_h * SECONDS * N_SERVERS)}
    return found | {"lost": half_s, OVERHEAD: found[OVERHEAD] + half_s - found["lost"]}


LOST_IN = {"async": "lost", "gemini": "lost", "partial": PLS, "cpr": PLS, "cpr-mfu": PLS}


@pytest.mark.parametrize(
    ("name", "wrong", "part"),
    [
        ("full", load_is_not_shared, "load"),
        ("async", load_is_not_shared, "load"),
        *((name, without_half_a_heartbeat, DETECT) for name in INTERVAL_S),
        *((name, failures_age_with_progress, LOST_IN.get(name, OVERHEAD)) for name in INTERVAL_S),
        *((name, None, LOST_IN.get(name, OVERHEAD)) for name in INTERVAL_S),
    ],
)
def test_the_campaign_tells_a_wrong_model(
    campaign: Experiment, what: Material, name: str, wrong: Wrong | None, part: str
) -> None:
    """Load not shared has nothing to tell where one server loads alone, or from a peer."""

    def changed(run: dict, right: FoldedRun) -> Quantities:
        if wrong is None:
            return half_an_interval_lost(campaign, name, right)
        return quantities(anew(campaign, what, run, wrong))

    assert part in verdict_on_campaign(campaign, what, name, changed)


def test_the_kills_are_failures_of_wall_time(campaign: Experiment, what: Material) -> None:
    (policy,), speeds = policies_to_rehearse(campaign, ("full",)), speeds_of(campaign, what)
    kills, _ = kills_of(campaign, 0, speeds)
    found = injected(orders_of(campaign, policy, what, speeds, kills), campaign)
    assert (found.clock, found.n_failures) == (Clock.WALL, len(kills))


def judged(**seconds: tuple[float, float, bool]) -> JudgedRun:
    return JudgedRun(tuple(ComparedQuantity(name, *values) for name, values in seconds.items()))


HIGH = [judged(overhead=(10.0, 10.1, False))] * 18
OFF = judged(overhead=(10.0, 12.0, True))


@pytest.mark.parametrize(
    ("runs", "wrong"),
    [
        ([judged(save=(10.0, 10.0 + error, False)) for error in (-3.0, 3.0, 0.2)], ()),
        ([*HIGH, OFF], (OVERHEAD,)),
        ([*HIGH, *HIGH, OFF], ()),
    ],
)
def test_means_are_judged_and_the_overhead_of_each_run_besides(
    runs: list[JudgedRun], wrong: tuple[str, ...]
) -> None:
    assert mean_of(runs).wrong == wrong


def test_a_part_that_only_one_of_them_has_is_judged() -> None:
    with_save, without = ({OVERHEAD: 1.0, PLS: 0.0, "save": save} for save in (1.0, 0.0))
    for both in ((with_save, without), (without, with_save)):
        found = JudgedRun(compared(*both))
        assert found.wrong == ("save",)
        assert np.isfinite([line.predicted for line in found.lines]).all()


# --------------------------------------------------------------------------- a busy machine


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (MachineLoad(0.61, 60.0, 0.0, 0, 9.0), "beyond its pace"),
        (MachineLoad(-0.61, 60.0, 0.0, 0, 0.0), "beyond its pace"),
        (MachineLoad(0.11, 6.0, 0.0, 0, 0.0), "beyond its pace"),
        (MachineLoad(0.0, 60.0, 0.06, 0, 0.0), "6 % of the processor time"),
        (MachineLoad(0.0, 60.0, 0.0, 1, 0.0), "heartbeat"),
        (MachineLoad(0.59, 60.0, 0.04, 0, 30.0), None),
        (MachineLoad(0.09, 6.0, 0.0, 0, 0.0), None),
    ],
)
def test_a_run_on_a_busy_machine_is_not_valid(load: MachineLoad, said: str | None) -> None:
    assert (load.too_busy is None) if said is None else (said in (load.too_busy or ""))


def test_steal_is_a_share_of_all_processor_time() -> None:
    assert Ticks(1100, 30).stolen_since(Ticks(1000, 20)) == pytest.approx(0.1)
    assert Ticks.now().all > 0
