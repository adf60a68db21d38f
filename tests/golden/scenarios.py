"""What scenarios become with their defaults, and where wrong ones are wrong: file, line, key."""

import ast
import random
import re
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

import cprsim
from tests.golden.plain import NO_DATA, Golden, digest, shipped
from tests.making import SCENARIOS

ROOT = SCENARIOS.parent
N_WRONG = 30  # of each shipped scenario
OTHERS: list[Any] = [-1, "5 furlongs", "3 GB", "soon", [], {"a": 1}, None, 7.5]


def dumped(scenario: Any) -> Any:
    """The scenario with its defaults, as data."""
    return yaml.safe_load(cprsim.load(scenario).text)


def refusal(path: Path) -> list[list[Any]]:
    """Of each thing wrong with a file: its name, the line and the key; nothing: it is read."""
    try:
        cprsim.load(path)
    except cprsim.CprsimError as error:
        problems = getattr(error, "problems", ())
        return [[Path(one.place.file).name, one.place.line, one.key] for one in problems]
    return []


def texts() -> Iterator[tuple[str, str]]:
    """Every text with a scenario's sections in documents, examples and tests."""
    for path in sorted(ROOT.glob("docs/**/*.md")):
        for block in re.findall(r"```yaml\n(.*?)```", path.read_text("utf-8"), re.S):
            yield path.stem, block
    for path in sorted([*ROOT.glob("docs/**/*.yaml"), *ROOT.glob("examples/*.yaml")]):
        yield path.stem, path.read_text("utf-8")
    for path in sorted(ROOT.glob("tests/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.stem, node.value


def wrong(text: str, dice: random.Random) -> str:
    """A scenario with a key less, an unknown one, or another value."""
    data = yaml.safe_load(text)
    places = [(data, key) for key in data]
    for place, key in places:
        inner = place[key]
        if isinstance(inner, dict):
            places += [(inner, one) for one in inner]
        elif isinstance(inner, list):
            places += [(inner, n) for n in range(len(inner))]
    place, key = dice.choice(places[1:])
    match dice.randrange(3):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[f"{key}x"] = place.pop(key)
        case _:
            place[key] = dice.choice(OTHERS)
    return yaml.safe_dump(data, sort_keys=False)


def quick() -> Golden:
    for path, where in shipped().items():
        yield f"{where}{path.stem}", dumped(path.stem)
    known = set()
    for name, text in texts():
        if "\n" in text and re.search(r"^(job|recovery):", text, re.M) and text not in known:
            known.add(text)
            found = None
            with suppress(cprsim.CprsimError), chdir(ROOT):
                found = dumped(text)
            where = "data " * ("CPRSIM_DATA" in text)
            if not (where and NO_DATA):
                yield f"{where}text {name} {digest([text])[0]}", found
    with TemporaryDirectory() as folder:
        for path, where in shipped().items():
            dice, text = random.Random(path.stem), path.read_text("utf-8")
            for number in range(N_WRONG):
                bad = Path(folder, "bad.yaml")
                bad.write_text(wrong(text, dice), "utf-8")
                yield f"{where}wrong {path.stem} {number}", refusal(bad)
