"""A curve beside two of shorter runs of the same model: what its losses are at other lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

from cprsim.curves.curve_file import LENGTHS, CurveFile, read_curve
from cprsim.errors import ParameterError
from cprsim.measuring.measure import MeasureRequest, identity
from cprsim.results.compare import flat
from cprsim.staleness.length import LengthLaw
from cprsim.staleness.names import WHOLE

N_SHORTER = 2
OF_LENGTH = {"samples", "epochs"}  # keys of the section `kernel` by which lengths may differ


def read_shorter(paths: Sequence[Path], request: MeasureRequest) -> list[CurveFile]:
    """The curves of shorter runs, the shortest first; none where none are named."""
    if not paths:
        return []
    if len(paths) != N_SHORTER or request.elsewhere or request.n_seeds is None:
        raise ParameterError(
            "--shorter: name the curves of two shorter lengths, by one option each, and the seeds "
            "of all by --seeds; of runs made elsewhere the length is not known"
        )
    found = sorted((read_curve(path) for path in paths), key=lambda one: one.n_samples or 0)
    lengths = [one.n_samples or 0 for one in found]
    if not 0 < lengths[0] < lengths[1] < (request.n_samples or 0):
        raise ParameterError(
            f"--shorter: the lengths of the runs, {lengths[0]:,}, {lengths[1]:,} and here "
            f"{request.n_samples or 0:,} samples, have to ascend (0: the file does not say)"
        )
    for one in found:
        _require_same_model(one, request)
    return found


def _require_same_model(shorter: CurveFile, request: MeasureRequest) -> None:
    seeds = list(request.seeds)
    if shorter.manifest.get("seeds") != seeds:
        raise ParameterError(
            f"--shorter: {shorter.name} was measured on seeds {shorter.manifest.get('seeds')}, and "
            f"this is on {seeds}; the same seeds are needed"
        )
    unlike = {*flat(identity(request)["kernel"], "")} ^ {*flat(shorter.kernel or {}, "")}
    differ = sorted({key for key, _ in unlike})
    of_own = len(differ) == 1 and differ[0].startswith("options.")  # of a trainer of one's own
    if set(differ) - OF_LENGTH and not of_own:
        raise ParameterError(
            f"--shorter: {shorter.name} is not of this model at another length: it differs in "
            f"{', '.join(differ)}"
        )


def with_lengths(curve: CurveFile, shorter: Sequence[CurveFile]) -> CurveFile:
    """The curve with the slopes of shorter runs beside its own."""
    if not shorter:
        return curve
    three = [*shorter, curve]
    metrics = [one for one in curve.metrics if all(one in other.metrics for other in three)]
    by_seed = {
        metric.value: [other.checks[metric.value]["slopes"][WHOLE]["by_seed"] for other in three]
        for metric in metrics
    }
    lengths = {"n_samples": [one.n_samples for one in three], "by_seed": by_seed}
    return replace(curve, checks={**curve.checks, LENGTHS: lengths})


def sentences_of_lengths(curve: CurveFile) -> list[str]:
    """Whether the law of the shorter lengths predicts the longest, metric by metric."""
    return [_said(metric.label, law) for metric, law in curve.lengths.items()]


def _said(label: str, law: LengthLaw) -> str:
    ratio, low, high = law.measured_over_predicted()
    if not isfinite(ratio):
        return f"Slopes of {label} can't be told from nothing at all lengths: no law of length."
    measured = " and ".join(f"{n:,.0f}" for n in law.n_samples[:-1])
    found = (
        f"{label} at {law.longest:,.0f} samples is {ratio:.2f} ({low:.2f} to {high:.2f}) times "
        f"what a power law through {measured} samples says"
    )
    trouble = law.why_not(law.farthest)
    if trouble:
        return f"{found}: a job of more samples is refused by 'cprsim select'."
    return f"{found}: it is followed up to {law.farthest:,.0f} samples."
