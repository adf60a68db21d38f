"""Files of curves: what is written reads back, what is damaged or foreign is one clear error."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cprsim.accuracy.curve import Replicate, Response, StalenessCurve, Weight
from cprsim.accuracy.curve_file import read_curve, write_curve
from cprsim.errors import CurveError
from cprsim.files import digest_of
from cprsim.job.losses import Metric
from cprsim.job.records import SmallTables, SubSaves

WEIGHT = Weight(np.array([0.0, 1.0]), np.array([1.4, 0.6]))
PLAIN = Response.linear(
    "partial", Metric("recall-loss@10"), (0.02, 0.001), 0.3, weight=WEIGHT, degrees=7,
    intercept=-1e-4, replicates=(Replicate(WEIGHT, 0.0, 0.021, 1e-5),),
)  # fmt: skip
FRESH = Response(
    "mfu+",
    Metric.LOG_LOSS,
    np.array([0.0, 0.1, 0.4]),
    np.array([0.0, 0.003, 0.01]),
    np.array([0.0, 0.0002, 0.001]),
    interval_share=0.3,
    settings=SubSaves("mfu", 0.25, 0.1, small_tables=SmallTables.EACH_SUB_SAVE),
)
CURVE = StalenessCurve(
    "made up",
    (PLAIN, FRESH),
    kernel={"samples": 300_000, "bottom": [64, 32], "clicks": "generated"},
    command="cprsim measure made-up.yaml",
    manifest={"seeds": [1, 2, 3], "n_runs": 12},
    checks={"auc": {"intercept": {"mean": 0.9}}},
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "curves" / "made-up.json"
    write_curve(path, CURVE)
    return path


def test_a_curve_reads_back_as_it_was_written(path):
    np.testing.assert_equal(asdict(read_curve(path)), asdict(CURVE))
    assert [file.name for file in path.parent.iterdir()] == ["made-up.json"]


def test_the_identity_is_of_the_kernel_whatever_the_order_of_its_keys():
    turned = replace(CURVE, kernel=dict(reversed(CURVE.kernel.items())), name="other")
    assert turned.identity == CURVE.identity
    other = replace(CURVE, kernel=CURVE.kernel | {"samples": 300_001})
    assert other.identity != CURVE.identity
    assert replace(CURVE, kernel=None).identity is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n "kind": ', r"x.json:2: is damaged, or no JSON"),
        ("[1, 2]", "is no staleness curve: `cprsim measure` writes"),
        ('{"kind": "something else"}', "is no staleness curve"),
        (
            '{"kind": "cprsim staleness curve", "format": 2}',
            "has format 2, and this cprsim reads format 3",
        ),
        ('{"kind": "cprsim staleness curve", "format": 3, "a": NaN}', "is damaged or was changed"),
        ("[" * 100_000, "x.json"),
    ],
)
def test_what_is_no_curve_is_one_clear_error(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(CurveError, match=message) as caught:
        read_curve(path)
    assert len(str(caught.value).splitlines()) == 1


def test_what_only_looks_like_a_curve_is_refused(path):
    plain = json.loads(path.read_text())
    del plain["digest"], plain["responses"][0]["loss"]
    path.write_text(json.dumps(plain | {"digest": digest_of(plain)}))
    with pytest.raises(CurveError, match=r"can't be used .*: responses\.0\.loss: Field required"):
        read_curve(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.data())
def test_a_damaged_byte_never_goes_unseen(path, data):
    whole = path.read_bytes().rstrip()
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != whole[at]))
    damaged = path.with_name("damaged.json")
    damaged.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
    try:
        found = read_curve(damaged)
    except CurveError:
        return
    assert json.loads(damaged.read_bytes()) == json.loads(whole)  # white space, nothing else
    np.testing.assert_equal(asdict(found), asdict(CURVE))
