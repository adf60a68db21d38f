"""How good predictions are: area under the ROC curve, and log-loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.errors import ParameterError
from cprsim.kernel.loops import Array


@dataclass(frozen=True, slots=True)
class Quality:
    """What predictions are worth."""

    auc: float
    log_loss: float  # [nats]


def quality(label: Array, logit: Array) -> Quality:
    """Both measures of logits (n,) against labels (n,)."""
    return Quality(auc(label, logit), log_loss(label, logit))


def auc(label: Array, score: Array) -> float:
    """Probability that a random click scores above a random non-click; ties count half.

    Parameters
    ----------
    label : (n,) 0 or 1; both must occur, or ParameterError is raised
    score : (n,) any monotone function of the predicted probability
    """
    clicked = np.asarray(label) > 0.5
    n_clicks = int(clicked.sum())
    n_others = len(clicked) - n_clicks
    if n_clicks == 0 or n_others == 0:
        raise ParameterError("an AUC needs clicks and non-clicks")
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - (counts - 1) / 2  # from 1, ties share their mean
    clicked_ranks = float(rank[inverse[clicked]].sum())
    return (clicked_ranks - n_clicks * (n_clicks + 1) / 2) / (n_clicks * n_others)


def log_loss(label: Array, logit: Array) -> float:
    """Mean cross-entropy [nats] of logits (n,) against labels (n,)."""
    z = np.asarray(logit, np.float64)
    return float(np.mean(np.logaddexp(0.0, z) - z * label))
