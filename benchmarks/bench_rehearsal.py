"""Samples per second of a rehearsal's processes, unpaced, beside the kernel in one process.

One trainer process, or two in step, and 4 embedding servers on this machine; the kernel trains the
same clicks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter

from cprsim.experiments.proxy_model import proxy_model
from cprsim.kernel.training import ProxyTrainer
from cprsim.rehearsal.log import FactKind
from cprsim.rehearsal.material import Material, fresh_model
from cprsim.rehearsal.nodes import ForkServer
from cprsim.rehearsal.orders import Orders, Speeds
from cprsim.rehearsal.setting import material_of
from cprsim.rehearsal.supervisor import Supervisor
from cprsim.scenario import load_scenario

SCENARIO = Path(__file__).parents[1] / "scenarios" / "rehearsal.yaml"
N_SERVERS, REPEATS = 4, 2
NO_THROTTLE = Speeds(0.2, 10.0, 0.0, 1e12, 1e12, 1e12)


def of_processes(material: Material) -> float:
    orders = Orders(
        "bench", False, 1e-3, (), NO_THROTTLE, n_servers=N_SERVERS, n_trainers=material.n_trainers,
        limit_s=600.0,
    )  # fmt: skip
    found = []
    with ForkServer(material) as fork_server:
        for number in range(REPEATS):
            folder = fork_server.folder / f"run-{number}"
            ran = Supervisor(fork_server, material, orders, folder, fresh_model(material)).run()
            at_s = {fact.what: fact.at_s for fact in ran.facts}
            found.append(material.n_samples / (at_s[FactKind.STOOD] - at_s[FactKind.RUNNING]))
    return max(found)


def of_the_kernel(material: Material) -> float:
    found = []
    for _ in range(REPEATS):
        trainer = ProxyTrainer(material.shape, material.clicks, material.plan)
        trainer.initialise()
        trainer.run(material.plan.batch)  # compiled, or read from its cache
        began = perf_counter()
        trainer.run()
        found.append((material.n_samples - material.plan.batch) / (perf_counter() - began))
    return max(found)


def main() -> None:
    material = material_of(proxy_model(load_scenario(SCENARIO, ["kernel.samples=60000"])))
    print(f"the kernel in one process       {of_the_kernel(material):9,.0f} samples/s")
    print(f"a trainer and {N_SERVERS} servers, unpaced {of_processes(material):9,.0f} samples/s")
    two = replace(material, n_trainers=2)
    print(f"two in step and {N_SERVERS} servers       {of_processes(two):9,.0f} samples/s")


if __name__ == "__main__":
    main()
