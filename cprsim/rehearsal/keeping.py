"""A rehearsal as a results folder: each strategy twice, predicted and measured.

Both are rows of one result, so that figures, reports and comparisons show them side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from cprsim.files import digest_of
from cprsim.job.records import stacked
from cprsim.rehearsal.rehearsing import Rehearsal
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity, identity_of
from cprsim.results.pipeline import Outcome, StrategyOutcome
from cprsim.results.run import Result, write_result
from cprsim.scenario.reading import LoadedScenario
from cprsim.simulation.blocks import with_parts

FILE = "rehearsal.json"


def keep(target: ResultTarget, rehearsal: Rehearsal, draw: Callable[[Result], object]) -> Result:
    """Write the results folder of a rehearsal with valid runs. Raises ResultError: it can't be."""
    strategies, logs, traces = [], {}, []
    for policy in rehearsal.policies:
        attempts = rehearsal.of(policy)
        predicted = [attempt.planned.predicted for attempt in attempts]
        measured = [attempt.measured for attempt in attempts]
        traces += [attempt.planned.trace for attempt in attempts]
        for how, runs in (("predicted", predicted), ("measured", measured)):
            if runs:
                labelled = replace(policy, name=f"{policy.name}, {how}")
                costs = stacked([with_parts(run.costs, runs[0].costs.parts) for run in runs])
                losses = stacked([run.losses for run in runs])
                strategies.append(StrategyOutcome(labelled, costs, losses))
                logs[labelled.name] = runs[0].log
    experiment = rehearsal.experiment
    outcome = Outcome(experiment.useful_h, experiment.cluster, tuple(strategies))
    text = json.dumps(as_plain(rehearsal), indent=1, sort_keys=True) + "\n"

    def draw_and_add(result: Result) -> None:
        (result.path / FILE).write_text(text, "utf-8")
        draw(result)

    return write_result(
        target, outcome, logs, traces[0], draw_and_add, failures_digest=rehearsal.digest
    )


def identity(rehearsal: Rehearsal, loaded: LoadedScenario) -> Identity:
    """Identity of the results folder: the scenario, and the results."""
    return replace(identity_of(loaded), inputs={FILE: digest_of(as_plain(rehearsal))})


def as_plain(rehearsal: Rehearsal) -> dict[str, Any]:
    """Results of a rehearsal, as JSON has them."""
    return {
        "written_before_sha256": rehearsal.digest,
        "calibrated": asdict(rehearsal.calibration),
        "strikes_left_out": rehearsal.n_left_out,
        "strategies": {
            policy.name: {
                "valid_runs": len(rehearsal.of(policy)),
                "quantities": [asdict(line) for line in rehearsal.verdict(policy)],
            }
            for policy in rehearsal.policies
        },
        "attempts": [attempt.plain() for attempt in rehearsal.attempts],
        "exit_code": rehearsal.exit_code,
    }
