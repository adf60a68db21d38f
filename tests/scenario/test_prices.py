"""The price of a node-hour of a job, and the total that it makes."""

from __future__ import annotations

import pytest

from cprsim.scenario.prices import Money, Prices, mean_node_hour

BY_ROLE = Prices(node_hour={"trainer": Money("2.50 USD"), "any": Money("0.80")})


def test_the_mean_over_the_nodes_times_their_hours_is_what_each_role_costs() -> None:
    nodes = {"trainer": 8, "emb_ps": 4}
    assert mean_node_hour(BY_ROLE, nodes) * 12 * 3 == pytest.approx(3 * (8 * 2.50 + 4 * 0.80))


def test_a_role_without_a_price_costs_nothing() -> None:
    only_trainers = Prices(node_hour={"trainer": Money("2.50 USD")})
    assert mean_node_hour(only_trainers, {"trainer": 1, "emb_ps": 1}) == 1.25
