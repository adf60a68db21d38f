"""Keys of a response: the strategy whose stale shards are priced, and a metric of the model."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

import numpy as np

from cprsim.errors import ParameterError
from cprsim.job.policy import Policy
from cprsim.job.records import Floats, Ints, ShardLoss, SmallTables, SubSaves

NAME = re.compile(r"[a-z0-9][a-z0-9@.-]{0,39}")


class Metric(str):
    """The name of a metric: small letters, digits, ``@``, ``.`` and ``-``; ``_`` is read as ``-``.

    A larger loss is worse in all. A metric with a name other than those below is itself a loss:
    its value rises as the model gets worse.
    """

    __slots__ = ()

    AUC: ClassVar[Metric]  # area under the ROC curve
    LOG_LOSS: ClassVar[Metric]  # [nats]
    NE: ClassVar[Metric]  # normalised entropy: log-loss over that of the base rate
    CALIBRATION: ClassVar[Metric]  # predicted over seen clicks; worse the further from 1
    NDCG: ClassVar[Metric]  # of the lists that samples rank in

    def __new__(cls, name: Any) -> Self:
        text = str(name).replace("_", "-")
        if not NAME.fullmatch(text):
            raise ParameterError(
                f"`{text[:60]}` is no name of a metric: it has small letters, digits, `@`, `.` and "
                "`-`, at most 40, such as ne or recall-loss@10"
            )
        return super().__new__(cls, text)

    @property
    def value(self) -> str:
        """The name as plain text."""
        return str(self)

    @property
    def label(self) -> str:
        """The name as people write it."""
        return METRIC_LABELS.get(self, self.value)

    @property
    def loss_label(self) -> str:
        """The name of its loss, for output."""
        return "log-loss rise" if self == Metric.LOG_LOSS else f"{self.label} loss"

    @property
    def quantity(self) -> str:
        """The column of results that holds its loss."""
        return LOSS_NAMES.get(self, f"{self}{WORSE}")

    @classmethod
    def of_quantity(cls, quantity: str) -> Metric | None:
        """The metric whose loss a column of results holds; None where it is another column."""
        for metric, name in LOSS_NAMES.items():
            if name == quantity:
                return metric
        return Metric(quantity.removesuffix(WORSE)) if quantity.endswith(WORSE) else None

    def worse_by(self, twin: float, run: float) -> float:
        """How much worse a run ended than its twin."""
        if self in BETTER_IF_HIGH:
            return twin - run
        if self == Metric.CALIBRATION:
            return abs(run - 1.0) - abs(twin - 1.0)
        return run - twin


Metric.AUC, Metric.LOG_LOSS = Metric("auc"), Metric("log-loss")
Metric.NE, Metric.CALIBRATION, Metric.NDCG = Metric("ne"), Metric("calibration"), Metric("ndcg")

ALWAYS = (Metric.AUC, Metric.LOG_LOSS)  # every run is judged by
BETTER_IF_HIGH = (Metric.AUC, Metric.NDCG)
WORSE = "_worse"
LOSS_NAMES = {Metric.AUC: "auc_loss", Metric.LOG_LOSS: "log_loss_rise"}
METRIC_LABELS = {Metric.AUC: "AUC", Metric.NE: "NE", Metric.NDCG: "NDCG"}


WHOLE = "partial"  # every save is whole: partial recovery, at whatever interval
MORE_BYTES = "+"  # after the tracker's name: the small tables are saved with every sub-save
TRACKERS = {  # what each saves first
    "scar": "the rows that changed most since their last save",
    "mfu": "the rows used most often since their last save",
    "ssu": "rows that a sub-sample of the inputs used",
    "momentum": "the used rows with the largest momentum in the optimizer",
    "round-robin": "one part of the rows after the other (control)",
}
RESPONSE_KEYS = (WHOLE, *TRACKERS, *(tracker + MORE_BYTES for tracker in TRACKERS))


def strategy_key(policy: Policy) -> str | None:
    """Whose response a policy has: of `RESPONSE_KEYS`, or a system's; None: nothing is lost."""
    if policy.accuracy_model is not None:
        return policy.accuracy_model
    if not policy.leaves_stale:
        return None
    return WHOLE if policy.sub_saves is None else priority_key(policy.sub_saves)


def priority_key(sub_saves: SubSaves) -> str:
    """The same of a way of priority saving."""
    fresh = sub_saves.small_tables is SmallTables.EACH_SUB_SAVE
    return sub_saves.tracker + (MORE_BYTES if fresh else "")


def lost_portion(
    staleness_h: Floats, losses: ShardLoss, replications: Ints, useful_h: float
) -> Floats:
    """Portion of lost samples of each replication.

    Sum of ``staleness * share / useful`` over the replication's losses: samples are lost in
    proportion to hours of work, and a shard holds its share of the embedding servers.
    """
    portion = np.zeros(len(replications))
    row = np.searchsorted(replications, losses.replication)
    np.add.at(portion, row, staleness_h * losses.share / useful_h)
    return portion
