"""The cases of the fuzzer: a kind of input for each number, and those on logs, curves and results.

A case is made of the material by a `Random` of seed and number alone, so that its number names it.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import yaml
from fuzz_material import OWN_CURVE, REPLAYED, Material
from fuzz_mutations import (
    ESCAPES,
    MARKUP,
    TIMES,
    WORDS,
    as_csv,
    mutate_bytes,
    mutate_table,
    mutate_tree,
    table,
)
from fuzz_scenarios import (
    OUT,
    Case,
    axes,
    clean,
    options,
    overrides,
    scenario_text,
    scenario_tree,
)

DEEP = 1_000_000  # added to the seed of a case that could not be made
OWN_DIGEST = "manifest_sha256"  # of a manifest, over its other entries


def make_case(number: int, seed: int, folder: Path, material: Material) -> Case:
    """Case `number`: its files below `folder`, its arguments, what was done."""
    random = Random(f"{seed}/{number}")
    kind = KINDS[number % len(KINDS)]
    case = Case(number, kind.__name__, folder)
    folder.mkdir(parents=True)
    try:
        kind(case, random, material)
    except RecursionError:  # nested deeper than can be written
        shutil.rmtree(folder)
        return make_case(number, seed + DEEP, folder, material)
    return case


# --------------------------------------------------------------------------------------- logs


def failure_log(case: Case, random: Random, material: Material) -> None:
    """A log of failures, damaged, fitted or replayed."""
    name = random.choice(["stamps.csv", "numbers.csv", "faults.json", "lanl.csv"])
    content = damaged_log(case, random, name, material.logs[name])
    file = packed(case, random, "log" + Path(name).suffix, content)
    if random.random() < 0.3:
        replayed_log(case, random, name, file)
        return
    arguments = ["fit", file, "--bootstrap", random.choice(["0", "0", "9"])]
    if name == "lanl.csv":
        arguments += ["--system", random.choice(["2"] * 8 + ["3", "0"])]
    if name == "numbers.csv":
        arguments += ["--time-unit", random.choice(["h"] * 12 + ["ms", "d", "x"])]
    few: tuple[tuple[float, list[str]], ...] = (
        (
            0.15,
            [
                "--nodes",
                random.choice(
                    ["8", "20", "400", "3", "0", "-1", "100000", "1000000000000", "9" * 30]
                ),
            ],
        ),
        (0.06, ["--from", random.choice(["2024-01-05", "10", *TIMES])]),
        (0.06, ["--to", random.choice(["2024-01-20", "300", *TIMES])]),
        (0.06, ["--node", random.choice(["n1", "n9", "", "2/1", "\x1b[31m"])]),
        (0.1, ["--cause", random.choice(["disk", "gpu", "none", "", "Hardware"])]),
        (
            0.06,
            [
                "--column",
                random.choice(
                    ["start=begin", "start=end", "node=cause", "x=y", "end=", "=", "start"]
                ),
            ],
        ),
        (0.2, ["--age", random.choice(["new", "unknown"])]),
        (0.2, ["--circle"]),
        (0.4, ["--json"]),
        (0.04, ["--out", "out"]),
    )
    for share, words in few:
        arguments += [clean(word) for word in words] if random.random() < share else []
    case.arguments = arguments


def replayed_log(case: Case, random: Random, name: str, file: str) -> None:
    """A scenario that replays the log."""
    form = {
        "stamps.csv": "tidy",
        "numbers.csv": "tidy",
        "faults.json": "infinitehbd",
        "lanl.csv": "lanl",
    }[name]
    failures: dict[str, Any] = {"kind": "trace", "file": file, "format": form}
    if name == "lanl.csv":
        failures["system"] = 2
    if name == "numbers.csv":
        failures["time_unit"] = "h"
    if random.random() < 0.3:
        failures["nodes"] = random.choice([8, 20, 5, 4, 100_000])
    tree = yaml.safe_load(REPLAYED) | {"failures": failures}
    if random.random() < 0.3:
        tree["cluster"]["spares"] = random.choice([0, 1, 3])
    (case.folder / "scenario.yaml").write_text(yaml.safe_dump(tree, sort_keys=False), "utf-8")
    command = random.choice(["run", "run", "validate"])
    case.arguments = [
        command,
        "scenario.yaml",
        *(["--replications", "3", *OUT] if command == "run" else []),
    ]


def cost_log(case: Case, random: Random, material: Material) -> None:
    """A log of saves and loads, damaged."""
    content = damaged_log(case, random, "costs.csv", material.logs["costs.csv"])
    file = packed(case, random, "log.csv", content)
    unit = random.choice(["s"] * 15 + ["ms", "d", "x"])
    case.arguments = [
        "fit-costs",
        file,
        "--time-unit",
        unit,
        "--bootstrap",
        random.choice(["0", "9"]),
    ]
    case.arguments += ["--json"] if random.random() < 0.5 else []
    if random.random() < 0.1:
        case.arguments += [
            "--column",
            random.choice(["start=end", "kind=bytes", "x=y", "bytes=size"]),
        ]


def special_log(case: Case, random: Random, material: Material) -> None:
    """What is no file of rows: devices, pipes, folders, links to themselves, bombs."""
    what = random.choice(
        [
            "fifo",
            "zero",
            "null",
            "folder",
            "loop",
            "bomb",
            "empty",
            "missing",
            "endless line",
            "wide",
        ]
    )
    case.story.append(what)
    file = random.choice(["log.csv", "log.json", "log.csv.xz", "log.csv.gz", "log.csv.zst", "log"])
    path = case.folder / file
    if what == "fifo":
        os.mkfifo(path)
    elif what in ("zero", "null"):
        path.symlink_to(f"/dev/{what}")
    elif what == "folder":
        path.mkdir()
    elif what == "loop":
        path.symlink_to(path.name)
    elif what == "bomb":
        file = "log.csv.xz"
        (case.folder / file).write_bytes(material.bomb)
    elif what == "empty":
        path.write_bytes(b"")
    elif what == "endless line":
        path.write_bytes(b"node,start,end\n" + b"x" * 3_000_000)
    elif what == "wide":
        path.write_bytes(
            b",".join(b"c%d" % i for i in range(30_000)) + b"\n" + b"1," * 29_999 + b"1\n"
        )
    scenario = yaml.safe_load(REPLAYED)
    scenario["failures"] |= {"file": file, "time_unit": "h"}
    (case.folder / "scenario.yaml").write_text(yaml.safe_dump(scenario, sort_keys=False), "utf-8")
    case.arguments = random.choice(
        [
            ["fit", file, "--time-unit", "h", "--bootstrap", "0"],
            ["fit", file, "--system", "2", "--bootstrap", "0"],
            ["fit-costs", file, "--time-unit", "s", "--bootstrap", "0"],
            ["run", "scenario.yaml", "--replications", "2", *OUT],
            [
                "select",
                "scenario.yaml",
                "--max-auc-loss",
                "0.1",
                "--curve",
                file,
                "--replications",
                "100",
                *OUT,
            ],
            ["validate", file],
            ["report", file, "--out", "page.html"],
            ["compare", file, file],
        ]
    )


def damaged_log(case: Case, random: Random, name: str, content: bytes) -> bytes:
    """The log after some mutations of its rows, its tree or its bytes."""
    case.story.append(name)
    n = random.choice([0, 1, 1, 1, 1, 1, 2, 2, 3])
    if random.random() < 0.15:
        for _ in range(n):
            content, said = mutate_bytes(content, random)
            case.story.append(said)
        return content
    if name.endswith(".json"):
        tree = json.loads(content)
        for _ in range(n):
            tree, said = mutate_tree(tree, random, [tree])
            case.story.append(said)
        return json.dumps(tree).encode("utf-8", "surrogatepass")
    rows = table(content)
    for _ in range(n):
        rows, said = mutate_table(rows, random)
        case.story.append(said)
    separator = random.choice([","] * 40 + [";", "\t", "|"])
    return as_csv(rows, separator)


def packed(case: Case, random: Random, file: str, content: bytes) -> str:
    """Write the file, at times compressed, or as if it were; the name that it has."""
    if random.random() < 0.85:
        (case.folder / file).write_bytes(content)
        return file
    how = random.choice(["xz", "gz", "bz2", "zip", "zst"])
    pack: dict[str, Callable[[bytes], bytes]] = {
        "xz": lzma.compress, "gz": gzip.compress, "bz2": bz2.compress, "zip": zipped, "zst": bytes
    }  # fmt: skip
    content = pack[how](content)
    if random.random() < 0.3:
        content, said = mutate_bytes(content, random)
        case.story.append(f"packed: {said}")
    case.story.append(f".{how}")
    (case.folder / f"{file}.{how}").write_bytes(content)
    return f"{file}.{how}"


def zipped(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log", content)
    return out.getvalue()


# ------------------------------------------------------------------------- curves and results


def curve(case: Case, random: Random, material: Material) -> None:
    """A staleness curve, damaged; often with a digest that fits the damage."""
    if random.random() < 0.35:
        own_curve(case, random)
        file = "curve.csv"
    else:
        file = "curve.json"
        name = random.choice(list(material.curves))
        content = material.curves[name]
        case.story.append(name)
        if random.random() < 0.2:
            content, said = mutate_bytes(content, random)
            case.story.append(said)
        else:
            content = damaged_curve(case, random, content)
        (case.folder / file).write_bytes(content)
    (case.folder / "scenario.yaml").write_bytes(
        material.texts[random.choice(["small", "criteo-kaggle"])]
    )
    case.arguments = random.choice(
        [
            [
                "select",
                "scenario.yaml",
                "--max-auc-loss",
                "0.001",
                "--curve",
                file,
                "--replications",
                "100",
                *OUT,
            ],
            [
                "select",
                "scenario.yaml",
                "--max-log-loss",
                "0.01",
                "--curve",
                file,
                "--replications",
                "100",
                *OUT,
            ],
            [
                "run",
                "scenario.yaml",
                "--set",
                f"accuracy.curve={file}",
                "--replications",
                "3",
                *OUT,
            ],
            ["validate", "scenario.yaml", "--set", f"accuracy.curve={file}"],
            ["report", file, "--out", "page.html"],
        ]
    )


def own_curve(case: Case, random: Random) -> None:
    rows = table(OWN_CURVE.encode())
    for _ in range(random.choice([1, 2, 3])):
        rows, said = mutate_table(rows, random)
        case.story.append(said)
    (case.folder / "curve.csv").write_bytes(as_csv(rows))


def damaged_curve(case: Case, random: Random, content: bytes) -> bytes:
    from cprsim.codec import canonical_digest

    tree = json.loads(content)
    for _ in range(random.choice([1, 1, 2])):
        tree, said = mutate_tree(tree, random)
        case.story.append(said)
    if isinstance(tree, dict) and random.random() < 0.8:
        rest = {key: value for key, value in tree.items() if key != "digest"}
        try:
            tree["digest"] = canonical_digest(rest)
        except (ValueError, TypeError):  # no JSON has NaN; no digest for mixed keys
            case.story.append("no digest fits")
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def results_folder(case: Case, random: Random, material: Material) -> None:
    """A results folder with a file damaged, at times with a manifest that fits the damage."""
    name = random.choice(list(material.results))
    folder = case.folder / "result"
    shutil.copytree(material.results[name], folder)
    if random.random() < 0.85:  # figures are not looked at
        for figure in (path for end in ("png", "svg", "pdf") for path in folder.glob(f"*.{end}")):
            if random.random() < 0.5:
                figure.write_bytes(b"")
    files = sorted(path for path in folder.iterdir() if path.is_file())
    told = [path for path in files if path.suffix not in (".png", ".svg", ".pdf")]
    target = folder / "manifest.json" if random.random() < 0.35 else random.choice(told)
    case.story += [name, target.name]
    how = random.choice(["tree"] * 5 + ["bytes", "bytes", "gone", "folder", "link", "empty"])
    if how == "gone":
        target.unlink()
    elif how == "folder":
        target.unlink()
        target.mkdir()
    elif how == "link":
        target.unlink()
        target.symlink_to(random.choice(["/dev/zero", "/etc/hostname", target.name, "/nowhere"]))
    elif how == "empty":
        target.write_bytes(b"")
    else:
        damage_file(case, random, target, how)
    case.story.append(how)
    if random.random() < 0.85:
        seal(case, folder)
    other = linked(case, material, random.choice(list(material.results)))
    case.arguments = random.choice(
        [
            ["compare", "result", other],
            ["compare", other, "result", "--json"],
            ["plot", "result", "--out", "figures", "--format", random.choice(["png", "svg", "x"])],
            ["report", "result", "--out", "page.html"],
            ["report", "result", "--out", "page.html"],
            ["report", "result", other, "--out", "page.html"],
        ]
    )
    case.draws = case.arguments[0] == "plot" and random.random() < 0.5


def damage_file(case: Case, random: Random, target: Path, how: str) -> None:
    content = target.read_bytes()
    said = ""
    if how == "tree" and target.suffix == ".json":
        tree, said = mutate_tree(json.loads(content), random)
        content = json.dumps(tree).encode("utf-8", "surrogatepass")
    elif how == "tree" and target.suffix in (".yaml", ".yml"):
        tree, said = mutate_tree(yaml.safe_load(content), random)
        content = yaml.safe_dump(tree, sort_keys=False).encode("utf-8", "surrogatepass")
    elif how == "tree" and target.suffix == ".csv":
        rows, said = mutate_table(table(content), random)
        content = as_csv(rows)
    else:
        content, said = mutate_bytes(content, random)
    case.story.append(said)
    target.write_bytes(content)


def seal(case: Case, folder: Path) -> None:
    """Make the manifest say what the files now are, so that what reads them meets the damage."""
    path = folder / "manifest.json"
    if not path.is_file():  # a folder, or a link to a device that never ends
        return
    try:
        manifest = json.loads(path.read_text("utf-8"))
        for name, entry in manifest["files"].items():
            if (folder / name).is_file() and (folder / name).resolve().parent == folder.resolve():
                content = (folder / name).read_bytes()
                entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        if OWN_DIGEST in manifest:
            rest = {key: value for key, value in manifest.items() if key != OWN_DIGEST}
            text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
            manifest[OWN_DIGEST] = hashlib.sha256(text.encode()).hexdigest()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    path.write_text(
        json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", "utf-8", "surrogatepass"
    )
    case.story.append("sealed again")


def sound_results(case: Case, random: Random, material: Material) -> None:
    """Sound results, each with each, and what is no result at all."""
    names = [linked(case, material, name) for name in material.results]
    names += [".", "nothing", f"{names[0]}/manifest.json"]
    a, b = random.choice(names), random.choice(names)
    title = clean(random.choice([*MARKUP, *ESCAPES, *WORDS]))
    case.arguments = random.choice(
        [
            ["compare", a, b], ["compare", a, b, "--json"], ["report", a, "--out", "page.html"],
            ["report", a, b, "--out", "page.html", "--title", title],
            ["plot", a, "--out", "figures", "--format", "svg"],
        ]
    )  # fmt: skip
    case.draws = case.arguments[0] == "plot"


def linked(case: Case, material: Material, name: str) -> str:
    """A sound result, by a short name in the case's folder."""
    link = case.folder / f"sound-{name}"
    link.symlink_to(material.results[name])
    return link.name


# One after the other: the first few hundred cases meet every kind.
KINDS: tuple[Callable[[Case, Random, Material], None], ...] = (
    scenario_tree, failure_log, overrides, scenario_tree, results_folder, axes, scenario_text,
    failure_log, scenario_tree, curve, options, cost_log, scenario_tree, overrides, failure_log,
    results_folder, scenario_tree, special_log, scenario_text, sound_results,
)  # fmt: skip
