"""Differences between strategies of one result, and between results: numbers and inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.curves.curve_file import read_curve
from cprsim.errors import ParameterError
from cprsim.records import CONFIDENCE, NO_NUMBER, Estimate, Floats
from cprsim.results.folder import stored_scenario
from cprsim.results.identity import N_DIGITS
from cprsim.results.metrics import Sample, difference_of, parts_of, samples_of
from cprsim.results.rows import (
    QUANTITIES,
    Sharing,
    Variance,
    has_measured_error,
    not_shared,
    of_difference,
    shared_by,
)
from cprsim.results.run import Result
from cprsim.staleness.curve import StalenessCurve
from cprsim.staleness.expected import MeanLoss, pooled
from cprsim.staleness.names import Metric

LOSS = QUANTITIES[Metric.AUC]


def differences(
    rows: pd.DataFrame, n_nodes: int, baseline: str, curve: StalenessCurve | None = None
) -> pd.DataFrame:
    """What each strategy costs more than `baseline`, paired by replication.

    All strategies of a result meet the same failures, so the differences of the replications vary
    less than the replications themselves.

    Tidy frame: strategy, quantity, mean, low, high (95 %), n; NaN where one of the two has
    replications that did not finish.
    """
    samples = samples_of(rows, n_nodes)
    if baseline not in samples:
        raise ParameterError(f"no strategy is called {baseline!r}; there are: {', '.join(samples)}")
    sharing = _one_response if curve is None else shared_by(curve)
    records = [
        (name, quantity, *found.triple, found.n)
        for name, mine in samples.items()
        if name != baseline
        for quantity, found in difference_of(samples[baseline], mine, sharing).items()
    ]
    return pd.DataFrame(records, columns=["strategy", "quantity", "mean", "low", "high", "n"])


def same_failures(a: Result, b: Result) -> bool:
    """Whether replication i of both results met the same failures: same seed, job and source."""
    mine = a.manifest.get("failures_digest")
    return mine is not None and bool(mine == b.manifest.get("failures_digest"))


def compare(a: Result, b: Result) -> pd.DataFrame:
    """Differences B - A of the strategies that both results have.

    Paired by replication where both met the same failures, else two independent samples (Welch).
    The error of the staleness curves counts in losses of accuracy.

    Tidy frame: strategy, quantity, a, b (means), difference, difference_low, difference_high
    (95 %), n (of the smaller sample). NaN where replications did not finish.
    """
    parts = parts_of([*a.replications, *b.replications])
    of_a, of_b = (samples_of(one.replications, one.n_nodes, parts) for one in (a, b))
    shared = [name for name in of_a if name in of_b]
    if not shared:
        raise ParameterError(
            f"no strategy is in both results: A has {', '.join(of_a)}; B has {', '.join(of_b)}"
        )
    method = difference_of if same_failures(a, b) else _independent
    sharing, records = _sharing(a, b), []
    for name in shared:
        one, other = of_a[name], of_b[name]
        for quantity, found in method(one, other, sharing).items():
            if _unknown(quantity, one) and _unknown(quantity, other):
                continue  # no curve tells what the failures cost in accuracy
            means = (_mean(one, quantity), _mean(other, quantity))
            records.append((name, quantity, *means, *found.triple, found.n))
    columns = ["strategy", "quantity", "a", "b", *Estimate(0).columns("difference"), "n"]
    return pd.DataFrame(records, columns=columns)


def shared_errors(a: Result, b: Result) -> list[str]:
    """What is assumed of the curves' errors in differences of losses; empty without such losses."""
    of_a, of_b = (samples_of(one.replications, one.n_nodes) for one in (a, b))
    sharing, said = _sharing(a, b), dict[str, list[str]]()
    for name in (name for name in of_a if name in of_b):
        both = (of_a[name], of_b[name])
        if any(_unknown(LOSS, one) or not one.measured(LOSS)[0] > 0 for one in both):
            continue
        correlation = sharing(LOSS, both[0].response, both[1].response)
        how = "count as independent" if correlation is None else f"correlate by {correlation:.2f}"
        said.setdefault(how, []).append(name)
    curves = "the errors of the staleness curves of A and B"
    return [f"{', '.join(names)}: {curves} {how}." for how, names in said.items()]


def _one_curve(a: Result, b: Result) -> bool:
    return a.curve is not None and b.curve is not None and a.curve.sha256 == b.curve.sha256


def _sharing(a: Result, b: Result) -> Sharing:
    """How far the errors of losses of two results go together."""
    if a.curve is None or not _one_curve(a, b):
        return not_shared
    return shared_by(read_curve(a.path / a.curve.file).curve(a.curve.origin))


def _one_response(quantity: str, a: str, b: str) -> float | None:
    return 1.0 if a == b else None


def _unknown(quantity: str, sample: Sample) -> bool:
    return bool(np.isnan(sample.value(quantity)).all())


def _mean(sample: Sample, quantity: str) -> float:
    return float(sample.value(quantity).mean()) if sample.finished.all() else np.nan


def _independent(a: Sample, b: Sample, sharing: Sharing) -> dict[str, Estimate]:
    """Difference of the means b - a of independent replications; see `difference_of`."""
    metrics = [name for name in a.metrics if name in b.metrics]
    if not (a.finished.all() and b.finished.all()):
        return dict.fromkeys(metrics, Estimate(np.nan, n=min(len(a.finished), len(b.finished))))
    found = {}
    for name in metrics:
        measured: tuple[Variance, ...] = ()
        if has_measured_error(name):
            correlation = sharing(name, a.response, b.response)
            measured = of_difference(a.measured(name), b.measured(name), correlation)
        found[name] = welch(a.value(name), b.value(name), *measured)
    return found


def welch(a: Floats, b: Floats, *measured: Variance) -> Estimate:
    """Difference of the means of two independent samples, b - a, and its 95 % interval.

    Student's t with Welch's degrees of freedom (Welch 1947); the error of a measurement may add to
    that of the samples.
    """
    difference, n = float(np.mean(b) - np.mean(a)), min(len(a), len(b))
    if n < 2:
        return Estimate(difference, n=n)
    simulated = [(float(np.var(of, ddof=1)) / len(of), len(of) - 1.0) for of in (a, b)]
    loss = MeanLoss(difference, *pooled(*simulated, *measured))
    return Estimate(difference, *loss.interval(CONFIDENCE), n)


# --------------------------------------------------------------------------- what went into them


@dataclass(frozen=True, slots=True)
class Differing:
    """One input that is not the same in all results."""

    key: str
    values: tuple[str, ...]  # of each result; NO_NUMBER where it has none


def inputs_of(folder: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Every input of a results folder: the scenario's keys, seed, replications, files, versions."""
    found = dict(flat(stored_scenario(folder), ""))
    program = manifest.get("cprsim") or {}
    git = program.get("git") or {}
    more = {
        "seed": manifest.get("seed"),
        "replication shown alone": manifest.get("replay"),
        "replications": manifest.get("replications"),
        "effort": manifest.get("effort"),
        "clicks": manifest.get("clicks"),
        "input": {name: of[:N_DIGITS] for name, of in (manifest.get("inputs") or {}).items()},
        "cprsim": program.get("version"),
        "source of cprsim": (program.get("source") or "")[:N_DIGITS] or None,
        "commit": (git.get("commit") or "")[:N_DIGITS] or None,
        "uncommitted changes": git.get("dirty"),
        "Python": manifest.get("python"),
        "library": manifest.get("libraries"),
    }
    return found | dict(flat(more, ""))


def different(inputs: Sequence[Mapping[str, str]]) -> list[Differing]:
    """In what several results differ, in the order of the keys; the seed is told once."""
    keys = dict.fromkeys(key for one in inputs for key in one)
    alike = all("name" in one for one in inputs)  # all have a scenario
    found = [Differing(key, tuple(one.get(key, NO_NUMBER) for one in inputs)) for key in keys]
    differ = [one for one in found if len(set(one.values) - (set() if alike else {NO_NUMBER})) > 1]
    told = {one.key for one in differ}
    return [one for one in differ if not (one.key == "seed" and "simulation.seed" in told)]


def flat(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Dotted keys and values as texts; entries of a list by their name where they have one."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and value and all(_name(one) for one in value):
        for one in value:
            rest = {name: inner for name, inner in one.items() if name != "name"}
            yield from flat(rest, f"{key}.{_name(one)}")
    elif value is not None:
        yield key, _text(value)


def _name(entry: Any) -> str | None:
    return entry.get("name") if isinstance(entry, Mapping) else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)
