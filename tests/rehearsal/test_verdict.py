"""The verdict on kept real runs: the model passes, and deliberately wrong ones are told by parts.

`results/rehearsal` has those of ten failure traces, under six strategies (`make campaign`).
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from cprsim.files import decode
from cprsim.job.distributions import Constant
from cprsim.job.records import S_PER_H, Activity, Clock, EventKind, EventLog
from cprsim.rehearsal.calibration import RunCalibration
from cprsim.rehearsal.prediction import FoldedRun, bytes_share, model_of, predict
from cprsim.rehearsal.verdict import (
    DETECT,
    OVERHEAD,
    PLS,
    ComparedQuantity,
    MachineLoad,
    compared,
    detection_within_s,
    mean_of,
    quantities,
    steal_fraction,
    ticks,
)
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from tests.rehearsal.making import SCENARIO, planned, shipped

N_SERVERS = 4
HEARTBEAT_S = 0.2
Wrong = Callable[[Experiment], Experiment]
Quantities = dict[str, float]


def load_is_not_shared(model: Experiment) -> Experiment:
    (policy,), storage = model.policies, model.costs.storage
    alone = Constant(storage.transfer_h(1))
    tiers = tuple(replace(tier, load=tier.load and alone) for tier in policy.tiers)
    return replace(model, policies=(replace(policy, tiers=tiers),))


def failures_age_with_progress(model: Experiment) -> Experiment:
    return replace(model, failures=replace(model.failures, clock=Clock.PROGRESS))


def without_half_a_heartbeat(model: Experiment) -> Experiment:
    whole = Constant(model.costs.detect.mean_h + HEARTBEAT_S / 2 / 3600)
    return replace(model, scopes=tuple(replace(scope, detect=whole) for scope in model.scopes))


JOB = assemble(load_scenario(SCENARIO))
CAMPAIGN = json.loads(
    (SCENARIO.parents[1] / "results/rehearsal/ten-traces.json").read_text("utf-8")
)
INTERVAL_S = {"full": 5, "async": 5, "gemini": 2, "partial": 5, "cpr": 15, "cpr-mfu": 16}
"""Of the saves that a failure takes the job, or its servers, back to."""


@pytest.fixture(scope="module", autouse=True)
def bytes_told_once() -> Iterator[None]:
    """Of sub-saves: no failure changes them, and the kernel trains to tell them."""
    policy, todo = planned(JOB, "cpr-mfu")
    share = bytes_share(policy, todo, shipped())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cprsim.rehearsal.prediction.bytes_share", lambda *_: share)
        yield


def kept_runs(name: str) -> list[dict]:
    """The valid runs that the model predicts: one made a save fewer (docs/rehearsal.md)."""
    valid = [
        one for one in CAMPAIGN["attempts"] if one["strategy"] == name and one["too_busy"] is None
    ]
    found = [one for one in valid if not any(line["off"] for line in one["quantities"])]
    assert len(found) >= 9
    return found


def anew(run: dict, wrong: Wrong = lambda model: model) -> FoldedRun:
    policy, todo = planned(JOB, run["strategy"], run["trace"])
    calibration = decode(RunCalibration, CAMPAIGN["calibrated"])
    return predict(wrong(model_of(JOB, policy, todo, calibration, shipped())), 0)


def verdict_on_campaign(name: str, changed: Callable[[dict, FoldedRun], Quantities]) -> list[str]:
    """What is off in all kept runs of a strategy, with what a wrong model changes of a run."""
    lines_of, logs = [], []
    for run in kept_runs(name):
        right, lines = anew(run), run["quantities"]
        before, after = quantities(right), changed(run, right)
        ours = {line["name"]: line["predicted"] for line in lines}
        ours |= {part: ours.get(part, 0.0) + after[part] - before[part] for part in after}
        measured = {line["name"]: line["measured"] for line in lines}
        logs.append(right.log)
        lines_of.append(compared(ours, measured))
    return wrong_of(mean_of(lines_of, detection_within_s(logs, HEARTBEAT_S)))


def wrong_of(lines: Iterable[ComparedQuantity]) -> list[str]:
    return [line.name for line in lines if line.off]


@pytest.mark.parametrize("name", INTERVAL_S)
def test_the_model_passes_on_the_campaign_and_is_what_was_predicted_then(name: str) -> None:
    """To the bit, but for priority saving: its bytes the kernel tells of all the clicks."""
    assert verdict_on_campaign(name, lambda _, right: quantities(right)) == []
    for run in kept_runs(name)[: 10 * (name != "cpr-mfu")]:
        found = quantities(anew(run))
        for line in run["quantities"]:
            assert found[line["name"]] == pytest.approx(line["predicted"], rel=1e-12)


def half_an_interval_lost(name: str, right: FoldedRun) -> Quantities:
    """Per failure. In the mean of ten traces that is so under full recovery: single runs tell."""
    found, n = quantities(right), int((right.log.kind == EventKind.FAILED).sum())
    half_s = n * INTERVAL_S[name] / 2
    if "lost" not in found or not found["lost"]:
        return found | {PLS: half_s / (JOB.useful_h * S_PER_H * N_SERVERS)}
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
def test_the_campaign_tells_a_wrong_model(name: str, wrong: Wrong | None, part: str) -> None:
    """Load not shared has nothing to tell where one server loads alone, or from a peer."""

    def changed(run: dict, right: FoldedRun) -> Quantities:
        if wrong is None:
            return half_an_interval_lost(name, right)
        return quantities(anew(run, wrong))

    assert part in verdict_on_campaign(name, changed)


def run_of(**seconds: tuple[float, float, bool]) -> list[ComparedQuantity]:
    return [ComparedQuantity(name, *values) for name, values in seconds.items()]


HIGH = [run_of(overhead=(10.0, 10.1, False))] * 18
OFF = run_of(overhead=(10.0, 12.0, True))


@pytest.mark.parametrize(
    ("runs", "wrong"),
    [
        ([run_of(save=(10.0, 10.0 + error, False)) for error in (-3.0, 3.0, 0.2)], []),
        ([*HIGH, OFF], [OVERHEAD]),
        ([*HIGH, *HIGH, OFF], []),
        ([run_of(PLS=(0.1, 0.1, False)), run_of(PLS=(0.1, 0.12, True))], [PLS]),
        ([run_of(detect=(10.0, 10.3, False))] * 2, []),
        ([run_of(detect=(10.0, 10.31, False))] * 2, [DETECT]),
        ([run_of(), run_of(save=(1.0, 0.0, True))], ["save"]),  # a part that one of them has
    ],
)
def test_means_are_judged_and_overhead_and_pls_of_each_run_besides(
    runs: list[list[ComparedQuantity]], wrong: list[str]
) -> None:
    assert wrong_of(mean_of(runs, detection_within_s=0.61)) == wrong


def test_several_who_die_at_once_are_noticed_with_the_last() -> None:
    """Three die alone, two together."""
    at_h = np.array([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.0])
    kind = [EventKind.FAILED if at in (1, 2, 3, 4) else EventKind.STAGE for at in at_h]
    no = np.zeros(len(at_h), int)
    log = EventLog(no, at_h, np.array(kind), no + Activity.USEFUL, at_h, no)
    allowed_s = 3 * 0.2 * (4 / 12) ** 0.5 + 0.04 + 0.1
    assert detection_within_s([log], 0.2) == pytest.approx(allowed_s)


def test_a_part_that_only_one_of_them_has_is_judged() -> None:
    with_save, without = ({OVERHEAD: 1.0, PLS: 0.0, "save": save} for save in (1.0, 0.0))
    for both in ((with_save, without), (without, with_save)):
        assert wrong_of(compared(*both)) == ["save"]


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (MachineLoad(0.61, 60.0, 0.0, 0, 9.0), "beyond its pace"),
        (MachineLoad(-0.61, 60.0, 0.0, 0, 0.0), "beyond its pace"),
        (MachineLoad(0.11, 6.0, 0.0, 0, 0.0), "beyond its pace"),
        (MachineLoad(0.0, 60.0, 0.06, 0, 0.0), "6 % of the processor time"),
        (MachineLoad(0.0, 60.0, 0.0, 1, 0.0), "heartbeat"),
        (MachineLoad(0.59, 60.0, 0.04, 0, 30.0), "None"),
        (MachineLoad(0.09, 6.0, 0.0, 0, 0.0), "None"),
    ],
)
def test_a_run_on_a_busy_machine_is_not_valid(load: MachineLoad, said: str) -> None:
    assert said in str(load.too_busy)


def test_steal_is_a_share_of_all_processor_time() -> None:
    assert steal_fraction((1000, 20), (1100, 30)) == pytest.approx(0.1)
    assert ticks()[0] > 0
