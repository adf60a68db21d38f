"""Cases on scenarios: their values, their text, overrides, axes of sweeps, options of commands."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml
from fuzz_material import BOMBS, SPANS, Material
from fuzz_mutations import (
    ESCAPES,
    MARKUP,
    PATHS,
    QUANTITIES,
    SNIPPETS,
    TIMES,
    WORDS,
    at,
    mutate_bytes,
    mutate_tree,
    nasty,
    places,
)

OUT = ["--out", "out"]
# Whose selections take seconds of simulation: by events, or of hundreds of nodes that differ.
SLOW_TO_SELECT = ("varied", "shadowsync", "failure-analysis")
OPTIONS = {
    "run": ["--seed", "--replay", "--out", "--set", "--json", "--nonsense"],
    "sweep": [
        "--seed", "--mode", "--precision", "--out", "--json", "--over", "--address", "--backend"
    ],
    "select": [
        "--max-auc-loss", "--max-log-loss", "--target-pls", "--confidence", "--risk", "--curve",
        "--out", "--json",
    ],
    "validate": ["--set", "--json"],
    "schema": ["--json"],
    "presets": ["--json"],
    "fit": [
        "--nodes", "--system", "--from", "--to", "--node", "--cause", "--column", "--time-unit",
        "--age", "--seed", "--out", "--format",
    ],
}  # fmt: skip


@dataclass
class Case:
    """A command in a folder of its own."""

    number: int
    kind: str
    folder: Path
    arguments: list[str] = field(default_factory=list)  # of cprsim
    story: list[str] = field(default_factory=list)  # what was done to the inputs
    draws: bool = False  # figures too, which take longer than all the rest


def scenario_tree(case: Case, random: Random, material: Material) -> None:
    """A scenario with some of its values changed, dropped, swapped or taken from another."""
    name = random.choice(list(material.trees))
    tree = material.trees[name]
    for _ in range(random.choice([0, 1, 1, 1, 1, 1, 2, 2, 3, 5])):
        tree, said = mutate_tree(tree, random, list(material.trees.values()))
        case.story.append(said)
    case.story.insert(0, name)
    text = yaml.safe_dump(tree, allow_unicode=random.random() < 0.5, sort_keys=False)
    (case.folder / "scenario.yaml").write_text(text, "utf-8", "surrogatepass")
    case.arguments = on_scenario(case, random, tree)


def scenario_text(case: Case, random: Random, material: Material) -> None:
    """The text of a scenario's file, damaged."""
    name = random.choice(list(material.texts))
    content = material.texts[name]
    case.story.append(name)
    for _ in range(random.choice([1, 1, 2, 4])):
        content, said = mutate_bytes(content, random)
        case.story.append(said)
    if random.random() < 0.05:
        levels = random.choice([5, 9, 12])
        lol = "\n".join(
            f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9 if i else ['x'])}]" for i in range(levels)
        )
        content += b"\n" + lol.encode()
        case.story.append("aliases that explode")
    (case.folder / "scenario.yaml").write_bytes(content)
    case.arguments = on_scenario(case, random, None)


def overrides(case: Case, random: Random, material: Material) -> None:
    """A scenario as it is shipped, with overrides of all sorts."""
    name = random.choice(list(material.texts))
    case.story.append(name)
    (case.folder / "scenario.yaml").write_bytes(material.texts[name])
    case.arguments = on_scenario(case, random, material.trees[name])
    for _ in range(random.choice([1, 1, 2, 3])):
        tree = material.trees[name]
        path = random.choice(places(tree))
        key, value = ".".join(map(str, path)), nasty(random, at(tree, path))
        if random.random() < 0.4:
            key = random.choice(material.keys) if random.random() < 0.6 else random.choice(BOMBS)
        text = (
            value if isinstance(value, str) else json.dumps(value) if value is not None else "null"
        )
        if random.random() < 0.1:
            text = random.choice(SNIPPETS).decode("utf-8", "replace").replace("\x00", "")
        case.arguments += ["--set", clean(f"{key}={text}")]


def axes(case: Case, random: Random, material: Material) -> None:
    """A sweep over keys and values of all sorts, from the command line or the file."""
    name = random.choice(
        ["small", "small", "quickstart", "production-gamma", "varied", "gpu-cluster"]
    )
    tree = json.loads(json.dumps(material.trees[name]))
    over = {
        random.choice(material.keys if random.random() < 0.7 else BOMBS): random.choice(SPANS)
        for _ in range(random.choice([1, 1, 2]))
    }
    good = {
        "costs.save": "1 min,2 min",
        "failures.mtbf": "5 h:20 h:log3",
        "recovery.interval": "1 h,2 h",
    }
    if random.random() < 0.4:
        key = random.choice(list(good))
        over = {key: random.choice([good[key], random.choice(SPANS)])}
    arguments = ["sweep" if random.random() < 0.8 else "validate", "scenario.yaml"]
    if random.random() < 0.5:
        tree["sweep"] = {"over": over, "mode": random.choice(["grid", "one-at-a-time", "x"])}
    elif arguments[0] == "sweep":
        for key, values in over.items():
            arguments += ["--over", clean(f"{key}={values}")]
    (case.folder / "scenario.yaml").write_text(yaml.safe_dump(tree, sort_keys=False), "utf-8")
    if arguments[0] == "sweep":
        arguments += ["--workers", "1", "--replications", random.choice(["1", "2", "3"]), *OUT]
        arguments += ["--json"] if random.random() < 0.5 else []
        case.draws = random.random() < 0.15
    case.arguments = arguments


def options(case: Case, random: Random, material: Material) -> None:
    """Options of commands with values of all sorts."""
    name = random.choice(["small", "varied", "shadowsync"])
    numbers = [
        "-1",
        "0",
        "1",
        "3",
        "100",
        "1e3",
        "²",
        "9" * 30,
        "x",
        "",
        "1.5",
        "nan",
        "inf",
        "0.95",
        "1",
    ]
    command = random.choice(
        ["run", "run", "sweep", "select", "select", "validate", "schema", "presets", "fit"]
    )
    if command == "select" and name in SLOW_TO_SELECT:
        name = "small"
    case.story.append(name)
    (case.folder / "scenario.yaml").write_bytes(material.texts[name])
    some = OPTIONS[command]
    if command == "fit":
        (case.folder / "log.csv").write_bytes(
            material.logs[random.choice(["stamps.csv", "numbers.csv"])]
        )
    arguments = [command]
    if command not in ("schema", "presets"):
        arguments.append(
            "log.csv"
            if command == "fit"
            else random.choice(["scenario.yaml"] * 9 + ["no.yaml", "."])
        )
    if command in ("run", "sweep"):
        arguments += ["--replications", random.choice(["1", "2", "3", *numbers[:3]])]
    if command == "select":
        arguments += ["--replications", "100"]
    if command == "sweep":
        arguments += ["--workers", "1", "--over", "costs.save=1 min,2 min"]
    if command == "fit":
        arguments += ["--bootstrap", "0"]
    for option in random.sample(some, min(len(some), random.choice([1, 2, 3]))):
        arguments.append(option)
        if option == "--out":
            arguments.append(
                random.choice(
                    ["out", "a/b/c", "scenario.yaml", "/proc/x", "/dev/null", "", "\x7f", "a" * 300]
                )
            )
        elif option == "--replay":
            arguments.append(random.choice(["0", "1", "-1", "99", "12345", "9" * 25, "x"]))
        elif option != "--json":
            words = [*numbers, *TIMES, *QUANTITIES, *WORDS, *MARKUP, *ESCAPES, *PATHS]
            arguments.append(clean(random.choice([random.choice(numbers), random.choice(words)])))
    if "--out" not in arguments and command in ("run", "sweep", "select"):
        arguments += OUT
    case.arguments = arguments


def on_scenario(case: Case, random: Random, tree: Any) -> list[str]:
    """A command on `scenario.yaml`, small enough to be quick."""
    command = random.choice(["validate"] * 4 + ["run"] * 5 + ["sweep", "select"])
    if command == "select" and case.story[0] in SLOW_TO_SELECT:
        command = "run"
    case.draws = random.random() < 0.08
    few = ["--replications", random.choice(["1", "2", "3"])]
    json_too = ["--json"] if random.random() < 0.4 else []
    if command == "validate":
        return ["validate", "scenario.yaml"]
    if command == "run":
        replay = ["--replay", str(random.randrange(3))] if random.random() < 0.1 else []
        return ["run", "scenario.yaml", *few, *replay, *json_too, *OUT]
    if command == "sweep":
        has_axes = isinstance(tree, dict) and "sweep" in tree
        over = [] if has_axes else ["--over", "costs.save=1 min,2 min"]
        return ["sweep", "scenario.yaml", *over, "--workers", "1", *few, *json_too, *OUT]
    limit = random.choice(
        [["--target-pls", "0.1"], ["--max-auc-loss", "0.001"], ["--max-log-loss", "0.001"]]
    )
    curve = ["--curve", "criteo-kaggle-linear"] if limit[0] != "--target-pls" else []
    small = ["--replications", "100", "--set", "job.useful=30 min"]  # dozens of runs in the engine
    return ["select", "scenario.yaml", *limit, *curve, *small, *json_too, *OUT]


def clean(text: str) -> str:
    """What the operating system takes as an argument."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode("utf-8")
