"""The section `prices`: what puts money beside node-hours."""

from __future__ import annotations

from pydantic import Field

from cprsim.scenario.quantities import Model


class Prices(Model):
    """What a node-hour costs."""

    node_hour: float = Field(
        strict=True, gt=0, le=1e9, description="Price of a node-hour, a number, in `currency`."
    )
    currency: str = Field(
        "",
        strict=True,
        pattern=r"^\S{0,8}$",
        description="Label of the currency, such as EUR; it stands beside amounts, and nothing is "
        "converted.",
    )
