"""Quality of predictions: AUC, log-loss, normalised entropy, calibration, NDCG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import special, stats

from cprsim.errors import ParameterError
from cprsim.training.kernel.loops import Array


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of predictions."""

    auc: float
    log_loss: float  # [nats]
    # further metrics, by name
    others: Mapping[str, float] = field(default_factory=dict, hash=False)


def quality(label: Array, logit: Array, group: Array | None = None) -> Quality:
    """All measures of logits (n,) against labels (n,); `group` (n,): the list each ranks in."""
    area, loss = auc(label, logit), log_loss(label, logit)  # the first needs both classes
    p = float(np.mean(label, dtype=np.float64))
    of_base_rate = -p * float(np.log(p)) - (1 - p) * float(np.log1p(-p))
    others = {"ne": loss / of_base_rate, "calibration": calibration(label, logit)}
    if group is not None:
        others["ndcg"] = ndcg(label, logit, group)
    return Quality(area, loss, others)


def calibration(label: Array, logit: Array) -> float:
    """Clicks that are predicted over clicks that happened: 1 where neither is more."""
    predicted = special.expit(np.asarray(logit, np.float64))
    return float(predicted.sum() / np.sum(label, dtype=np.float64))


def ndcg(label: Array, score: Array, group: Array) -> float:
    """Mean normalised discounted cumulative gain of the lists that hold a click.

    Gain 1 per click, discounted by log2(1 + rank), over that of the best order
    (Järvelin & Kekäläinen 2002).
    """
    order = np.lexsort((-np.asarray(score, np.float64), group))
    _, first, number = np.unique(np.asarray(group)[order], return_index=True, return_inverse=True)
    rank = np.arange(len(order)) - first[number]
    gain = np.asarray(label, np.float64)[order] > 0.5
    discount = 1.0 / np.log2(rank + 2.0)
    reached = np.bincount(number, gain * discount)
    ideal = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(len(order)) + 2.0))])
    best = ideal[np.bincount(number, gain).astype(np.int64)]
    if not best.any():
        raise ParameterError("an NDCG needs a list that holds a click")
    return float(np.mean(reached[best > 0] / best[best > 0]))


def auc(label: Array, score: Array) -> float:
    """Probability that a random click scores above a random non-click; ties count half."""
    clicked = np.asarray(label) > 0.5
    n_clicks = int(clicked.sum())
    n_others = len(clicked) - n_clicks
    if n_clicks == 0 or n_others == 0:
        raise ParameterError("an AUC needs clicks and non-clicks")
    clicked_ranks = float(stats.rankdata(score)[clicked].sum())
    return (clicked_ranks - n_clicks * (n_clicks + 1) / 2) / (n_clicks * n_others)


def log_loss(label: Array, logit: Array) -> float:
    """Mean cross-entropy [nats] of logits (n,) against labels (n,)."""
    z = np.asarray(logit, np.float64)
    return float(np.mean(np.logaddexp(0.0, z) - z * label))
