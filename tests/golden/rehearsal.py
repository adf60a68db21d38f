"""Rehearsals: the orders of a plan, and the verdicts on runs that are kept."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cprsim.files import decode
from cprsim.rehearsal.calibration import RunCalibration
from cprsim.rehearsal.prediction import folded, model_of, predict
from cprsim.rehearsal.rehearsing import log_from
from cprsim.rehearsal.setting import (
    kills_of,
    material_of,
    orders_of,
    policies_to_rehearse,
    speeds_of,
)
from cprsim.rehearsal.verdict import compared, quantities
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from cprsim.training.proxy_model import proxy_model
from tests.golden.plain import Golden, numbers_in
from tests.making import SCENARIOS

WHOLE = "verdict"
ROOT = SCENARIOS.parent
KEPT = ROOT / "tests" / "rehearsal" / "kept"
TRACES = 3


def kept(name: str) -> Any:
    return json.loads((KEPT / name).read_text("utf-8"))


def quick() -> Golden:
    """Of the shipped rehearsal, with little to train; a kept run beside its prediction."""
    loaded = load_scenario(SCENARIOS / "rehearsal.yaml", ["kernel.samples=20000"])
    job, material = assemble(loaded), material_of(proxy_model(loaded))
    calibration = decode(RunCalibration, kept("before.json")["calibration"])
    for policy in policies_to_rehearse(job, ()):
        orders = [
            orders_of(job, policy, material, kills_of(job, trace, speeds_of(job, material))[0])
            for trace in range(TRACES)
        ]
        for trace, ordered in enumerate(orders):
            yield f"orders {policy.name} {trace}", json.loads(json.dumps(asdict(ordered)))
        if Path(KEPT, f"{policy.name}-0-1.json").exists():
            run = log_from(kept(f"{policy.name}-0-1.json")["log"])
            measured = quantities(folded(run, job.useful_h, job.cluster.n_emb_ps))
            model = model_of(job, policy, orders[0], calibration, material)
            predicted = quantities(predict(model, 0))
            yield f"verdict {policy.name}", [asdict(one) for one in compared(predicted, measured)]
    for path in sorted(ROOT.glob("results/rehearsal/*.json")):
        found = json.loads(path.read_text("utf-8"))
        for name, one in found["strategies"].items():
            off = sorted(line["name"] for line in one["quantities"] if line["off"])
            yield f"verdict {path.stem} {name}", [off, *numbers_in(one["quantities"])]
