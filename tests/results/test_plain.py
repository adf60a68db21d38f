"""What is read back from a results folder equals what was written, whatever it is."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from math import inf, nan

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cprsim.codec import decode, encode, number_from, plain_number
from cprsim.records import OnFailure, RecoveryPolicy, SubSaves
from cprsim.results import load_result
from cprsim.results.folder import write_parquet
from cprsim.results.identity import Identity
from cprsim.results.manifest import read_manifest, write_manifest
from cprsim.results.run import Recovered
from tests.generated import anything, comparable, names, policies


def as_file(plain):
    """Through the text of a file."""
    return json.loads(json.dumps(plain, allow_nan=False))


@given(policies, st.booleans())
def test_a_strategy_is_read_back_as_it_was_written(policy, gave_up):
    again = decode(Recovered, as_file(encode(Recovered(policy, gave_up))))
    assert comparable(again) == comparable(Recovered(policy, gave_up))


@given(anything)
def test_a_number_is_read_back_also_where_it_is_none_or_infinite(value):
    again = number_from(as_file(plain_number(value)))
    assert again == value or (np.isnan(again) and np.isnan(value))


@pytest.mark.parametrize("value", [nan, inf, -inf, 0.1])
def test_the_numbers_that_json_lacks(value):
    assert comparable(number_from(as_file(plain_number(value)))) == comparable(value)


def test_a_result_keeps_its_sub_saves(write, outcome):
    full, cpr = outcome.strategies
    sub_saves = SubSaves("mfu", 0.25, 0.01, n_large_tables=3)
    policy = replace(cpr.policy, sub_saves=sub_saves, save_interval_h=inf)
    made = write(outcome=replace(outcome, strategies=(full, replace(cpr, policy=policy))))
    assert load_result(made.path).policies == (full.policy, policy)


def test_a_policy_of_an_earlier_version_has_no_sub_saves(made):
    plain = {key: value for key, value in encode(made.cpr).items() if key != "sub_saves"}
    assert decode(RecoveryPolicy, plain) == made.cpr


def test_a_word_that_is_no_way_to_recover_is_refused(made):
    with pytest.raises(ValueError, match="give up"):
        decode(RecoveryPolicy, {**encode(made.cpr), "on_failure": "give up"})
    for way in OnFailure:
        policy = replace(made.cpr, on_failure=way)
        assert decode(RecoveryPolicy, encode(policy)) == policy


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
TAKEN = {"format", "name", "replay", "digest", "inputs", "cprsim", "python", "libraries", "files",
         "started_at", "finished_at", "took_s", "host"}  # fmt: skip


@settings(max_examples=25)
@given(about=st.dictionaries(names.filter(lambda name: name not in TAKEN), json_values, max_size=4))
def test_a_manifest_says_what_it_was_told(tmp_path_factory, about):
    folder = tmp_path_factory.mktemp("manifest")
    (folder / "a.txt").write_text("a")
    identity = Identity("made up", "seed: 1\n", {"trace.csv": "00ff"}, replay=3)
    write_manifest(folder, identity, about, datetime.now(UTC))
    found = read_manifest(folder)
    assert {key: found[key] for key in about} == about
    assert (found["name"], found["replay"], found["digest"]) == ("made up", 3, identity.digest)
    assert found["inputs"] == {"trace.csv": "00ff"}


rows = st.lists(
    st.tuples(names, st.integers(-(2**63), 2**63 - 1), st.booleans(), anything), max_size=8
)


@pytest.mark.long
@settings(max_examples=50)
@given(rows)
def test_a_table_is_read_back_to_the_last_bit(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("table") / "rows.parquet"
    columns = ["strategy", "replication", "finished", "wall_h"]
    types = {"replication": np.int64, "finished": bool, "wall_h": float}
    table = pd.DataFrame(values, columns=columns).astype(types)
    write_parquet(table, path)
    again = pd.read_parquet(path)
    assert comparable(again.to_dict("list")) == comparable(table.to_dict("list"))
    if values:
        assert again.dtypes.astype(str).tolist() == table.dtypes.astype(str).tolist()
