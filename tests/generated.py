"""Records as hypothesis makes them up: every field, also what is missing or infinite."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from enum import StrEnum
from math import isnan
from typing import Any

from hypothesis import strategies as st

from cprsim.records import Decision, SmallTables, SubSaves
from cprsim.recovery.losses import TRACKERS
from cprsim.recovery.policy import RELOAD, RESTART, ROLL_BACK
from tests.making import paper_policy

finite = st.floats(allow_nan=False, allow_infinity=False)
anything = st.floats()  # NaN and both infinities too
positive = st.floats(min_value=0, exclude_min=True, allow_infinity=True)
names = st.text(min_size=1, max_size=20)

sub_saves = st.builds(
    SubSaves,
    tracker=st.sampled_from(list(TRACKERS)),
    fraction=st.integers(1, 64).map(lambda n: 1 / n),
    extra_h=st.floats(0, 100),
    n_large_tables=st.integers(1, 10_000),
    small_tables=st.sampled_from(SmallTables),
    sample_period=st.integers(1, 10**6),
)
decisions = st.builds(
    Decision,
    chosen=st.sampled_from(["partial", "full"]),
    partial_interval_h=positive,
    full_interval_h=positive,
    partial_overhead_fraction=positive,
    full_overhead_fraction=positive,
    expected_pls=st.floats(0, 10),
)
policies = st.builds(
    paper_policy,
    name=names,
    on_failure=st.sampled_from((RESTART, ROLL_BACK, RELOAD)),
    interval_h=positive,
    interval_rule=names,
    decision=st.none() | decisions,
    sub_saves=st.none() | sub_saves,
)


def comparable(record: Any) -> Any:
    """A record as data of which NaN equals NaN, and of which types count: 1.0 is not 1."""
    if is_dataclass(record) and not isinstance(record, type):
        return type(record).__name__, comparable(asdict(record))
    if isinstance(record, dict):
        return {key: comparable(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return type(record).__name__, [comparable(value) for value in record]
    if isinstance(record, float) and isnan(record):
        return "NaN"
    if isinstance(record, StrEnum):
        return type(record).__name__, record.value
    return record
