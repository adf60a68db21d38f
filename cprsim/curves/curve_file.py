"""The file of a curve: JSON as `cprsim measure` writes it, or a CSV of the user's own.

The JSON ends in a digest of all that stands before it, so that no damaged number is ever used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.errors import UNUSABLE, CurveError, Place, one_line
from cprsim.files import decode, digest_of, encode, json_text, write_whole
from cprsim.recovery.losses import WHOLE, Metric
from cprsim.staleness.curve import StalenessCurve
from cprsim.staleness.response import Response

UNFIT = "unfit"  # in the checks of one metric: why nothing should be decided by it
KIND = "cprsim staleness curve"
FORMAT = 3
FEWEST_SEEDS = 3  # from which errors of two strategies say how they go together


@dataclass(frozen=True, slots=True, eq=False)
class CurveFile:
    """Everything that the file of a curve says."""

    name: str  # of the curve
    responses: tuple[Response, ...]  # what was measured
    # the section `kernel` that was measured, without its seed; None in the user's own
    kernel: Mapping[str, Any] | None = None
    command: str = ""  # that measured it
    # versions, seeds, number of runs: what made it
    manifest: Mapping[str, Any] = field(default_factory=dict)
    # held-out runs, linearity, differences between strategies: how far it holds
    checks: Mapping[str, Any] = field(default_factory=dict)
    # sentences, why nothing should be decided by it; none where it is fit for use
    unfit: tuple[str, ...] = ()

    @property
    def identity(self) -> str | None:
        """Digest of the kernel block; None where it is not known what was measured."""
        return None if self.kernel is None else digest_of(self.kernel)

    def curve(self, origin: str, notes: tuple[str, ...] = ()) -> StalenessCurve:
        """The curve alone; `origin` says where it is from, `notes` what to be careful with."""
        shared = correlations(self.checks)
        shares = bytes_shares(self.checks)
        return StalenessCurve(
            self.name,
            origin,
            self.responses,
            notes,
            self.unfit,
            shared,
            shares,
            self.unfit_metrics,
            self.n_samples,
        )

    @property
    def n_samples(self) -> int | None:
        """Samples of a run, all epochs; None where the file does not say."""
        of_trainer = self.manifest.get("trainer") or {}
        found: int | None = self.manifest.get("n_samples", of_trainer.get("n_samples"))
        return found

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those of the responses, each once."""
        return tuple(dict.fromkeys(one.metric for one in self.responses))

    @property
    def unfit_metrics(self) -> dict[Metric, tuple[str, ...]]:
        """Why nothing should be decided by single metrics; those that are fit are left out."""
        of = {metric: self.checks.get(metric.value) for metric in self.metrics}
        return {
            metric: tuple(map(str, checks[UNFIT]))
            for metric, checks in of.items()
            if isinstance(checks, Mapping) and checks.get(UNFIT)
        }


def correlations(checks: Mapping[str, Any]) -> dict[tuple[Metric, str, str], float]:
    """Correlation of the errors of each two strategies, by metric; empty where nothing tells.

    The errors of two means over the same seeds correlate as the seeds' values do. With the sample's
    correlation the variance of any weighted difference of the two means is that of the seeds'
    weighted differences, so that Student's t with n - 1 degrees of freedom holds for it.
    """
    found = {}
    for name, of_metric in checks.items():
        if not (by_seed := _by_seed(of_metric)):
            continue
        metric = Metric(name)
        for one, other in combinations(by_seed, 2):
            pair = np.array([by_seed[one], by_seed[other]])
            deviations = pair - pair.mean(axis=1, keepdims=True)
            scale = float(np.sqrt(np.square(deviations).sum(axis=1).prod()))
            if scale > 0:
                found[metric, one, other] = float(deviations[0] @ deviations[1]) / scale
    return found


def _by_seed(of_metric: Any) -> dict[str, list[float]]:
    """Slopes by strategy, each on the same seeds; none where the file does not have them."""
    slopes = of_metric.get("slopes") if isinstance(of_metric, Mapping) else None
    if not isinstance(slopes, Mapping):
        return {}
    by_seed = {
        str(name): one["by_seed"]
        for name, one in slopes.items()
        if isinstance(one, Mapping) and isinstance(one.get("by_seed"), list)
    }
    n_seeds = {len(values) for values in by_seed.values()}
    return by_seed if len(n_seeds) == 1 and min(n_seeds) >= FEWEST_SEEDS else {}


def bytes_shares(checks: Mapping[str, Any]) -> dict[str, float]:
    """What each strategy's saves wrote over what whole saves did; none where it was not counted."""
    counted = checks.get("bytes_written")
    by_strategy = counted.get("by_strategy") if isinstance(counted, Mapping) else None
    if not isinstance(by_strategy, Mapping) or not by_strategy.get(WHOLE):
        return {}
    whole = float(by_strategy[WHOLE])
    return {str(name): float(n) / whole for name, n in by_strategy.items() if name != WHOLE}


def read_curve(path: Path | str) -> CurveFile:
    """Read the file of a curve: ours where it ends in .json, else a CSV of the user's own."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        from cprsim.curves.own import read_own  # pandas, which few runs need

        return CurveFile(path.stem, read_own(path))
    plain = _checked(_parsed(path), path)
    try:
        return decode(CurveFile, plain)
    except UNUSABLE as error:  # also ParameterError
        reason = one_line(str(error), 200)
        raise _error(path, f"can't be used as a staleness curve: {reason}") from error


def write_curve(path: Path, curve: CurveFile) -> None:
    """Write the file whole or not at all, on the disk when this returns."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json_text(as_json(curve), indent=1))
    except OSError as error:
        raise _error(path, f"can't be written: {error.strerror or error}") from error


def as_json(curve: CurveFile) -> dict[str, Any]:
    """The object that the file holds, its digest last."""
    plain = {"kind": KIND, "format": FORMAT, "identity": curve.identity, **encode(curve)}
    for one in plain["responses"]:
        (one["settings"] or {}).pop("bytes_share", None)  # what it wrote stands in the checks
    return {**plain, "digest": digest_of(plain)}


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise _error(path, f"can't be read: {error.strerror or error}") from None
    except json.JSONDecodeError as error:
        message = f"is damaged, or no JSON: {error.msg} (column {error.colno})"
        raise _error(path, message, error.lineno) from None
    except UnicodeDecodeError:
        raise _error(path, "is damaged, or no JSON text") from None
    except (RecursionError, ValueError) as error:
        raise _error(path, f"{error}: is it a staleness curve?") from None


def _checked(plain: Any, path: Path) -> dict[str, Any]:
    """The object, if it is a curve of this version and undamaged."""
    if not isinstance(plain, dict) or plain.get("kind") != KIND:
        raise _error(path, f"is no staleness curve: `cprsim measure` writes `kind: {KIND}` in it")
    if plain.get("format") != FORMAT:
        message = (
            f"has format {one_line(str(plain.get('format')))}, and this cprsim reads format "
            f"{FORMAT}: it comes from another version; measure again"
        )
        raise _error(path, message)
    rest = {key: value for key, value in plain.items() if key != "digest"}
    if digest_of(rest) != plain.get("digest"):
        raise _error(path, "is damaged or was changed by hand: it differs from its digest")
    return plain


def _error(path: Path, message: str, line: int | None = None) -> CurveError:
    return CurveError.at(Place(path, line), message)
