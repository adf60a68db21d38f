"""The section `accuracy`: what stale shards cost, and how much of it the user accepts."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator

from cprsim.errors import ParameterError
from cprsim.scenario.quantities import Model

NAME = re.compile(r"[a-z0-9][a-z0-9@._-]{0,39}")  # of a metric, as `staleness.metric` reads it
MOST_LOSS = 1e6


class Accuracy(Model):
    """The staleness curve that prices lost samples, and the limits of `cprsim select`."""

    curve: str | None = Field(
        None,
        min_length=1,
        max_length=4000,
        description="A shipped curve by name, or a file: .json of `cprsim measure`, .csv of your "
        "own; relative to the scenario. Absent: the shipped curve of this section `kernel`.",
        examples=["criteo-kaggle-linear", "my-curve.csv"],
    )
    max_auc_loss: float | None = Field(
        None, strict=True, ge=0, le=0.5, description="AUC that may be lost.", examples=[0.0002]
    )
    max_log_loss: float | None = Field(
        None, strict=True, ge=0, le=10, description="By what the log-loss may rise."
    )
    max_loss: dict[str, float] | None = Field(
        None,
        min_length=1,
        max_length=1,
        description="What may be lost in another metric of the curve, by its name.",
        examples=[{"ne": 0.0005}],
    )
    target_pls: float | None = Field(
        None, strict=True, ge=0, le=1, description="Portion of samples that may be lost."
    )
    confidence: float = Field(
        0.95,
        strict=True,
        ge=0.5,
        le=0.9999,
        description="Probability with which a limit holds, of all that is not known for sure.",
    )
    risk: Literal["mean"] | float = Field(
        "mean",
        description="What has to keep the limit: `mean` over jobs, or this share of single jobs.",
        examples=["mean", 0.95],
    )

    @field_validator("max_loss")
    @classmethod
    def _named_limit(cls, found: dict[str, float] | None) -> dict[str, float] | None:
        for name, most in (found or {}).items():
            if not NAME.fullmatch(name):
                raise ParameterError(
                    f"names no metric by `{name[:60]}`: write for example {{ne: 5e-4}}"
                )
            if not 0 <= most <= MOST_LOSS:
                raise ParameterError(
                    f"limits {name} to {most:g}; it lies between 0 and {MOST_LOSS:g}"
                )
        return found

    @field_validator("risk", mode="before")
    @classmethod
    def _mean_or_share(cls, risk: Any) -> Any:
        is_share = isinstance(risk, int | float) and not isinstance(risk, bool) and 0 < risk < 1
        if risk != "mean" and not is_share:
            raise ParameterError(
                "is neither `mean` nor a share of jobs between 0 and 1, such as 0.95"
            )
        return risk
