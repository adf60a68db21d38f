"""What a trainer of the user's own reports as the quality of its model, checked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cprsim.errors import ParameterError
from cprsim.kernel.metrics import Quality, quality
from cprsim.measuring.protocol import Predictions

NEEDED = ("auc", "log_loss")


def quality_of(found: Predictions | Mapping[str, float]) -> Quality:
    """AUC and log-loss, from predictions or as reported.

    Raises ParameterError for predictions or metrics that can't be used.
    """
    if isinstance(found, Mapping):
        return _reported(found)
    label, logit = np.asarray(found.label), np.asarray(found.logit)
    if label.shape != logit.shape or label.ndim != 1:
        raise ParameterError(f"the trainer predicts logits {logit.shape} of labels {label.shape}")
    if not np.isfinite(logit).all():
        raise ParameterError("the trainer predicts a logit that is not finite: has it diverged?")
    return quality(label, logit)


def _reported(found: Mapping[str, float]) -> Quality:
    for name in NEEDED:
        if name not in found:
            has = ", ".join(map(str, found)) or "nothing"
            raise ParameterError(f"the trainer reports {has}; `{name}` is missing")
        if not np.isfinite(found[name]):
            raise ParameterError(f"the trainer reports `{name}`: {found[name]}; has it diverged?")
    return Quality(float(found["auc"]), float(found["log_loss"]))
