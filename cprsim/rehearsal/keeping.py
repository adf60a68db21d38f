"""A rehearsal as a results folder: each strategy twice, predicted and measured.

Both are rows of one result, so that figures, reports and comparisons show them side by side.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from cprsim.experiments.pipeline import Outcome, StrategyOutcome
from cprsim.files import digest_of
from cprsim.records import EventLog, stacked
from cprsim.recovery.policy import Policy
from cprsim.rehearsal.rehearsing import Rehearsal
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import Identity, identity_of
from cprsim.results.run import Result, write_result
from cprsim.scenario.reading import LoadedScenario
from cprsim.simulate.blocks import with_parts

PREDICTED, MEASURED = "predicted", "measured"
FILE = "rehearsal.json"


def keep(target: ResultTarget, rehearsal: Rehearsal, draw: Callable[[Result], object]) -> Result:
    """Write the results folder of a rehearsal with valid runs. Raises ResultError: it can't be."""
    shown = [policy for policy in rehearsal.policies if rehearsal.of(policy)]
    text = json.dumps(as_plain(rehearsal), indent=1, sort_keys=True) + "\n"

    def draw_and_add(result: Result) -> None:
        (result.path / FILE).write_text(text, "utf-8")
        draw(result)

    outcome, logs = _outcome(rehearsal, shown), _logs(rehearsal, shown)
    trace = rehearsal.of(shown[0])[0].planned.trace
    return write_result(
        target, outcome, logs, trace, draw_and_add, failures_digest=rehearsal.digest
    )


def identity(rehearsal: Rehearsal, loaded: LoadedScenario) -> Identity:
    """What names the results folder: the scenario, and what came out."""
    return replace(identity_of(loaded), inputs={FILE: digest_of(as_plain(rehearsal))})


def named(policy: Policy, how: str) -> Policy:
    """The policy under a name of its own for each of its two rows."""
    return replace(policy, name=f"{policy.name}, {how}")


def _outcome(rehearsal: Rehearsal, shown: list[Policy]) -> Outcome:
    strategies = []
    for policy in shown:
        attempts = rehearsal.of(policy)
        predicted = [one.planned.predicted for one in attempts]
        for how, runs in ((PREDICTED, predicted), (MEASURED, [one.measured for one in attempts])):
            parts = runs[0].costs.parts
            costs = stacked([with_parts(run.costs, parts) for run in runs])
            losses = stacked([run.losses for run in runs])
            strategies.append(StrategyOutcome(named(policy, how), costs, losses))
    experiment = rehearsal.experiment
    return Outcome(experiment.useful_h, experiment.cluster, tuple(strategies))


def _logs(rehearsal: Rehearsal, shown: list[Policy]) -> dict[str, EventLog]:
    """The first trace that every strategy has a valid run of, else the first of each."""
    logs = {}
    for policy in shown:
        first = rehearsal.of(policy)[0]
        logs[named(policy, PREDICTED).name] = first.planned.predicted.log
        logs[named(policy, MEASURED).name] = first.measured.log
    return logs


def as_plain(rehearsal: Rehearsal) -> dict[str, Any]:
    """All that is said of a rehearsal, as JSON has it."""
    strategies = {}
    for policy in rehearsal.policies:
        judged = rehearsal.verdict(policy)
        lines = [] if judged is None else [asdict(line) for line in judged.lines]
        strategies[policy.name] = {
            "valid_runs": len(rehearsal.of(policy)),
            "quantities": lines,
        }
    return {
        "written_before_sha256": rehearsal.digest,
        "calibrated": asdict(rehearsal.calibration),
        "strikes_left_out": rehearsal.n_left_out,
        "strategies": strategies,
        "attempts": [
            one.plain() | {"quantities": [asdict(line) for line in one.judged.lines]}
            for one in rehearsal.attempts
        ],
        "exit_code": rehearsal.exit_code,
    }
