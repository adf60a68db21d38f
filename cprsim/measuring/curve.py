"""A measurement as a curve: responses, the checks, and what made it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import cprsim
from cprsim.kernel.blas import description
from cprsim.kernel.trials import MORE_BYTES, sub_saves_of
from cprsim.measuring.checks import Checks, Estimate
from cprsim.measuring.fit import AT, STALENESS, Fitted
from cprsim.measuring.measure import Measured, Request, identity
from cprsim.measuring.runs import COUNTED_INTERVAL
from cprsim.results.manifest import git_state
from cprsim.staleness import Metric, Response, StalenessCurve, Weight

N_DIGITS = 5  # significant ones in the file


def curve_of(measured: Measured, name: str, origin: str) -> StalenessCurve:
    """The responses of every strategy in both metrics."""
    responses = tuple(
        _response(fitted, measured.checks(metric), strategy)
        for metric, fitted in measured.fitted.items()
        for strategy in measured.seen.strategies
    )
    return StalenessCurve(name, origin, responses)


def curve_document(measured: Measured, request: Request, command: list[str]) -> dict[str, Any]:
    """Everything that the file of a curve says."""
    kernel = identity(request)["kernel"]
    name = request.loaded.scenario.name
    curve = curve_of(measured, name, "")
    return {
        "name": name,
        "kernel": kernel,
        "command": command,
        "manifest": manifest(measured, request),
        "responses": [_as_json(response) for response in curve.responses],
        "checks": checks_document(measured),
    }


def _as_json(response: Response) -> dict[str, Any]:
    return {
        "strategy": response.strategy,
        "metric": response.metric.value,
        "pls": response.pls.tolist(),
        "loss": response.loss.tolist(),
        "standard_error": response.standard_error.tolist(),
        "weight": {
            "at": response.weight.at.tolist(),
            "staleness": response.weight.staleness.tolist(),
            "weight": response.weight.weight.tolist(),
        },
        "interval_share": response.interval_share,
        "degrees": response.degrees,
    }


def write_curve(path: Path, document: dict[str, Any]) -> None:
    """Write the file whole, or not at all."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    unfinished.replace(path)


def _response(fitted: Fitted, checks: Checks, strategy: str) -> Response:
    slopes = fitted.slopes
    return Response.linear(
        strategy,
        fitted.metric,
        (slopes.mean(strategy), slopes.standard_error(strategy)),
        checks.most_weighted_pls,
        weight=Weight(AT, STALENESS, fitted.shape.weight),
        interval_share=fitted.shape.interval_share[strategy],
        degrees=slopes.n_seeds - 1,
        settings=sub_saves_of(strategy),
    )


def checks_document(measured: Measured) -> dict[str, Any]:
    """What was checked, of JSON's types, by metric."""
    return {
        metric.value: _checks(measured.checks(metric), measured.fitted[metric], measured)
        for metric in Metric
    } | {"bytes_written": _bytes_written(measured)}


def _checks(checks: Checks, fitted: Fitted, measured: Measured) -> dict[str, Any]:
    slopes = fitted.slopes
    took = measured.effort(fitted.metric)
    return {
        "slopes": {
            key: {
                "mean": slopes.mean(key),
                "standard_error": slopes.standard_error(key),
                "by_seed": slopes.by_seed[:, column].tolist(),
            }
            for column, key in enumerate(slopes.strategies)
        },
        "intercept": asdict(Estimate.over(slopes.intercept)),
        "noise_of_one_trial": fitted.noise,
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
                "measured_over_predicted": one.measured_over_predicted.mean,
                "standard_error": one.measured_over_predicted.standard_error,
                "holds": one.holds,
            }
            for one in checks.adding_up
        ],
        "fails_from_pls": checks.fails_from_pls,
        "effort": asdict(took),
    }


def _bytes_written(measured: Measured) -> dict[str, Any]:
    """By all saves of one run at the interval named."""
    twin = measured.results[0].twin
    assert twin is not None, "a measured seed is complete"
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
        "trained": identity(request),
        "strategies_with_more_bytes": [k for k in measured.seen.strategies if MORE_BYTES in k],
    }
