"""Differences between two results: of the strategies that both have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.job.records import Estimate
from cprsim.results.metrics import Sample, difference_of, parts_of, samples_of
from cprsim.results.money import AUC_LOSS
from cprsim.results.run import Result


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
    paired, one_curve, records = same_failures(a, b), _one_curve(a, b), []
    for name, of_a, of_b in _in_both(a, b):
        differences = difference_of(of_a, of_b, one_curve=one_curve, paired=paired)
        for quantity, difference in differences.items():
            if _unknown(quantity, of_a) and _unknown(quantity, of_b):
                continue  # no curve tells what the failures cost in accuracy
            means = (of_a.mean(quantity), of_b.mean(quantity))
            records.append((name, quantity, *means, *difference.triple, difference.n))
    if not records:
        names = [", ".join(p.name for p in result.policies) for result in (a, b)]
        message = f"no strategy is in both results: A has {names[0]}; B has {names[1]}"
        raise ParameterError(message)
    columns = ["strategy", "quantity", "a", "b", *Estimate(0).columns("difference"), "n"]
    return pd.DataFrame(records, columns=columns)


def independent_errors(a: Result, b: Result) -> list[str]:
    """Note on differences between two curves, whose errors count as independent; else empty."""
    losing = [
        name
        for name, *samples in _in_both(a, b)
        if all(not _unknown(AUC_LOSS, s) and s.measured(AUC_LOSS)[0][0] > 0 for s in samples)
    ]
    if not losing or _one_curve(a, b):
        return []
    curves = "the errors of the staleness curves of A and B"
    return [f"{', '.join(losing)}: {curves} count as independent."]


def _in_both(a: Result, b: Result) -> Iterator[tuple[str, Sample, Sample]]:
    parts = parts_of([*a.replications, *b.replications])
    of_a, of_b = (samples_of(result.replications, result.n_nodes, parts) for result in (a, b))
    return ((name, of_a[name], of_b[name]) for name in of_a if name in of_b)


def _one_curve(a: Result, b: Result) -> bool:
    """Whether one staleness curve prices the losses of both."""
    return a.curve is not None and b.curve is not None and a.curve.sha256 == b.curve.sha256


def _unknown(quantity: str, sample: Sample) -> bool:
    return bool(np.isnan(sample.value(quantity)).all())
