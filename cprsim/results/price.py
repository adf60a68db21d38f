"""What a node-hour costs, as a scenario's section `prices` says; money is node-hours times that."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.results.words import NO_NUMBER, significant


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a node-hour, and the label of its currency; nothing is ever converted."""

    node_hour: float
    currency: str = ""

    def of(self, node_h: float) -> float:
        """What node-hours cost."""
        return self.node_hour * node_h

    def said(self, node_h: float) -> str:
        """``39.7 USD``; without a label the number alone."""
        money = significant(self.of(node_h))
        return money if money == NO_NUMBER else f"{money} {self.currency}".rstrip()
