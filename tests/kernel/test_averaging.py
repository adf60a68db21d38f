"""The algebra of synchronisation, to float32 rounding; exactly where it has to be exact."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cprsim.kernel.replicas import bmuf, easgd

ROUNDING = 4 * np.finfo(np.float32).eps
weights = st.floats(-100, 100, width=32)
vectors = arrays(np.float32, 5, elements=weights)
strengths = st.floats(0.01, 1.0)


quickly = settings(max_examples=50)


def close(a, b, scale=100.0) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=ROUNDING * scale))


@quickly
@given(vectors, vectors, vectors, strengths)
def test_easgd_keeps_the_sum_of_replica_and_central_copy(w, sent, g, a) -> None:
    before = w.astype(np.float64) + g
    easgd(w, sent, g, a)
    assert close(w.astype(np.float64) + g, before, scale=400)


@quickly
@given(vectors, vectors)
def test_bmuf_without_momentum_at_rate_1_is_the_mean(g, mean) -> None:
    bmuf(g, np.zeros_like(g), mean, momentum=0.0, block_rate=1.0)
    assert close(g, mean, scale=400)


def test_bmuf_goes_on_where_it_went() -> None:
    g, v = np.zeros(1, np.float32), np.zeros(1, np.float32)
    went = []
    for mean in (1.0, 1.0, 1.0):  # v: 0.5, 0.5 + 0.25, 0.375 - 0.125
        bmuf(g, v, np.float32([mean]), momentum=0.5, block_rate=0.5)
        went.append(float(g[0]))
    assert went == [0.5, 1.0, 1.25]
