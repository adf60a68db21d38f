"""What the fuzzer's cases are made of: results of real runs, logs, and values to try.

`Material` is made once, by cprsim itself; logs are of made-up failures, in every format.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import yaml
from fuzz_mutations import as_csv, places

ROOT = Path(__file__).parents[1]
SCENARIOS = ROOT / "scenarios"
CURVES = ROOT / "cprsim" / "curves" / "shipped"

JANUARY = datetime(2024, 1, 1)
LANL_COLUMNS = (
    "System", "nodes", "nodenumz", "Down Time", "Prob Started", "Facilities", "Hardware",
    "Human Error", "Network", "Undetermined", "Software",
)  # fmt: skip

SMALL = """\
name: small
job: {useful: 20 h}
cluster: {trainers: 2, emb_ps: 4}
failures: {kind: job, family: exponential, mtbf: 10 h}
costs: {save: 5 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery: [full, {strategy: partial, interval: young}, {strategy: cpr, target_pls: 0.1}]
simulation: {seed: 1, replications: 100}
"""
VARIED = """\
name: varied
job: {samples: 4e9, throughput: 50000 samples/s}
cluster:
  trainers: 3
  emb_ps: 4
  others: {reader: 2}
  spares: 1
  repair: {family: lognormal, mean: 3 h, median: 1 h}
  tables: [{rows: 1000000, dimension: 64}, {rows: 5000, dimension: 16}]
failures:
  kind: node
  start: fresh
  clock: uptime
  roles:
    emb_ps: {family: weibull, shape: 0.7, mtbf: 60 h}
    reader: {family: lognormal, sigma: 1.2, mtbf: 90 h}
    trainer: {family: piecewise, ages: [0 h, 20 h], hazards: [0.01 failures/h, 0.02 failures/h]}
storage: {bandwidth: 10 Gbit/s, per_server: 5 Gbit/s}
costs:
  save: {stall: 30 s, background: {family: gamma, mean: 5 min, shape: 2}}
  load: transfer
  detect: 30 s
  reschedule: {family: weibull, mean: 4 min, shape: 1.5}
recovery:
  - none
  - full
  - {strategy: cpr-scar, target_pls: 0.1, sub_saves: {fraction: 0.25, selection: 1 s, latency: 2 s}}
  - strategy: cpr-ssu
    name: odd one
    interval: 1 h
    target_pls: 0.2
    sub_saves: {small_tables: sub-save}
simulation: {seed: 7, replications: 100, engine: simpy}
sweep:
  mode: one-at-a-time
  over: {costs.reschedule: [1 min, 2 min], cluster.trainers: "2:4:lin3"}
"""
REPLAYED = """\
name: replayed
job: {useful: 20 h}
cluster: {trainers: 2, emb_ps: 3}
failures: {kind: trace, file: log.csv, format: tidy}
costs: {save: 5 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery: [full, partial, {strategy: cpr, target_pls: 0.1}]
simulation: {seed: 1, replications: 3}
"""
OWN_CURVE = """\
strategy,pls,loss,standard_error,metric
partial,0.01,0.0001,0.00002,auc
partial,0.1,0.001,0.0001,auc
partial,0.4,0.005,0.0002,auc
mfu,0.1,0.0005,0.0001,auc
scar,0.1,0.0004,0.0001,auc
"""
BOMBS = (
    "a" + ".a" * 40 + " x", "a" + ".a" * 40 + "=", "." * 60, "a." * 60,
    "recovery." + "0." * 50 + "x", "a" * 5000, "a." * 2000 + "b", "recovery.²",
    "recovery.①.interval", "recovery.99999999999999999999.interval", "recovery.-1.interval",
    "simulation.seed.x", "recovery.full.target_pls.x", "sweep.over.x", "sweep", "", ".", "=",
    "costs.save.stall.family.mean", "name.x", "recovery.full..interval", " costs.save ",
    "costs.save\x1b[2J",
)  # fmt: skip
SPANS = (
    "30 s:10 min:log3", "4:8:lin3", "1:2:log1", "0:1:log5", "1:1:lin2", "-1:1:log3",
    "1:9e999:log3", "nan:1:lin3", "1 h:2 GB:lin3", "1:2:lin999999", "1:2:lin0", "1:2:sqrt3", "1:2",
    ":::", "1:2:log3:4", "1,2,", ",", "1,1", "a,b", "$x$,$y$", "\x1b[31m,1", "1 h,2", "true,false",
    "null,1", "0.1:0.2:lin3", "1e-300:1e300:log3", "full,partial", "exponential,gamma",
    "1" * 400 + ",2", "1:" + "9" * 400 + ":log3", "²:³:lin2", "1:2:lin²", "x" * 300 + ",y",
)  # fmt: skip


@dataclass(frozen=True)
class Material:
    """What cases are made of."""

    trees: dict[str, Any]  # scenarios as plain data, by name
    texts: dict[str, bytes]  # and as they stand in their files
    logs: dict[str, bytes]  # of failures, and of costs
    curves: dict[str, bytes]
    results: dict[str, Path]  # finished folders, by kind
    bomb: bytes  # a small .xz of very many rows
    keys: tuple[str, ...]


def make_logs() -> dict[str, bytes]:
    """A log of made-up failures in each format, and one of costs."""
    random = Random("logs")
    stamps, numbers, lanl, events = [], [], [], []
    at_h = 0.0
    for i in range(60):
        at_h += random.expovariate(1 / 7.0)
        end_h = at_h + random.expovariate(1 / 2.0)
        began, ended = (JANUARY + timedelta(hours=hours) for hours in (at_h, end_h))
        node, cause = f"n{random.randrange(8)}", random.choice(["disk", "gpu", "network", ""])
        stamps.append([node, f"{began:%Y-%m-%dT%H:%M:00}", f"{ended:%Y-%m-%dT%H:%M:00}", cause])
        numbers.append([node, f"{at_h:.3f}", f"{end_h:.3f}", cause])
        minutes, number = f"{(end_h - at_h) * 60:.0f}", str(random.randrange(5))
        lanl.append(["2", "5", number, minutes, f"{began:%m/%d/2000 %H:%M}", "", "x", *[""] * 4])
        level = random.choice(["Hardware", "Software"])
        fault = {"node_id": node, "fault_type": {"Level": level, "Class": f"c{i % 3}", "id": i}}
        for hours, kind in ((at_h, "fault_start"), (end_h, "fault_end")):
            events.append(fault | {"event_time": round(hours / 24, 4), "event_type": kind})
    tidy = ["node", "start", "end", "cause"]
    return {
        "stamps.csv": as_csv([tidy, *stamps]),
        "numbers.csv": as_csv([tidy, *numbers]),
        "faults.json": json.dumps(events, indent=1).encode(),
        "lanl.csv": as_csv([list(LANL_COLUMNS), *lanl]),
        "costs.csv": as_csv([["kind", "start", "end", "bytes"], *costs_rows(random)]),
    }


def costs_rows(random: Random) -> list[list[str]]:
    kinds = ("save", "load", "save", "detect", "reschedule")
    return [
        [
            kinds[i % 5],
            f"{i * 100}",
            f"{i * 100 + random.gammavariate(4, 20):.1f}",
            f"{1 + i % 3}e9",
        ]
        for i in range(50)
    ]


def make_data(folder: Path, logs: dict[str, bytes]) -> None:
    """The folder that CPRSIM_DATA names, with made-up logs under the names of the real ones."""
    hbd, lanl = folder / "failures" / "infinitehbd", folder / "failures" / "lanl"
    for one in (hbd, lanl):
        one.mkdir(parents=True)
    (hbd / "fault_trace.json").write_bytes(logs["faults.json"])
    rows = lzma.compress(logs["lanl.csv"])
    (lanl / "LA-UR-05-7318-failure-data-1996-2005.csv.xz").write_bytes(rows)


def make_material(folder: Path, call: Callable[..., str]) -> Material:
    """Everything that cases are made of; `call` runs cprsim and returns what it printed."""
    logs = make_logs()
    texts = {path.stem: path.read_bytes() for path in sorted(SCENARIOS.glob("*.yaml"))}
    texts |= {"small": SMALL.encode(), "varied": VARIED.encode()}
    trees = {name: yaml.safe_load(text) for name, text in texts.items()}
    for name in ("small", "varied"):
        (folder / f"{name}.yaml").write_bytes(texts[name])
    made = folder / "made"

    def result(*arguments: str) -> Path:
        return Path(json.loads(call(*arguments, "--out", str(made), "--json"))["results"])

    def undrawn(*arguments: str) -> Path:
        with without_figures():
            return result(*arguments)

    small, varied = str(folder / "small.yaml"), str(folder / "varied.yaml")
    results = {
        "run": result("run", small),
        "other": undrawn("run", small, "--seed", "2", "--set", "costs.save=9 min"),
        "varied": undrawn("run", varied),
        "replay": undrawn("run", small, "--replay", "3"),
        "sweep": result("sweep", small, "--over", "costs.save=1 min,5 min", "--over",
                        "failures.mtbf=5 h,10 h,20 h", "--workers", "1"),
        "selection": result("select", small, "--target-pls", "0.1", "--replications", "100"),
    }  # fmt: skip
    curves = {path.name: path.read_bytes() for path in sorted(CURVES.glob("*.json"))}
    keys = {
        ".".join(str(part) for part in path) for tree in trees.values() for path in places(tree)
    }
    bomb = lzma.compress(b"node,start,end\n" + b"a,0,1\n" * 40_000_000, preset=0)
    return Material(trees, texts, logs, curves, results, bomb, tuple(sorted(keys)))


@contextmanager
def without_figures() -> Iterator[None]:
    """Leave out the figures of a result, which take longer than all the rest."""

    def nothing(*_: object, **__: object) -> list[Path]:
        return []

    with ExitStack() as patches:
        for name, instead in (
            ("cprsim.plots.save.save_figures", nothing),
            ("cprsim.plots.save.save_figure", nothing),
            ("cprsim.plots.selection.selection_figure", nothing),
            ("cprsim.present.html.inline", lambda *_: ""),
        ):  # fmt: skip
            patches.enter_context(patch(name, instead))
        yield
