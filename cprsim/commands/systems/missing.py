"""Values missing from a scenario, for which systems are left out, or their save is split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cprsim.commands.systems.candidates import LeftOut
from cprsim.results.words import hours
from cprsim.scenario.assemble import Experiment


def missing_keys(left_out: Mapping[str, LeftOut]) -> dict[str, list[str]]:
    """Systems that are left out because the scenario lacks a key that every job has, by key."""
    by_key: dict[str, list[str]] = {}
    for name, why in left_out.items():
        if why.key:
            by_key.setdefault(why.key, []).append(name)
    return dict(sorted(by_key.items(), key=lambda key: -len(key[1])))


def missing_sentence(left_out: Mapping[str, LeftOut], n_systems: int) -> str:
    """The sentence on systems left out, counted by missing key; empty without any."""
    by_key = missing_keys(left_out)
    if not by_key:
        return ""
    n = sum(map(len, by_key.values()))
    keys = ", ".join(f"`{key}` ({len(names)})" for key, names in by_key.items())
    return f"{n} of {n_systems} systems are not compared, as the scenario lacks {keys}."


def split_save(experiment: Experiment) -> Iterator[str]:
    """How a save that is given as one time is taken apart for systems that copy it first."""
    job = experiment.facts
    if job.save_background is None and job.write_h and job.node_bytes_per_h:
        yield (
            f"`costs.save` is one time: for systems that write behind the job, "
            f"{hours(job.snapshot_h)} is the copy to host memory, {hours(job.persist_h)} the "
            "writing (by state, storage and link)."
        )
