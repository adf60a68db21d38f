"""What runs and comparisons of systems share; goes into the latter."""

from __future__ import annotations

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment
from cprsim.results.folder import ResultTarget
from cprsim.results.identity import failures_digest
from cprsim.results.run import Logbook
from cprsim.scenario import LoadedScenario


def with_numbers(
    target: ResultTarget, loaded: LoadedScenario, outcome: pipeline.Outcome
) -> ResultTarget:
    """What the manifest of a run says besides: numbers of replications, and which failures."""
    return target.with_about(
        replications={one.policy.name: one.costs.n_replications for one in outcome.strategies},
        failures_digest=failures_digest(loaded),
    )


def logbook_of(experiment: Experiment, replication: int = 0) -> Logbook:
    """The event logs of one replication; by default of the one shown where none is asked for."""
    return Logbook(replication, pipeline.replay(experiment, replication, whole=False))
