"""Real Hogwild threads: what a second worker, and a shadow thread beside the workers, cost.

Worker threads share one DLRM without locks; the whole iteration is compiled and holds no
interpreter lock, so that threads run on as many cores as there are. A shadow thread exchanges with
a central copy in memory (EASGD): without a break, which is the most that it can take, or paced as
often as in scenarios/shadowsync.yaml at 20 trainers. Each case runs in turn, several rounds; shown
are medians over rounds, and the share of the workers' speed that the shadow takes, paired within
rounds. On shared cores all of it is an upper bound.

    python benchmarks/bench_hogwild.py
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from cprsim.experiments.train_in_step import sync_setting
from cprsim.kernel import blas
from cprsim.kernel.clicks.generated import generate
from cprsim.kernel.loops import (
    add_bias,
    add_bias_relu,
    bias_gradient,
    bottom_gradient,
    compiled,
    gather,
    logistic_loss,
    pack_pairs,
    relu_bias_gradient,
    sgd_rows,
    unpack_pairs,
)
from cprsim.kernel.model import Dlrm, Workspace, layer_views
from cprsim.kernel.replicas import easgd
from cprsim.kernel.shape import CRITEO_KAGGLE, ModelShape
from cprsim.scenario import load_scenario
from cprsim.sync.load_model import load_model

SHAPE = ModelShape(CRITEO_KAGGLE.tables.capped(20_000))
BATCH, N_BATCHES, ROUNDS, RATE, ELASTIC = 200, 150, 7, 0.05, 0.5


@compiled
def forward_layers(x, weights, biases, outputs, relu_last):
    """One stack forward; outputs[i] (n, out_i)."""
    for i in range(len(weights)):
        np.dot(x, weights[i], outputs[i])
        if relu_last or i < len(weights) - 1:
            add_bias_relu(outputs[i], biases[i])
        else:
            add_bias(outputs[i], biases[i])
        x = outputs[i]


@compiled
def backward_layers(x, weights, outputs, d_outputs, d_weights, d_biases, d_x, relu_last):
    """One stack backward, from d_outputs[-1] to d_x (n, in)."""
    for j in range(len(weights)):
        i = len(weights) - 1 - j
        if relu_last or j > 0:
            relu_bias_gradient(outputs[i], d_outputs[i], d_biases[i])
        else:
            bias_gradient(d_outputs[i], d_biases[i])
        below = x if i == 0 else outputs[i - 1]
        np.dot(below.T, d_outputs[i], d_weights[i])
        np.dot(d_outputs[i], weights[i].T, d_x if i == 0 else d_outputs[i - 1])


@compiled
def work(first, last, integers, rows, label, table, changed, dense, d_dense, bottom, top, buffers):
    """Train the batches from `first` to `last` on shared weights, holding no lock."""
    (b_w, b_b, b_y, b_dy, b_dw, b_db), (t_w, t_b, t_y, t_dy, t_dw, t_db) = bottom, top
    fields, fields_t, pairs, d_pairs, d_fields, top_input, d_top_input, triangle, d_x = buffers
    n, f = fields.shape[0], fields.shape[1]
    for batch in range(first, last):
        x, r = integers[batch * n : (batch + 1) * n], rows[batch * n : (batch + 1) * n]
        forward_layers(x, b_w, b_b, b_y, True)
        gather(table, r, b_y[-1], fields, fields_t)
        for i in range(n):
            np.dot(fields[i], fields_t[i], pairs[i])
        pack_pairs(b_y[-1], pairs.reshape(n, f * f), triangle, top_input)
        forward_layers(top_input, t_w, t_b, t_y, False)
        logistic_loss(t_y[-1][:, 0], label[batch * n : (batch + 1) * n], t_dy[-1][:, 0])
        backward_layers(top_input, t_w, t_y, t_dy, t_dw, t_db, d_top_input, False)
        unpack_pairs(d_top_input, fields.shape[2], d_pairs)
        for i in range(n):
            np.dot(d_pairs[i], fields[i], d_fields[i])
        bottom_gradient(d_fields, d_top_input, b_dy[-1])
        backward_layers(x, b_w, b_y, b_dy, b_dw, b_db, d_x, True)
        sgd_rows(table, changed, r, d_fields, RATE)
        for i in range(dense.shape[0]):
            dense[i] -= np.float32(RATE) * d_dense[i]


@compiled
def exchange(w, sent, g, n):
    """So many exchanges of a shadow thread, one after the other."""
    for _ in range(n):
        sent[:] = w
        easgd(w, sent, g, ELASTIC)


class Worker:
    """What one worker thread needs of its own, over a model that all share."""

    def __init__(self, model: Dlrm, changed: np.ndarray, clicks) -> None:
        buffers = Workspace(model, BATCH)
        d_x = np.empty((BATCH, SHAPE.n_integers), np.float32)
        self.arguments = (
            np.ascontiguousarray(clicks.integers), clicks.rows, clicks.label,
            model.table, changed, model.dense, buffers.d_dense,
            _stack(model.bottom.layers, buffers.bottom, buffers.d_bottom, buffers.bottom_gradients),
            _stack(model.top.layers, buffers.top, buffers.d_top, buffers.top_gradients),
            (buffers.fields, buffers.fields_t, buffers.pairs, buffers.d_pairs, buffers.d_fields,
             buffers.top_input, buffers.d_top_input, buffers.triangle, d_x),
        )  # fmt: skip

    def __call__(self) -> None:
        work(0, N_BATCHES, *self.arguments)


def _stack(layers, outputs, d_outputs, gradients):
    weights, biases = zip(*layers, strict=True)
    d_weights, d_biases = zip(*gradients, strict=True)
    return weights, biases, tuple(outputs), tuple(d_outputs), d_weights, d_biases


class Shadow:
    """The shadow thread: exchanges until it is told to stop, with pauses or without."""

    def __init__(self, model: Dlrm, pause_s: float) -> None:
        self.w, self.g, self.sent = model.dense, model.dense.copy(), model.dense.copy()
        self.pause_s, self.stop, self.n = pause_s, threading.Event(), 0

    def __call__(self) -> None:
        while not self.stop.is_set():
            exchange(self.w, self.sent, self.g, 1 if self.pause_s else 20)
            self.n += 1 if self.pause_s else 20
            if self.pause_s:
                self.stop.wait(self.pause_s)


def examples_per_s(n_workers: int, pause_s: float | None, clicks) -> float:
    """Examples per second of all workers; `pause_s` None: without a shadow thread."""
    model = Dlrm(SHAPE)
    model.initialise(1)
    changed = np.zeros(SHAPE.tables.n_rows, np.uint8)
    workers = [threading.Thread(target=Worker(model, changed, clicks)) for _ in range(n_workers)]
    shadow = None if pause_s is None else Shadow(model, pause_s)
    beside = None if shadow is None else threading.Thread(target=shadow)
    if beside is not None:
        beside.start()
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    taken = time.perf_counter() - start
    if shadow is not None and beside is not None:
        shadow.stop.set()
        beside.join()
    return n_workers * N_BATCHES * BATCH / taken


def exchanges_per_iteration() -> float:
    """Of a trainer with one thread of ours, at the rate of the shipped scenario."""
    setting = sync_setting(load_scenario("scenarios/shadowsync.yaml"))
    return setting.n_threads / load_model(setting).gap


def agrees_with_the_kernel(clicks) -> bool:
    """Whether the compiled iteration does what the kernel does, to rounding."""
    from cprsim.kernel.training import ProxyTrainer, TrainingPlan

    trainer = ProxyTrainer(SHAPE, clicks[: 3 * BATCH], TrainingPlan(BATCH, RATE, seed=1))
    trainer.initialise()
    trainer.run()
    model = Dlrm(SHAPE)
    model.initialise(1)
    worker = Worker(model, np.zeros(SHAPE.tables.n_rows, np.uint8), clicks)
    work(0, 3, *worker.arguments)
    return bool(np.allclose(model.dense, trainer.model.dense, atol=1e-5))


def main() -> None:
    clicks = generate(SHAPE.tables, BATCH * N_BATCHES, seed=1).clicks
    with blas.one_thread():
        if not agrees_with_the_kernel(clicks):
            raise SystemExit("the compiled iteration is not the kernel's")
        alone = examples_per_s(1, None, clicks)
        pause_s = BATCH / alone / exchanges_per_iteration()
        cases: dict[str, Callable[[], float]] = {
            "1 worker": lambda: examples_per_s(1, None, clicks),
            "1 worker + paced shadow": lambda: examples_per_s(1, pause_s, clicks),
            "1 worker + shadow without a break": lambda: examples_per_s(1, 0.0, clicks),
            "2 workers": lambda: examples_per_s(2, None, clicks),
            "2 workers + paced shadow": lambda: examples_per_s(2, pause_s, clicks),
            "2 workers + shadow without a break": lambda: examples_per_s(2, 0.0, clicks),
        }
        rounds = [{name: case() for name, case in cases.items()} for _ in range(ROUNDS)]
    cores = len(os.sched_getaffinity(0))
    dense_kb = 4 * sum(np.size(w) + np.size(b) for w, b in layer_views_of_all()) / 1e3
    print(f"Hogwild on {cores} cores, BLAS: {blas.description()}; batch {BATCH}, "
          f"{dense_kb:.0f} kB of dense weights, paced: every {1e3 * pause_s:.2f} ms")  # fmt: skip
    for name in cases:
        speed = median(one[name] for one in rounds)
        base = name.split(" +")[0]
        cost = median(1 - one[name] / one[base] for one in rounds)
        beside = "" if name == base else f"   shadow takes {100 * cost:5.1f} %"
        times = median(one[name] / one["1 worker"] for one in rounds)
        print(f"{name:36} {speed / 1e3:8.1f} thousand examples/s {times:6.2f}x{beside}")


def layer_views_of_all():
    """Weights and biases of all layers."""
    dense = Dlrm(SHAPE).dense
    model = Dlrm(SHAPE, dense=dense)
    n_bottom = sum(w.size + b.size for w, b in model.bottom.layers)
    return [
        *layer_views(dense[:n_bottom], SHAPE.bottom_widths),
        *layer_views(dense[n_bottom:], SHAPE.top_widths),
    ]


if __name__ == "__main__":
    main()
