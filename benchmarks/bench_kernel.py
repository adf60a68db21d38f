"""How fast the DLRM trains: ours, PyTorch's, JAX's, and what the parts alone would take.

One core, one process, taking turns, the best of several rounds in CPU time, so that a busy machine
disturbs little. The models of PyTorch and JAX are the fastest that we know how to write: one fused
table with sparse gradients, batched interaction, a flat gather of the triangle; JAX's step is
compiled and updates its weights in place. The bound is what the parts take that no implementation
can leave out: the matrix products, the batched interaction, fetching the rows and adding to them.
`warm`: the sum of the parts, each repeated alone on the same rows, which lie in the caches then.
`in order`: the same calls one after the other, as a step makes them, each batch on its own rows:
what lies in the caches is what the last part left. `passes`: the same with what multiplies no
matrices but cannot be left out either, each in one pass: biases, ReLU, the triangle taken out and
put back, the update of the layers. What ours lacks to that is calls.

    python benchmarks/bench_kernel.py    # PyTorch and JAX beside it where they are installed
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from cprsim.job.model_shape import CRITEO_KAGGLE, ModelShape
from cprsim.training.kernel import blas
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.clicks.records import Clicks
from cprsim.training.kernel.loops import (
    add_bias_relu,
    pack_pairs,
    relu_bias_gradient,
    sgd_dense,
    sgd_rows,
    unpack_pairs,
)
from cprsim.training.kernel.model import Dlrm, Workspace
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan

TABLES = CRITEO_KAGGLE.tables.capped(100_000)  # 840,543 rows, 54 MB
CASES = [((64, 32), 128), ((64, 32), 512), ((512, 256), 128), ((512, 256), 512)]
AT_LEAST = {(64, 32): 1.5, (512, 256): 1.2}  # times PyTorch
N_BATCHES, ROUNDS, RATE = 100, 5, 0.1


def ours(shape: ModelShape, clicks: Clicks, batch: int, optimizer: str = "sgd") -> Callable:
    """Trains all clicks once."""
    plan = TrainingPlan(batch, RATE, optimizer=optimizer)
    trainer = ProxyTrainer(shape, clicks, plan)

    def one_pass() -> None:
        trainer.arrays()["position"][:] = 0
        trainer.run()

    return one_pass


def theirs(shape: ModelShape, clicks: Clicks, batch: int) -> Callable:
    """Trains all clicks once with PyTorch."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    f, d = shape.n_fields, shape.dimension
    table = nn.EmbeddingBag(shape.tables.n_rows, d, mode="sum", sparse=True)

    def stack(widths: tuple[int, ...], relu_last: bool) -> nn.Sequential:
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise(widths):
            layers += [nn.Linear(n_in, n_out), nn.ReLU()]
        return nn.Sequential(*(layers if relu_last else layers[:-1]))

    bottom, top = stack(shape.bottom_widths, True), stack(shape.top_widths, False)
    parameters = [*table.parameters(), *bottom.parameters(), *top.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=RATE)
    loss_of = nn.BCEWithLogitsLoss()
    lower = torch.tril_indices(f, f, -1)
    triangle = lower[0] * f + lower[1]
    offsets = torch.arange(batch * (f - 1))
    integers, label = torch.tensor(clicks.integers), torch.tensor(clicks.label)
    rows = torch.tensor(clicks.rows.astype(np.int64))

    def one_pass() -> None:
        for first in range(0, len(clicks), batch):
            some = slice(first, first + batch)
            x = bottom(integers[some])
            embedded = table(rows[some].reshape(-1), offsets).view(batch, f - 1, d)
            fields = torch.cat([x[:, None], embedded], dim=1)
            pairs = torch.bmm(fields, fields.transpose(1, 2)).view(batch, f * f)
            top_input = torch.cat([x, pairs.index_select(1, triangle)], dim=1)
            loss = loss_of(top(top_input)[:, 0], label[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return one_pass


def of_jax(shape: ModelShape, clicks: Clicks, batch: int) -> Callable:
    """Trains all clicks once with JAX, one thread, a compiled step for each batch."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(1)
    f, d = shape.n_fields, shape.dimension
    lower = np.tril_indices(f, -1)
    triangle = lower[0] * f + lower[1]

    def layers(widths: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
        return [
            (rng.normal(0, (n_in + n_out) ** -0.5, (n_in, n_out)).astype("f"), np.zeros(n_out, "f"))
            for n_in, n_out in pairwise(widths)
        ]

    def through(stack: list, x: jax.Array, relu_last: bool) -> jax.Array:
        for number, (weight, bias) in enumerate(stack):
            x = x @ weight + bias
            x = jax.nn.relu(x) if relu_last or number < len(stack) - 1 else x
        return x

    def loss_of(dense: tuple, embedded: jax.Array, x: jax.Array, label: jax.Array) -> jax.Array:
        bottom = through(dense[0], x, True)
        fields = jnp.concatenate([bottom[:, None], embedded], 1)
        pairs = jnp.einsum("nid,njd->nij", fields, fields).reshape(len(x), f * f)
        logit = through(dense[1], jnp.concatenate([bottom, pairs[:, triangle]], 1), False)[:, 0]
        return jnp.mean(jax.nn.softplus(logit) - logit * label)

    def step(table: jax.Array, dense: tuple, *batch_of: jax.Array) -> tuple[jax.Array, tuple]:
        x, rows, label = batch_of
        d_dense, d_rows = jax.grad(loss_of, (0, 1))(dense, table[rows], x, label)
        dense = jax.tree.map(lambda weight, gradient: weight - RATE * gradient, dense, d_dense)
        return table.at[rows].add(-RATE * d_rows), dense

    compiled_step = jax.jit(step, donate_argnums=(0, 1))
    table = jnp.zeros((shape.tables.n_rows, d), jnp.float32)
    weights = [
        table,
        jax.tree.map(jnp.array, (layers(shape.bottom_widths), layers(shape.top_widths))),
    ]
    batches = [
        [
            jnp.array(column[first : first + batch])
            for column in (clicks.integers, clicks.rows, clicks.label)
        ]
        for first in range(0, len(clicks), batch)
    ]

    def one_pass() -> None:
        for batch_of in batches:
            weights[:] = compiled_step(*weights, *batch_of)
        jax.block_until_ready(weights)

    return one_pass


OTHERS = {name: make for name, make in {"torch": theirs, "jax": of_jax}.items() if find_spec(name)}


def parts(shape: ModelShape, clicks: Clicks, batch: int) -> Iterator[Callable[[int], object]]:
    """The parts that no implementation can leave out, each as a call on the batch at a sample."""
    model = Dlrm(shape)
    work = Workspace(model, batch)
    for array in (work.fields, work.fields_t, work.pairs, work.d_pairs, work.d_fields):
        array[:] = 0.1
    for widths, of_clicks in ((shape.bottom_widths, True), (shape.top_widths, False)):
        for number, (n_in, n_out) in enumerate(pairwise(widths)):
            x, w = np.ones((batch, n_in), np.float32), np.ones((n_in, n_out), np.float32)
            y, d_w, d_x = x @ w, np.empty_like(w), np.empty_like(x)
            yield lambda _, x=x, w=w, y=y: np.matmul(x, w, out=y)
            yield lambda _, x=x, y=y, d_w=d_w: np.matmul(x.T, y, out=d_w)
            if number or not of_clicks:  # nothing learns from the gradient of the clicks
                yield lambda _, y=y, w=w, d_x=d_x: np.matmul(y, w.T, out=d_x)
    yield lambda _: np.matmul(work.fields, work.fields_t, out=work.pairs)
    yield lambda _: np.matmul(work.d_pairs, work.fields, out=work.d_fields)
    rows, d_rows = clicks.rows, work.d_fields
    fetched = np.empty((batch, rows.shape[1], shape.dimension), np.float32)
    changed = np.zeros(shape.tables.n_rows, np.uint8)
    yield lambda at: np.take(model.table, rows[at : at + batch], 0, fetched, "clip")
    yield lambda at: sgd_rows(model.table, changed, rows[at : at + batch], d_rows, 1e-6)


def passes(shape: ModelShape, batch: int) -> Iterator[Callable[[int], object]]:
    """What a step does besides: each thing once over its memory."""
    model = Dlrm(shape)
    work = Workspace(model, batch)
    for array in (work.flat_pairs, work.d_top_input):
        array[:] = 0.1
    for stack, outputs, back, gradients in (
        (model.bottom, work.bottom, work.d_bottom, work.bottom_gradients),
        (model.top, work.top, work.d_top, work.top_gradients),
    ):
        for (_, bias), y, d_y, (_, d_bias) in zip(
            stack.layers, outputs, back, gradients, strict=True
        ):
            y[:], d_y[:] = 0.1, 0.1
            yield lambda _, y=y, bias=bias: add_bias_relu(y, bias)
            yield lambda _, y=y, d_y=d_y, d_bias=d_bias: relu_bias_gradient(y, d_y, d_bias)
    bottom, pairs, d_x = work.bottom[-1], work.flat_pairs, work.d_top_input
    yield lambda _: pack_pairs(bottom, pairs, work.triangle, work.top_input)
    yield lambda _: unpack_pairs(d_x, shape.dimension, work.d_pairs)
    work.d_dense[:] = 0
    yield lambda _: sgd_dense(model.dense, work.d_dense, 1e-6)


def in_order(calls: list[Callable[[int], object]], clicks: Clicks, batch: int) -> Callable:
    """Makes these calls on all batches, and nothing else."""

    def one_pass() -> None:
        for at in range(0, len(clicks), batch):
            for call in calls:
                call(at)

    return one_pass


def warm_s(part: Callable[[int], object], n_calls: int = 50) -> float:
    """Seconds of a part on the first batch, the best of some rounds."""
    part(0)
    best = np.inf
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(n_calls):
            part(0)
        best = min(best, (time.process_time() - start) / n_calls)
    return best


def in_turns_s(calls: list[Callable]) -> list[float]:
    """Seconds of each call, the best of some rounds in which they take turns."""
    for call in calls:
        call()
    rounds = []
    for _ in range(ROUNDS):
        taken = []
        for call in calls:
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
        rounds.append(taken)
    return np.min(rounds, axis=0).tolist()


def main() -> None:
    print(f"DLRM kernel, thousand samples per CPU second; BLAS: {blas.description()}")
    beside = "".join(f" {name:>8} {f'ours/{name}':>11}" for name in OTHERS)
    bounds = "".join(f" {name:>9} {'ours/that':>10}" for name in ("warm", "in order", "passes"))
    print(f"{'top':>12} {'batch':>6} {'ours':>8} {'Adagrad':>8}{beside}{bounds}")
    for top, batch in CASES:
        shape = ModelShape(TABLES, top=top)
        clicks = generate(TABLES, batch * N_BATCHES, seed=1)[0]
        calls = [ours(shape, clicks, batch), ours(shape, clicks, batch, "adagrad")]
        calls += [make(shape, clicks, batch) for make in OTHERS.values()]
        needed, besides = list(parts(shape, clicks, batch)), list(passes(shape, batch))
        calls += [in_order(some, clicks, batch) for some in (needed, needed + besides)]
        with blas.one_thread():
            *taken, ordered, whole = [len(clicks) / s / 1e3 for s in in_turns_s(calls)]
            warm = batch / sum(warm_s(part) for part in needed) / 1e3
        beside = "".join(f" {other:8.1f} {taken[0] / other:10.2f}x" for other in taken[2:])
        bounds = "".join(f" {most:9.1f} {taken[0] / most:10.2f}" for most in (warm, ordered, whole))
        print(f"{'-'.join(map(str, top)):>12} {batch:6d} {taken[0]:8.1f} {taken[1]:8.1f}"
              f"{beside}{bounds}", flush=True)  # fmt: skip
    wanted = ", ".join(f"{least} x torch at {top}" for top, least in AT_LEAST.items())
    print(f"wanted: at least {wanted}")


if __name__ == "__main__":
    main()
