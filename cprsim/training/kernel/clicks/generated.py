"""Clicks from a generator, so that everything runs with no data at all.

Row ids follow Zipf's law in each table; integers are standard normal; whether a sample is clicked
is drawn from a planted teacher: effects of single rows and integers, and pairwise effects of rows
through latent vectors, which the dot interaction of a DLRM can find. The teacher's weights are
hashes of row ids, so that they take no memory and do not depend on the size of the tables.

Samples are drawn in blocks with a stream each: the first n samples do not depend on how many are
asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cprsim.compiling import compiled
from cprsim.failures.sources import stream
from cprsim.job.model_shape import TableLayout
from cprsim.training.kernel.clicks.records import N_INTEGERS, Clicks, Float32, Int32
from cprsim.training.kernel.loops import Array, mix

BLOCK = 1 << 16
ZIPF_EXPONENT = 1.05  # the top eighth of a table then takes about 77 % of its accesses, as Criteo's
N_LATENT = 4

# Standard deviations of what the teacher adds up, and its offset: together they put its AUC near
# 0.87 and the share of clicks near Criteo's 26 %.
ROW_EFFECT, INTEGER_EFFECT, PAIR_EFFECT, OFFSET = 1.6, 1.0, 1.0, -1.7


def generate(tables: TableLayout, n_samples: int, seed: int) -> tuple[Clicks, Float32]:
    """Draw `n_samples` clicks on these tables; and the log odds (n,) of their labels."""
    label = np.empty(n_samples, np.float32)
    integers = np.empty((n_samples, N_INTEGERS), np.float32)
    rows = np.empty((n_samples, tables.n_tables), np.int32)
    logit = np.empty(n_samples, np.float32)
    for block, first in enumerate(range(0, n_samples, BLOCK)):
        some = slice(first, min(first + BLOCK, n_samples))
        n = some.stop - first
        rng = stream(seed, block, "kernel/clicks")
        rows[some] = zipf_rows(tables, rng.random((BLOCK, tables.n_tables)))[:n]
        integers[some] = rng.standard_normal((BLOCK, N_INTEGERS), np.float32)[:n]
        teacher_logits(rows[some], integers[some], np.uint64(seed), logit[some])
        label[some] = rng.random(BLOCK)[:n] < 1 / (1 + np.exp(-logit[some]))
    return Clicks(tables, label, integers, rows), logit


def zipf_rows(tables: TableLayout, uniform: Array) -> Int32:
    """Fused rows (n, n_tables) from uniforms: P(row i of a table) falls as (i + 1)^-exponent."""
    power = 1 - ZIPF_EXPONENT
    n_rows = np.array(tables.rows)
    within = ((((n_rows + 1.0) ** power - 1) * uniform + 1) ** (1 / power)).astype(np.int64) - 1
    return (np.clip(within, 0, n_rows - 1) + tables.first_row[:-1]).astype(np.int32)


@compiled
def weight(key: int, kind: int, seed: Any) -> float:
    """A number of mean 0 and variance 1 that belongs to (key, kind, seed): uniform, by hash."""
    hashed = mix(np.uint64(key) ^ mix(np.uint64(kind) ^ mix(np.uint64(seed))))
    return float((np.float64(hashed >> np.uint64(11)) * 2.0**-52 - 1.0) * np.sqrt(3.0))


@compiled
def teacher_logits(rows: Array, integers: Array, seed: Any, logit: Array) -> None:
    """Log odds (n,) of samples with rows (n, n_tables) and integers (n, 13).

    Pairwise effects of all tables in one sum: over pairs z_s . z_t = (|sum z|^2 - sum |z|^2) / 2.
    """
    n_tables, n_integers = rows.shape[1], integers.shape[1]
    n_terms = N_LATENT * n_tables * (n_tables - 1) / 2
    for i in range(rows.shape[0]):
        by_row, by_integer, by_pair = 0.0, 0.0, 0.0
        for t in range(n_tables):
            by_row += weight(rows[i, t], 0, seed)
        for j in range(n_integers):
            by_integer += integers[i, j] * weight(j, 1, seed)
        for k in range(N_LATENT):
            total, squares = 0.0, 0.0
            for t in range(n_tables):
                z = weight(rows[i, t], 2 + k, seed)
                total += z
                squares += z * z
            by_pair += (total * total - squares) / 2
        logit[i] = (
            OFFSET
            + ROW_EFFECT * by_row / np.sqrt(n_tables)
            + INTEGER_EFFECT * by_integer / np.sqrt(n_integers)
            + PAIR_EFFECT * by_pair / np.sqrt(n_terms)
        )
