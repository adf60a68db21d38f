"""A fleet of a few lines."""

from __future__ import annotations

from pathlib import Path

from cprsim.commands.fleet.histories import PreparedFleet, prepare
from cprsim.scenario.reading import LoadedScenario, load_scenario

JOB = """\
name: small
job: {useful: 40 h}
cluster: {trainers: 2, emb_ps: 4, shard_size: 50 GB, repair: {family: exponential, mean: 9 h}}
failures: {kind: job, family: gamma, shape: 0.67, mtbf: 6 h, role: any}
storage: {bandwidth: 25 Gbit/s, per_server: 25 Gbit/s}
costs:
  save: transfer
  load: transfer
  detect: 1 min
  reschedule: {family: lognormal, mean: 20 min, median: 10 min}
recovery: [full, {strategy: cpr, target_pls: 0.1}]
simulation: {seed: 3}
"""
REST = """\
prices:
  node_hour: {trainer: 2.50 USD, any: 0.80 USD}
  watts: 700
  kwh: 0.12
  carbon_kg_per_kwh: 0.4
fleet: {jobs: 24, kinds: 12, nodes: 60, spares: 2, window: 200 h}
"""


def loaded(folder: Path, fleet: str, *overrides: str, job: str = JOB) -> LoadedScenario:
    path = folder / "small.yaml"
    path.write_text(f"{job}fleet: {fleet}\n", "utf-8")
    return load_scenario(path, overrides)


def prepared(folder: Path, fleet: str, *overrides: str, job: str = JOB) -> PreparedFleet:
    return prepare(loaded(folder, fleet, *overrides, job=job))
