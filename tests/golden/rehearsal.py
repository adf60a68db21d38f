"""Rehearsals: the orders of a plan, and the verdicts on runs that are kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cprsim.experiments.assemble import assemble
from cprsim.experiments.proxy_model import proxy_model
from cprsim.files import decode
from cprsim.rehearsal.calibration import RunCalibration
from cprsim.rehearsal.prediction import folded, predict
from cprsim.rehearsal.rehearsing import log_from
from cprsim.rehearsal.setting import (
    kills_of,
    material_of,
    orders_of,
    policies_to_rehearse,
    speeds_of,
)
from cprsim.rehearsal.verdict import compared, quantities
from cprsim.scenario.reading import load_scenario
from tests.golden.plain import Golden, numbers_in
from tests.making import SCENARIOS

WHOLE = "verdict"
ROOT = SCENARIOS.parent
KEPT = ROOT / "tests" / "rehearsal" / "kept"
TRACES = 3


class Plan:
    """Orders and predictions of the shipped rehearsal, with little to train."""

    def __init__(self) -> None:
        loaded = load_scenario(SCENARIOS / "rehearsal.yaml", ["kernel.samples=20000"])
        self.job, self.what = assemble(loaded), material_of(proxy_model(loaded))
        self.speeds = speeds_of(self.job, self.what)
        self.policies = policies_to_rehearse(self.job, ())

    def orders(self, policy: Any, trace: int) -> Any:
        """What a run is to do: saves due, kills, speeds."""
        kills, _ = kills_of(self.job, trace, self.speeds)
        return orders_of(self.job, policy, self.what, kills)

    def verdict(self, policy: Any) -> Any:
        """A kept run beside its prediction: each quantity, and what is off."""
        calibration = decode(RunCalibration, kept("before.json")["calibration"])
        run = log_from(kept(f"{policy.name}-0-1.json")["log"])
        measured = folded(run, self.job.useful_h, self.job.cluster.n_emb_ps)
        orders = self.orders(policy, 0)
        predicted = predict(self.job, policy, orders, calibration, self.what, 0)
        return [asdict(one) for one in compared(quantities(predicted), quantities(measured))]


def kept(name: str) -> Any:
    return json.loads((KEPT / name).read_text("utf-8"))


def quick() -> Golden:
    plan = Plan()
    for policy in plan.policies:
        for trace in range(TRACES):
            yield f"orders {policy.name} {trace}", plan.orders(policy, trace).plain()
        if Path(KEPT, f"{policy.name}-0-1.json").exists():
            yield f"verdict {policy.name}", plan.verdict(policy)
    for path in sorted(ROOT.glob("results/rehearsal/*.json")):
        found = json.loads(path.read_text("utf-8"))
        for name, one in found["strategies"].items():
            off = sorted(line["name"] for line in one["quantities"] if line["off"])
            yield f"verdict {path.stem} {name}", [off, *numbers_in(one["quantities"])]
