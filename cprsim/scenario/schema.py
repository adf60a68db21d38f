"""A scenario: its sections, and back to YAML text and JSON Schema.

Keys are as users write them; attributes carry the unit inside.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from cprsim.scenario.cluster import ClusterSection
from cprsim.scenario.costs import CostsSection, StorageSection
from cprsim.scenario.failures import ANY, SYNC_PS, Failures, Scopes, SilentSection
from cprsim.scenario.job import Fleet, Job, Simulation
from cprsim.scenario.kernel import Accuracy, Kernel
from cprsim.scenario.prices import Prices
from cprsim.scenario.quantities import Model
from cprsim.scenario.recovery import RecoveryEntry, RecoverySection
from cprsim.scenario.sweep import Sweep
from cprsim.scenario.sync import Sync
from cprsim.scenario.yaml_text import dump_plain

SCENARIO_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"


class Unknown(Model):
    """An input that is not known exactly: between which values it lies."""

    low: str | float = Field(description="The least, as the scenario would say it.")
    high: str | float = Field(description="The most, as the scenario would say it.")


class Scenario(Model):
    """A training job, its failures, and the recovery strategies to compare on it."""

    name: str = Field(
        strict=True,
        pattern=SCENARIO_NAME,
        description="Name of the scenario: letters, digits, `.`, `_` and `-`; default the file's.",
    )
    job: Job = Field(description="The useful work of the job.")
    cluster: ClusterSection = Field(description="The nodes of the job.")
    failures: Failures = Field(description="Where failures come from; `kind` says how.")
    scopes: Scopes = ()
    silent: SilentSection | None = Field(
        None, description="Silent errors, which corrupt the state and are noticed later."
    )
    storage: StorageSection | None = Field(
        None, description="Where checkpoints go; needed where a cost is `transfer`."
    )
    costs: CostsSection = Field(
        description="What a save, a load, noticing a failure and rescheduling take: a time, a "
        "distribution or, for save and load, `transfer`."
    )
    recovery: tuple[RecoveryEntry, ...] = Field(
        min_length=1, max_length=50, description="The strategies to compare on the same failures."
    )
    kernel: Kernel | None = Field(
        None,
        description="What `cprsim train` trains as a stand-in for the model, to see its accuracy.",
    )
    sync: Sync | None = Field(
        None,
        description="How the trainers stay in step, for `cprsim sync`; absent: not modelled.",
    )
    accuracy: Accuracy | None = Field(
        None, description="Which staleness curve prices lost samples, and what may be lost."
    )
    simulation: Simulation = Field(
        default_factory=Simulation,
        description="Replications and seed.",
    )
    fleet: Fleet | None = Field(
        None,
        description="Many such jobs on one cluster, for `cprsim fleet`; every other command leaves "
        "it aside.",
    )
    prices: Prices | None = Field(None, description="What is paid for, in one currency.")
    unknown: dict[str, Unknown] | None = Field(
        None,
        max_length=20,
        description="Inputs that are not known exactly, by key: {low, high}. `fleet`, `select` and "
        "`systems` say which of them would change the decision.",
        examples=[{"failures.mtbf": {"low": "14 h", "high": "30 h"}}],
    )
    sweep: Sweep | None = Field(
        None, description="What `cprsim sweep` varies; every other command leaves it aside."
    )

    @property
    def n_nodes_of(self) -> dict[str, int]:
        """Nodes of each role, sync servers included, and of `any`."""
        n_servers = 0 if self.sync is None else self.sync.servers or 0
        n_nodes = self.cluster.n_nodes_of
        return {**n_nodes, SYNC_PS: n_servers, ANY: n_nodes[ANY] + n_servers}


def dump_scenario(scenario: Scenario) -> str:
    """The resolved scenario as YAML: every key with its value, defaults spelled out, with units."""
    plain = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dump_plain(plain)


def dump_entry(entry: RecoverySection, options: dict[str, Any]) -> str:
    """An entry of `recovery` with other options, as one line of YAML."""
    plain = entry.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"options"})
    if plain["name"] == plain["strategy"]:
        del plain["name"]
    if options:
        plain["options"] = options
    return dump_plain(plain, on_one_line=True).strip()


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario: meaning and unit of every key."""
    schema = Scenario.model_json_schema(mode="validation")
    schema["required"] = [key for key in schema["required"] if key != "name"]  # by the file's name
    for section in schema["$defs"].values():  # of a record's docstring the first paragraph
        section["description"] = " ".join(section["description"].partition("\n\n")[0].split())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
