"""What a job costs under the fragment of a fit, beside the replay of the log it was fitted to.

CPRSIM_DATA=... python -m benchmarks.fragment_against_replay [jobs, default 4000]

Both logs of `cprsim reproduce distribution`, its job on all their nodes for 200 h. Each fragment is
what `cprsim fit` writes, taken as it stands: no rate is brought to the log's. The interval of the
difference is that of the simulation; "within" where all of it lies within 15 % of the replay's
overhead, "beyond" where none does, "cannot be told" otherwise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from math import hypot
from pathlib import Path

import yaml
from cprsim.reproduce.distribution import JOB, N_EMB_PS, FormCosts, Overheads, line_of

from cprsim.experiments.assemble import assemble
from cprsim.failures.outages import Outages
from cprsim.failures.replay import Replay
from cprsim.fitting.causes import by_cause, fragment_of_all, fragments_by_cause, reaches_of
from cprsim.fitting.fragments import fragment, job_fragment
from cprsim.fitting.rates import fragment_through_window, rates_and_factor
from cprsim.fitting.trace_fit import TraceFit, fit_trace
from cprsim.reproduce.logs import TITLES, missing
from cprsim.scenario import load_scenario

WITHIN = 0.15  # of the replay's overhead


def fragments(fitted: TraceFit) -> Iterator[tuple[str, str]]:
    """The sections that `cprsim fit` writes of a log, by their names."""
    outages, n_job = fitted.outages, fitted.outages.n_nodes
    yield "groups and lemons", fragment(fitted, "log")
    yield "gaps alone", job_fragment(fitted, "log")
    found, random = rates_and_factor(outages)
    yield "through the window", fragment_through_window(fitted, found, "log", n_job, random)
    causes = by_cause(outages, n_job)
    written = fragments_by_cause(causes, "log", n_job, fitted.observation)
    if (of_all := fragment_of_all(written, reaches_of(causes, {}))) is not None:
        yield "a source for each cause", of_all


def line(path: Path, name: str, sections: str, n_jobs: int, n_nodes: int) -> FormCosts:
    """The job under the sections of a fragment."""
    said = yaml.safe_load(sections) if sections else {}
    overrides = [f"{key}={json.dumps(value)}" for key, value in said.items()]
    return line_of(name, assemble(load_scenario(path, [*_job(n_jobs, n_nodes), *overrides])))


def _job(n_jobs: int, n_nodes: int) -> list[str]:
    cluster = f"cluster={{trainers: {n_nodes - N_EMB_PS}, emb_ps: {N_EMB_PS}}}"
    return [*JOB, cluster, f"simulation={{seed: 1, replications: {n_jobs}}}"]


def compared(ours: Overheads, replayed: Overheads) -> str:
    """The difference of two means with its interval, in percent of the replay's, and a verdict."""
    halves = [(one.mean.high - one.mean.low) / 2 for one in (ours, replayed)]
    apart = 100 * (ours.mean.value / replayed.mean.value - 1)
    half = 100 * hypot(*halves) / replayed.mean.value
    low, high = apart - half, apart + half
    if low >= -100 * WITHIN and high <= 100 * WITHIN:
        verdict = "within"
    else:
        verdict = "beyond" if low > 100 * WITHIN or high < -100 * WITHIN else "cannot be told"
    return f"{apart:+.1f} % [{low:+.1f}, {high:+.1f}], {verdict}"


def outages_and_nodes(path: Path) -> tuple[Outages, int]:
    """The log that a scenario replays, and how many nodes were watched."""
    replay = assemble(load_scenario(path)).failures
    assert isinstance(replay, Replay), "these scenarios replay a log"
    return replay.outages, replay.outages.n_nodes


def main(n_jobs: int) -> None:
    """Print a row for each log and fragment."""
    if why := missing():
        sys.exit(why)
    print("| log | fragment | failures per job (replay) | full recovery | partial recovery |")
    print("|---|---|---|---|---|")
    for name, title in TITLES.items():
        path = Path(__file__).parents[1] / "scenarios" / f"{name}.yaml"
        outages, n_nodes = outages_and_nodes(path)
        replayed = line(path, "replay", "", n_jobs, n_nodes)
        for form, sections in fragments(fit_trace(outages, n_bootstrap=0)):
            ours = line(path, form, sections, n_jobs, n_nodes)
            verdicts = " | ".join(
                compared(*pair)
                for pair in ((ours.full, replayed.full), (ours.partial, replayed.partial))
            )
            n = f"{ours.n_failures:.1f} ({replayed.n_failures:.1f})"
            print(f"| {title} | {form} | {n} | {verdicts} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
