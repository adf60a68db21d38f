"""A reproduced result in its file: what is read back equals what was written."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from cprsim.codec import decode, encode
from cprsim.plots.chart import Band, Chart, Panel, Series
from cprsim.reproduce.summary import Listing, Summary, TargetRow
from cprsim.reproduce.verdicts import Finding, Verdict
from tests.generated import anything, comparable, names

finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.lists(anything, max_size=4).map(tuple)
places = st.lists(finite, max_size=4).map(tuple) | st.lists(names, max_size=4).map(tuple)
verdicts = st.builds(Verdict, st.sampled_from(Finding), st.text(max_size=10))
rows = st.builds(
    TargetRow, names, names, names, names, names, anything, anything, anything, verdicts,
    st.lists(names, max_size=2).map(tuple),
)  # fmt: skip
cells = st.lists(names, max_size=3).map(tuple)
listings = st.builds(Listing, names, cells, st.lists(cells, max_size=2).map(tuple))
series = st.builds(
    Series, names, places, values, values, values,
    st.sampled_from(["line", "points", "steps", "stack", "paper"]),
)  # fmt: skip
bands = st.builds(Band, names, anything, anything, st.sampled_from(["x", "y"]))
panels = st.builds(
    Panel, names, names, names, st.lists(series, max_size=2).map(tuple),
    st.lists(bands, max_size=2).map(tuple), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
charts = st.builds(Chart, names, names, st.lists(panels, max_size=2).map(tuple))
summaries = st.builds(
    Summary, names, names, st.lists(rows, max_size=2).map(tuple),
    st.lists(listings, max_size=2).map(tuple), st.lists(names, max_size=2).map(tuple),
    st.lists(charts, max_size=2).map(tuple),
)  # fmt: skip


@settings(max_examples=40)
@given(summaries)
def test_it_is_read_back_as_it_was_written(summary):
    again = decode(Summary, json.loads(json.dumps(encode(summary), allow_nan=False)))
    assert comparable(again) == comparable(summary)
