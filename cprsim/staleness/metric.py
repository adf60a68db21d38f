"""In what a model is worse than its twin that met no failure: AUC, log-loss, or any other name."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

from cprsim.errors import ParameterError

NAME = re.compile(r"[a-z0-9][a-z0-9@.-]{0,39}")


class Metric(str):
    """The name of a metric: small letters, digits, ``@``, ``.`` and ``-``; ``_`` is read as ``-``.

    More loss is worse in all. Of a name that is none of those below, the metric itself is a loss:
    what is reported rises as the model gets worse.
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
        return LABELS.get(self, self.value)

    @property
    def loss_label(self) -> str:
        """What is lost of it, as people write it."""
        return "log-loss rise" if self == Metric.LOG_LOSS else f"{self.label} loss"

    @property
    def quantity(self) -> str:
        """The column of results that holds its loss."""
        return QUANTITIES.get(self, f"{self}{WORSE}")

    @classmethod
    def of_quantity(cls, quantity: str) -> Metric | None:
        """The metric whose loss a column of results holds; None where it is another column."""
        for metric, name in QUANTITIES.items():
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
QUANTITIES = {Metric.AUC: "auc_loss", Metric.LOG_LOSS: "log_loss_rise"}
LABELS = {Metric.AUC: "AUC", Metric.NE: "NE", Metric.NDCG: "NDCG"}
