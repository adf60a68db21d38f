"""A selection in its file: what is read back equals what was written, whatever it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cprsim.files import decode, encode
from cprsim.records import Estimate
from cprsim.selector.choice import Candidate, DrawnDecisions, Flip, Selection
from cprsim.selector.limit import Limit, LimitedQuantity
from tests.generated import anything, comparable, finite, names, policies, positive

counts = st.integers(0, 10**6)
spreads = st.builds(Estimate, anything, anything, anything, counts)
candidates = st.builds(
    Candidate,
    strategy=names,
    policy=policies,
    n_saves=counts,
    finished_fraction=st.floats(0, 1),
    overhead=spreads,
    pls=spreads,
    loss=spreads,
    held=anything,
    keeps=st.booleans(),
    benefit=spreads,
    beyond_fraction=st.floats(0, 1),
    rule=st.sampled_from(["", "cpr", "cpr-undivided"]),
    option=st.sampled_from(["", "remote_every"]),
    entry=st.text(max_size=20),
)
drawn = st.builds(
    DrawnDecisions, counts, st.floats(0, 1), st.floats(0, 1), positive | st.just(0.0), positive
)
flips = st.builds(
    Flip, names, names, finite, st.none() | finite, st.lists(finite, max_size=2).map(tuple)
)
limits = st.builds(
    Limit,
    st.sampled_from([LimitedQuantity.AUC, LimitedQuantity.PLS, LimitedQuantity("ne")]),
    st.floats(0, 1),
    st.floats(0.5, 0.99),
    st.none() | st.floats(0.1, 0.9),
)


@st.composite
def selections(draw: Any) -> Selection:
    full = draw(candidates)
    best = draw(st.dictionaries(names, st.none() | candidates, max_size=3))
    best = {name: one and _called(one, name) for name, one in best.items()}
    there = [name for name, one in best.items() if one is not None]
    recommended = draw(st.sampled_from(["", *there]))
    return Selection(
        useful_h=draw(st.floats(1, 1e5)),
        n_replications=draw(counts),
        limit=draw(limits),
        curve=draw(st.none() | names),
        full=full,
        best=best,
        formula=draw(st.lists(candidates, max_size=2).map(tuple)),
        front=draw(st.dictionaries(names, st.lists(candidates, max_size=2).map(tuple), max_size=2)),
        recommended=recommended or full.strategy,
        fell_back=not recommended,
        flips=draw(st.lists(flips, max_size=2).map(tuple)),
        drawn=draw(st.none() | drawn),
        notes=draw(st.lists(names, max_size=2).map(tuple)),
        left_out=draw(st.lists(names, max_size=2).map(tuple)),
        limited=draw(st.booleans()),
    )


def _called(one: Candidate, name: str) -> Candidate:
    return replace(one, strategy=name)


@settings(max_examples=40)
@given(selections())
def test_it_is_read_back_as_it_was_written(selection: Selection) -> None:
    again = decode(Selection, json.loads(json.dumps(encode(selection), allow_nan=False)))
    assert comparable(again) == comparable(selection)
    assert again.fell_back == (again.chosen is again.full)
