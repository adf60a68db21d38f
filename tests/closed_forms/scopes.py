"""Failures of several scopes on one job."""

from __future__ import annotations

from collections.abc import Sequence

from cprsim.analytic.domain import require_positive
from cprsim.errors import ParameterError


def merged_mtbf_h(mtbfs_h: Sequence[float]) -> float:
    """MTBF of a job that is struck by failures of several scopes [h].

    Parameters
    ----------
    mtbfs_h : mean time between failures of each scope [h], (n_scopes,), positive

    Raises
    ------
    ParameterError
        there is no scope, or an MTBF is not positive and finite

    Notes
    -----
    ``1 / sum(1/M_i)``. Independent Poisson processes on one clock are together the Poisson process
    of the summed rate, so that every formula of one MTBF holds for it. Source: derived here.
    """
    if len(mtbfs_h) == 0:
        raise ParameterError("a job without scopes has no failures to merge")
    for mtbf_h in mtbfs_h:
        require_positive(mtbf_h=mtbf_h)
    return 1.0 / sum(1.0 / mtbf_h for mtbf_h in mtbfs_h)
