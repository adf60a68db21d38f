"""The user's limits on the loss of accuracy, and the bounds that are compared with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan, nan, sqrt
from typing import Annotated

import numpy as np

from cprsim.accuracy.curve import MeanLoss, Prediction, exactly
from cprsim.errors import ScenarioError
from cprsim.files import Number, Stored
from cprsim.job.losses import Metric, strategy_key
from cprsim.job.records import pooled
from cprsim.results.metrics import replication_rows
from cprsim.results.pipeline import Outcome
from cprsim.scenario.curves import chosen_curve, shipped_names
from cprsim.scenario.kernel import Accuracy
from cprsim.scenario.reading import LoadedScenario

PLS = Metric("pls")  # portion of lost samples: limited as published, without a curve


@dataclass(frozen=True, slots=True)
class HeldLimit:
    """A limit of a loss, and the bound that is compared with it.

    An entry's target is one of the expected loss, and is missed where that surely lies above it.
    """

    quantity: str  # in words
    column: str  # of results that has it; `pls`, or that of a metric's loss
    most: float
    mean: float
    bound: Number  # of a limit from above, of a target from below
    bound_words: str
    is_target: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it is exceeded, or the target missed."""
        return self.bound > self.most

    @property
    def sentence(self) -> str:
        expected = f"Expected {self.quantity}: {self.mean:.3g}"
        if self.is_target:
            missed = ", which it misses" if self.is_over else ""
            return f"{expected}; target {self.most:g}{missed}."
        known = self._known if isnan(self.bound) else f"at most {self._known}"
        over = ", exceeded" if self.is_over else ""
        return f"{expected}; {known} ({self.bound_words}; limit {self.most:g}{over})."

    @property
    def cell(self) -> str:
        """The limited loss and its limit, marked if exceeded."""
        words = "over" if self.is_over else "target" if self.is_target else "limit"
        return f"{self.quantity} {self._known} ({words} {self.most:g})"

    @property
    def _known(self) -> str:
        """The bound, or of a target the mean; a single replication has no bound."""
        shown = self.mean if self.is_target else self.bound
        return "not known" if isnan(shown) else f"{shown:.3g}"


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest loss that is allowed, and the confidence that it holds."""

    quantity: Annotated[Metric, Stored(str, Metric)]  # the loss in a metric of the curve, or PLS
    most: float  # the limit, not negative, in what the quantity is counted in
    # the limit holds at this one-sided upper bound of what is estimated, from 0.5 (the estimate
    # itself) to below 1
    confidence: float = 0.95
    # None: the mean over failure histories is held to the limit; between 0 and 1: this quantile of
    # single jobs
    risk: float | None = None

    @property
    def metric(self) -> Metric | None:
        """The metric of the curve that predicts it; None for PLS, which needs no curve."""
        return None if self.quantity == PLS else self.quantity

    @property
    def column(self) -> str:
        """The column of results that holds it."""
        return PLS if self.metric is None else self.metric.quantity

    @property
    def words(self) -> str:
        """Name of the limited quantity."""
        return "PLS" if self.metric is None else self.metric.loss_label

    @property
    def bound_words(self) -> str:
        """Name of the bound, with its confidence and the share of the jobs."""
        of = "" if self.risk is None else f" for {100 * self.risk:g} % of the jobs"
        return f"{100 * self.confidence:g} % upper bound{of}"

    def held(self, mean: float, bound: float) -> HeldLimit:
        """A loss with the one bound that is compared with the limit."""
        return HeldLimit(self.words, self.column, self.most, mean, bound, self.bound_words)

    def target(self, mean: float, low: float) -> HeldLimit:
        """An expected loss that is meant to be this one, and its bound from below."""
        return replace(self.held(mean, low), bound_words="expected", is_target=True)

    def bound(self, lost: Prediction) -> float:
        """The upper bound, over some replications, that must not lie above `most`."""
        loss = lost.mean() if self.risk is None else quantile_loss(lost, self.risk)
        return loss.quantile(self.confidence)


def quantile_loss(lost: Prediction, risk: float) -> MeanLoss:
    """The loss that a share `risk` of single jobs stays below, with its standard error.

    The sample's quantile. Its standard error by simulation is half the distance between the order
    statistics one binomial standard deviation to either side (Woodruff 1952); the curve's is that
    of the job at the quantile. Jobs differ by their failures only: the variation between training
    runs with equal failures is not included.
    """
    n = len(lost.loss)
    if n < 2:
        return MeanLoss(float(lost.loss[0]), nan)
    order = np.argsort(lost.loss, kind="stable")
    place = (n - 1) * risk
    aside = sqrt(n * risk * (1 - risk))
    low, high = (
        float(np.quantile(lost.loss, min(max((place + side) / (n - 1), 0.0), 1.0)))
        for side in (-aside, aside)
    )
    of_curve = float(lost.standard_error[order[round(place)]]) ** 2
    error, degrees = pooled((((high - low) / 2) ** 2, n - 1), (of_curve, lost.degrees))
    return MeanLoss(float(np.quantile(lost.loss, risk)), error, degrees)


NO_LIMIT = Limit(PLS, 0.0)
"""The limit if no compared candidate loses samples: all satisfy it."""


LIMITS = {"max_auc_loss": Metric.AUC, "max_log_loss": Metric.LOG_LOSS, "target_pls": PLS}
LIMIT_OPTIONS = (
    "max_auc_loss, max_log_loss, max_loss or target_pls (options, and keys of `accuracy`)"
)


def limit_of(loaded: LoadedScenario, *, needs_curve: bool = True) -> Limit | None:
    """The limit in the section `accuracy`; None if it has none.

    Raises ScenarioError for several limits, and, if `needs_curve`, for one without a curve.
    """
    section = loaded.scenario.accuracy
    if section is None:
        return None
    limits = limits_in(section)
    if len(limits) > 1:
        message = f"there are {len(limits)} limits: keep one of {LIMIT_OPTIONS}"
        raise loaded.error("accuracy", message)
    if not limits:
        return None
    if needs_curve and limits[0].metric is not None and chosen_curve(loaded) is None:
        message = (
            "an accuracy limit needs a staleness curve, and none applies: name one as "
            f"`curve` (shipped: {', '.join(shipped_names()) or 'none'}; or a CSV of your own, see "
            f"docs/staleness.md), or measure one: cprsim measure {loaded.path}"
        )
        raise ScenarioError.at(loaded.place("accuracy"), message, key="accuracy.curve")
    return limits[0]


def limits_in(section: Accuracy) -> list[Limit]:
    """The limits that a section `accuracy` names."""
    by_key = {quantity: getattr(section, key) for key, quantity in LIMITS.items()}
    by_metric = {Metric(name): most for name, most in (section.max_loss or {}).items()}
    risk = None if section.risk == "mean" else float(section.risk)
    return [
        Limit(what, most, section.confidence, risk)
        for what, most in (by_key | by_metric).items()
        if most is not None
    ]


def held_limits(loaded: LoadedScenario, outcome: Outcome) -> dict[str, tuple[HeldLimit, ...]]:
    """By strategy that may lose accuracy: its entry's target, and the limits of `accuracy`."""
    section, held = loaded.scenario.accuracy, dict[str, tuple[HeldLimit, ...]]()
    general = limits_in(section) if section is not None else []
    accepted = (entry for entry in loaded.scenario.recovery if not entry.assumed)
    targets = {entry.name: entry.target_pls for entry in accepted}
    rows = replication_rows(outcome)
    for of in outcome.strategies:
        policy, most = of.policy, targets.get(of.policy.name)
        if strategy_key(policy) is None or not of.costs.finished.all():
            continue
        target = [] if most is None else [Limit(PLS, most)]
        for limit in dict.fromkeys([*general, *target]):
            lost: Prediction | None = None
            if limit.metric is None and policy.leaves_stale:
                lost = exactly(rows.loc[rows["strategy"] == policy.name, "pls"].to_numpy())
            elif limit.metric is not None and outcome.curve is not None:
                lost = outcome.curve.predict(
                    policy, limit.metric, of.losses, of.costs, outcome.useful_h
                )
            if lost is not None:
                found = limit.held(float(lost.loss.mean()), limit.bound(lost))
                if limit not in general:
                    found = limit.target(found.mean, lost.mean().quantile(1.0 - limit.confidence))
                held[policy.name] = (*held.get(policy.name, ()), found)
    return held
