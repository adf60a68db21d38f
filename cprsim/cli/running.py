"""What ``cprsim run`` does between the scenario and the table; heavy to import."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from cprsim import pipeline
from cprsim.assemble import Experiment
from cprsim.cli.options import require_replication
from cprsim.cli.progress import progress
from cprsim.cli.pulse import pulse
from cprsim.curves import curve_path
from cprsim.prices import mean_node_hour
from cprsim.records import EventLog
from cprsim.results import Identity, Logbook, Result, input_digests
from cprsim.results.price import Price
from cprsim.results.publish import require_writable
from cprsim.results.warnings import warnings
from cprsim.results.write import write_result
from cprsim.scenario import LoadedScenario, dump_scenario
from cprsim.scenario.failures import ANY

SHOWN = 0  # the replication of the timeline, where none is asked for


def identity_of(loaded: LoadedScenario, replay: int | None) -> Identity:
    """What decides the result of a run. Raises ResultError where an input can't be read."""
    require_replication(replay)
    return Identity(
        name=loaded.scenario.name,
        scenario_yaml=dump_scenario(loaded.scenario),
        inputs=inputs_of(loaded),
        replay=replay,
    )


def inputs_of(loaded: LoadedScenario) -> dict[str, str]:
    """Digest of each file beside the scenario that decides its numbers: trace and curve, by name.

    The two may have one name, so that the curve's says what it is.
    """
    curve = curve_path(loaded)
    of_curve = input_digests([] if curve is None else [curve])
    return trace_digests(loaded) | {f"curve {name}": of_curve[name] for name in of_curve}


def trace_digests(loaded: LoadedScenario) -> dict[str, str]:
    """Digest of the failure trace that is replayed, by its name; empty where there is none."""
    return input_digests([] if loaded.trace_path is None else [loaded.trace_path])


def failures_digest(loaded: LoadedScenario) -> str:
    """Digest of what decides which failures replication i meets; equal digests, equal failures."""
    scenario = loaded.scenario
    parts: dict[str, Any] = {
        "seed": scenario.simulation.seed,
        "useful_h": scenario.job.useful_h,
        "cluster": scenario.cluster.model_dump(
            mode="json", include={"trainers", "emb_ps", "others", "repair"}
        ),
        "failures": scenario.failures.model_dump(mode="json", exclude={"file"}),
        "inputs": sorted(trace_digests(loaded).values()),
    }
    if scenario.cluster.workers:
        parts["workers"] = scenario.cluster.workers
    if scenario.cluster.roles:
        parts["roles"] = scenario.cluster.n_nodes_of_stateful
    if scenario.scopes:  # what else a failure is, and whom it strikes besides
        kinds = [[one.name, one.share, one.reach] for one in scenario.scopes]
        parts["scopes"] = [kinds, scenario.cluster.rack]
        own = [one.failures.model_dump(mode="json") for one in scenario.scopes if one.failures]
        if own:
            parts["failures of scopes"] = own
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def simulate_into(
    root: Path,
    identity: Identity,
    loaded: LoadedScenario,
    experiment: Experiment,
    started: datetime,
) -> Result:
    """Simulate, and write the results folder under `root`.

    Raises
    ------
    CprsimError : of whatever goes wrong; nothing is written then
    """
    require_writable(root)
    outcome, logbook = _simulate(experiment, identity.replay)
    about = {
        "command": ["cprsim", *sys.argv[1:]],
        "seed": loaded.scenario.simulation.seed,
        "replications": {one.policy.name: one.costs.n_replications for one in outcome.strategies},
        "failures_digest": failures_digest(loaded),
    }
    return write_result(
        root,
        identity,
        outcome,
        logbook,
        about=about,
        started=started,
        draw=_draw,
        curve_path=curve_path(loaded),
        log_notes=experiment.log_notes,
        warnings=warnings(experiment),
        price=_price(loaded),
    )


def _price(loaded: LoadedScenario) -> Price | None:
    section = loaded.scenario.prices
    if section is None or not section.node_hour:
        return None
    nodes = {role: n for role, n in loaded.scenario.n_nodes_of.items() if role != ANY}
    prices = section.record()
    return Price(mean_node_hour(prices, nodes), prices.currency)


def _draw(result: Result) -> None:
    pulse.doing("drawing figures")
    from cprsim.plots import draw_result

    draw_result(result, result.path)


def _simulate(experiment: Experiment, replay: int | None) -> tuple[pipeline.Outcome, Logbook]:
    if replay is not None:
        logs = _replayed(experiment, replay)
        return pipeline.outcome_of_one(experiment, replay), Logbook(replay, logs)
    with progress("simulating") as on_progress:
        outcome = pipeline.simulate(experiment, on_progress=on_progress)
    return outcome, logbook_of(experiment)


def logbook_of(experiment: Experiment) -> Logbook:
    """The event logs of the replication that is shown where none is asked for."""
    return Logbook(SHOWN, _replayed(experiment, SHOWN))


def _replayed(experiment: Experiment, replication: int) -> dict[str, EventLog]:
    """The event logs of one replication, numbered as in the whole run and not as in its block."""
    return {
        name: replace(log, replication=np.full_like(log.replication, replication))
        for name, log in pipeline.replay(experiment, replication, whole=False).items()
    }
