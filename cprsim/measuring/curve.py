"""A measurement as a curve: responses, the checks, and what made it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

import cprsim
from cprsim.curves import CurveFile
from cprsim.kernel.blas import description
from cprsim.measuring.checks import Checks, Estimate
from cprsim.measuring.fit import Fitted
from cprsim.measuring.measure import Measured, Request, identity
from cprsim.measuring.responses import response_of
from cprsim.measuring.runs import COUNTED_INTERVAL
from cprsim.measuring.verdict import why_unfit
from cprsim.results.manifest import git_state

NOISE_AT = (0.1, 0.5, 0.9)  # shares of the run


def curve_file(measured: Measured, request: Request, name: str, command: str) -> CurveFile:
    """Everything that the file of a curve says."""
    return CurveFile(
        name=name,
        responses=tuple(
            response_of(fitted, strategy, measured.checks(metric).most_weighted_pls)
            for metric, fitted in measured.fitted.items()
            for strategy in measured.seen.strategies
        ),
        kernel=request.elsewhere or identity(request)["kernel"],
        command=command,
        manifest=manifest(measured, request),
        checks=checks_document(measured),
        unfit=why_unfit(measured),
    )


def checks_document(measured: Measured) -> dict[str, Any]:
    """What was checked, of JSON's types, by metric."""
    return {
        metric.value: _checks(measured.checks(metric), measured.fitted[metric], measured)
        for metric in measured.fitted
    } | {"bytes_written": _bytes_written(measured)}


def _checks(checks: Checks, fitted: Fitted, measured: Measured) -> dict[str, Any]:
    slopes = fitted.slopes
    took = measured.effort(fitted.metric)
    return {
        "several_failures": [
            {
                "n_failures": one.n_failures,
                "weighted_pls": one.weighted_pls,
                "over_sum": one.factor,
                "standard_error": one.standard_error,
            }
            for one in fitted.joint
        ],
        "slopes_of_single_failures": {
            key: {
                "mean": slopes.mean(key),
                "standard_error": slopes.standard_error(key),
                "by_seed": slopes.by_seed[:, column].tolist(),
            }
            for column, key in enumerate(slopes.strategies)
        },
        "intercept": asdict(Estimate.over(slopes.intercept)),
        "noise_of_one_trial": {
            f"failure at {at:.0%}": float(fitted.noise.at(np.array([at]))[0]) for at in NOISE_AT
        },
        "correlation_with_pls": asdict(checks.correlation),
        "correlation_with_weighted_pls": asdict(checks.weighted_correlation),
        "paired_differences": [
            {
                "strategy": one.strategy,
                "other": one.other,
                "mean": one.difference.mean,
                "half_width_95": one.difference.half_width,
                "smallest_detectable": one.difference.detectable,
            }
            for one in checks.differences
        ],
        "adding_up": [
            {
                "strategy": one.strategy,
                "n_failures": one.n_failures,
                "pls": one.pls,
                "weighted_pls": one.weighted_pls,
                "measured_over_sum": asdict(one.measured_over_sum),
                "measured_over_predicted": asdict(one.measured_over_predicted),
                "verdict": one.verdict.value,
            }
            for one in checks.adding_up
        ],
        "verdict": checks.verdict.value,
        "fails_from_pls": checks.fails_from_pls,
        "effort": asdict(took),
    }


def _bytes_written(measured: Measured) -> dict[str, Any]:
    """By all saves of one run at the interval named."""
    twin = measured.results[0].twin
    assert twin is not None, "a measured seed is complete"
    if not twin.bytes_written:
        return {}
    by_strategy = {saving.strategy: n_bytes for saving, n_bytes in twin.bytes_written.items()}
    return {"interval_fraction": COUNTED_INTERVAL, "by_strategy": by_strategy}


def manifest(measured: Measured, request: Request) -> dict[str, Any]:
    """What made a curve: versions, seeds, number of runs. Names no machine and no person."""
    return {
        "cprsim": cprsim.__version__,
        "commit": git_state(),
        "numpy": np.__version__,
        "blas": description(),
        "seeds": list(measured.seen.seeds),
        "n_runs": sum(len(one.quality) + 1 for one in measured.results),
        "cpu_minutes": round(sum(one.cpu_s for one in measured.results) / 60, 2),
        "n_emb_ps": request.n_servers,
        "design": asdict(request.design),
        "expected": _expected(measured),
        **({"trainer": dict(request.described)} if request.described else {}),
    }


def _expected(measured: Measured) -> dict[str, Any] | None:
    """As it was said beforehand; the noise of equal runs only where there is any."""
    if measured.expected is None:
        return None
    plain = asdict(measured.expected)
    return plain if plain["noise"] else {k: v for k, v in plain.items() if k != "noise"}
