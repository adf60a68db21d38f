"""A fit as responses, with those of its jackknife: what the file of a curve holds of it."""

from __future__ import annotations

import numpy as np

from cprsim.kernel.trials import sub_saves_of
from cprsim.measuring.fit import Fitted
from cprsim.measuring.shape import AT, STALENESS, Shape
from cprsim.records import Floats
from cprsim.staleness import Replicate, Response, Weight


def response_of(fitted: Fitted, strategy: str, most: float) -> Response:
    """One strategy's response, measured up to a weighted PLS of `most`."""
    pls, loss, error = fitted.monotone_line(strategy, most)
    return Response(
        strategy,
        fitted.metric,
        pls,
        loss,
        error,
        weight=_weight(fitted.shape),
        interval_share=fitted.shape.interval_share[strategy],
        degrees=fitted.slopes.n_seeds - 1,
        settings=sub_saves_of(strategy),
        replicates=tuple(_replicate(one, strategy, most) for one in fitted.replicates),
    )


def _replicate(fitted: Fitted, strategy: str, most: float) -> Replicate:
    phi = fitted.shape.interval_share[strategy]
    line = (rounded(numbers) for numbers in fitted.line(strategy, most))
    return Replicate(_weight(fitted.shape), float(rounded(np.array(phi))), *line)


def _weight(shape: Shape) -> Weight:
    return Weight(AT, STALENESS, rounded(shape.weight))


def rounded(numbers: Floats) -> Floats:
    """With six significant digits: more would only make the file long."""
    return np.array([float(f"{number:.6g}") for number in numbers.ravel()]).reshape(numbers.shape)
