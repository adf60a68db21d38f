"""Samples per second of a rehearsal's processes, unpaced, beside the kernel in one process.

One trainer process, or two in step, and 4 embedding servers on this machine; the kernel trains the
same clicks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import perf_counter

from cprsim.rehearsal.log import FactKind
from cprsim.rehearsal.material import Material
from cprsim.rehearsal.nodes import forking
from cprsim.rehearsal.orders import Orders, Speeds
from cprsim.rehearsal.setting import material_of
from cprsim.rehearsal.supervisor import Supervisor
from cprsim.scenario.reading import load_scenario
from cprsim.training.kernel.training import ProxyTrainer
from cprsim.training.proxy_model import proxy_model

SCENARIO = Path(__file__).parents[1] / "scenarios" / "rehearsal.yaml"
N_SERVERS, REPEATS = 4, 2
BATCHES, N_SAMPLES = (128, 512), 200_000
NO_THROTTLE = Speeds(0.2, 10.0, 0.0, 1e12, 1e12, 1e12)


def of_processes(material: Material) -> float:
    orders = Orders(
        "bench", False, 1e-3, (), NO_THROTTLE, n_servers=N_SERVERS, n_trainers=material.n_trainers,
        limit_s=600.0,
    )  # fmt: skip
    found = []
    with forking(material) as fork_server:
        for number in range(REPEATS):
            folder = fork_server.folder / f"run-{number}"
            ran = Supervisor(fork_server, material, orders, folder).run()
            at_s = {fact.what: fact.at_s for fact in ran.facts}
            found.append(material.n_samples / (at_s[FactKind.STOOD] - at_s[FactKind.RUNNING]))
    return max(found)


def of_the_kernel(material: Material) -> float:
    found = []
    for _ in range(REPEATS):
        trainer = ProxyTrainer(material.shape, material.clicks, material.plan)
        trainer.run(material.plan.batch)  # compiled, or read from its cache
        began = perf_counter()
        trainer.run()
        found.append((material.n_samples - material.plan.batch) / (perf_counter() - began))
    return max(found)


def main() -> None:
    print(f"samples/s, unpaced; {N_SERVERS} servers")
    print("  batch     kernel, one process     one trainer     two in step")
    for batch in BATCHES:
        overrides = [f"kernel.samples={N_SAMPLES}", f"kernel.batch={batch}"]
        material = material_of(proxy_model(load_scenario(SCENARIO, overrides)))
        one, two = (of_processes(replace(material, n_trainers=n)) for n in (1, 2))
        print(f"{batch:7,} {of_the_kernel(material):23,.0f} {one:15,.0f} {two:15,.0f}", flush=True)


if __name__ == "__main__":
    main()
