"""Numbers of answers, sorted: of `--json`, of CSVs, on axes; and names that are public."""

import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pandas as pd
import typer.main

import cprsim
from cprsim.cli.app import app
from tests.golden.plain import Golden, fit_numbers, numbers_in, table
from tests.making import SCENARIOS, call

ROOT = SCENARIOS.parent
EXAMPLES = ROOT / "docs" / "examples"
WHOLE = ""
CLOSE = {"fit": 1e-6, "calibrate": 1e-6, "backtest": 1e-6}
NOT_NUMBERS = {"bytes", "cpu_s", "seconds", "format"}  # keys of what differs from run to run
FEW = "--replications 40"
FLEET = "--set fleet.jobs=6 --set fleet.kinds=3 --set unknown=null --workers 1"
N_BOOTSTRAP = 199  # by default
LONG = 60  # rows of a table, above which its columns are kept as means
KEPT = ("run", "sweep", "select", "fleet", "systems")  # have results folders
QUICK = {
    "run": f"run quickstart {FEW}",
    "run, systems": f"run llm {FEW}",
    "run, one": f"run quickstart {FEW} --replay worst",
    "sync": "sync shadowsync --trainers 2,6",
    "systems": "systems llm --list",
    "system": "systems --explain gemini",
    "fit, costs": f"fit {EXAMPLES}/saves.csv",
    "ledger": f"ledger {EXAMPLES}/attempts.csv",
    "ledger, events": "ledger LOG",
    "calibrate": "calibrate LOG",
    "backtest": "backtest LOG --recovery full,partial --draws 20",
    "validate": "validate production",
    "init": "init --list",
}
SLOW = {
    "run, money": f"run planning {FEW}",
    "run, accuracy": f"run criteo-kaggle {FEW}",
    "sweep": "sweep quickstart --over failures.mtbf=6h,20h --replications 40 --workers 1",
    "sweep, single": "sweep production --over failures.count=2,8 --over costs.detect=0s,9min "
    "--mode one-at-a-time --replications 40 --workers 1",
    "select": "select criteo-kaggle --max-auc-loss 0.0005 --replications 200",
    "select, PLS": "select quickstart --target-pls 0.05 --replications 200",
    "select, systems": "select llm --target-pls 0.1 --replications 100 --set recovery=[gemini]",
    "compare-systems": "systems llm --only gemini --only full --only hsdp --fixed "
    "--replications 60",
    "compare-systems, best": "systems moe --only gemini --only full --replications 100",
    "fleet": f"fleet planning {FLEET}",
    "fleet, options": f"fleet planning --over spares=0,2 {FLEET}",
}


def written_log(path: Path) -> str:
    """Events of three jobs that save each 500 steps of 10 s, fail, and go back to their saves."""
    dice, lines = random.Random(5), []

    def log(job: int, at_s: float, event: str, **more: Any) -> None:
        at_ns = round((1e6 + at_s) * 1e9)
        lines.append({"time_unix_nano": at_ns, "event": event, "job": f"j{job}", **more})

    for job in range(3):
        at_s, step = 0.0, 0
        log(job, at_s, "job.start", attempt=0, step=0, step_seconds=10)
        log(job, at_s, "train.resume", step=0)
        while step < 20_000:
            until = step + dice.expovariate(1 / 3000)
            for saved in range(step + 500, int(until) + 1, 500):
                log(job, at_s + 10 * (saved - step), "save.start", step=saved)
                step, at_s = saved, at_s + 10 * (saved - step) + dice.uniform(40, 90)
                log(job, at_s, "save.commit", step=saved)
            at_s += 10 * (until - step)
            log(job, at_s, "failure", node=f"n{dice.randrange(8)}", cause="gpu", step=int(until))
            for event in ("failure.detected", "load.start", "train.resume"):
                at_s += dice.uniform(30, 300)
                log(job, at_s, event, **{"step": step} if event == "train.resume" else {})
        log(job, at_s, "job.end", outcome="finished", step=step)
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    return str(path)


def answered(command: str, folder: str) -> tuple[Any, dict[str, pd.DataFrame]]:
    """What a command prints for scripts, and the tables of its results folder."""
    words = [
        written_log(Path(folder, "jobs.jsonl")) if word == "LOG" else word
        for word in command.split()
    ]
    out = ["--out", folder] if words[0] in KEPT else []
    with patch("cprsim.pages.figures.save_figures", lambda *_, **__: []):
        called = call(*words, "--json", *out)
    assert called.exit_code in (0, 1), called.output
    said = json.loads(called.stdout)
    path = said["folder"]
    return said, {one.name: pd.read_csv(one) for one in Path(path).glob("*.csv")} if path else {}


def without_places(said: Any) -> Any:
    """Without what differs from one run to the next."""
    if isinstance(said, dict):
        return {key: without_places(one) for key, one in said.items() if key not in NOT_NUMBERS}
    return [without_places(one) for one in said] if isinstance(said, list) else said


def of_commands(commands: dict[str, str]) -> Golden:
    with TemporaryDirectory() as folder:
        for name, command in commands.items():
            said, tables = answered(command, folder)
            said, of_fit = without_places(said), said["kind"] == "fit"
            yield f"json of {name}", fit_numbers(said, N_BOOTSTRAP) if of_fit else numbers_in(said)
            for file, frame in tables.items():
                columns = frame.select_dtypes("number")
                yield (
                    f"{file} of {name}",
                    table(frame) if len(frame) > LONG else numbers_in(columns.to_dict("list")),
                )


def on_axes(figure: Any) -> list[float]:
    """The numbers behind lines, bars, points and bands."""
    found: list[Any] = []
    for axes in figure.axes:
        found += [[line.get_xdata(), line.get_ydata()] for line in axes.lines]
        found += [[*one.get_xy(), one.get_width(), one.get_height()] for one in axes.patches
                  if hasattr(one, "get_width")]  # fmt: skip
        found += [path.vertices for band in axes.collections for path in band.get_paths()[:1]]
        found += [points.get_offsets() for points in axes.collections]
    return numbers_in(found)


def public_names() -> Golden:
    """Commands with their options."""
    group: Any = typer.main.get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield f"options of {name}", sorted(one for p in command.params for one in p.opts)
    yield "names of cprsim", sorted(cprsim.__all__)


def quick() -> Golden:
    yield from public_names()
    yield from of_commands(QUICK)
    for path in sorted(ROOT.glob("results/reproduction/*/comparisons.csv")):
        kept = pd.read_csv(path).select_dtypes("number")
        yield f"{path.parent.name}/comparisons.csv", numbers_in(kept.to_dict("list"))


def slow() -> Golden:
    yield from of_commands(SLOW)
    few = {"fleet.jobs": 6, "fleet.kinds": 3, "unknown": None}
    over = {"failures.mtbf": ["6 h", "20 h"]}
    answers: dict[str, Any] = {
        "run": cprsim.run("quickstart", replications=40),
        "systems": cprsim.run("moe", replications=20),
        "sweep": cprsim.sweep("quickstart", over, replications=20, workers=1),
        "map": cprsim.sweep(
            "quickstart", over | {"costs.save": ["1 min", "5 min"]}, replications=20, workers=1
        ),
        "selection": cprsim.select("criteo-kaggle", max_auc_loss=0.0005, replications=100),
        "fit": cprsim.fit(EXAMPLES / "failures.csv", time_unit="h", bootstrap=9),
        "fleet": cprsim.fleet("planning", {"spares": [0, 2]}, few, workers=1),
        "comparison": cprsim.systems("llm", only=["gemini", "full"], fixed=True, replications=40),
        "ledger": cprsim.ledger(EXAMPLES / "attempts.csv"),
        "curve": cprsim.load("criteo-kaggle").curve,
    }
    for name, answer in answers.items():
        frames = {frame: sorted(map(str, rows)) for frame, rows in answer.frames.items()}
        yield f"columns of {name}", frames
        for figure in answer.figures:
            yield f"axes of {name}, {figure}", on_axes(answer.plot(figure))
