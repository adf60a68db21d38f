"""Write the goldens: ``python -m tests.golden.make [KIND...]``; ``--show KIND NAME`` prints one.

A kind is a module here whose `quick` (tested by `make test`) and `slow` (by `make test-long`) yield
names and values; it has one of them or both. `KIND.json` and `KIND-slow.json` have a line per name,
so that a diff says what moved. A long value is kept in short, but for names that begin with the
module's `WHOLE`: to see how it moved, show it before and after.
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.golden.plain import NO_DATA, RELATIVE, differences, digest, plain

HERE = Path(__file__).parent
PACES = ("quick", "slow")
KINDS = [
    (path.stem, pace)
    for path in sorted(HERE.glob("[a-z]*.py"))
    for pace in PACES
    if f"\ndef {pace}()" in path.read_text("utf-8")
]
LONGEST = (300, 6000)  # characters; of what is kept whole


def found(kind: str, pace: str) -> dict[str, Any]:
    """What one kind is now, whole."""
    values: dict[str, Any] = {}
    for name, value in getattr(import_module(f"tests.golden.{kind}"), pace)():
        assert name not in values, f"{kind} has {name} twice"
        values[name] = plain(value)
    return values


def short(kind: str, name: str, value: Any) -> Any:
    """A value as it is stored."""
    module = import_module(f"tests.golden.{kind}")
    longest = LONGEST[name.startswith(getattr(module, "WHOLE", "\n"))]
    return value if len(json.dumps(value)) <= longest else digest(value)


def moved(kind: str, before: Any, now: Any) -> list[str]:
    """What differs, name by name."""
    close = getattr(import_module(f"tests.golden.{kind}"), "CLOSE", {})
    wrong = []
    for name in sorted({*before, *now}):
        relative = next((one for part, one in close.items() if part in name), RELATIVE)
        wrong += differences(before.get(name), now.get(name), name, relative)
    return wrong


def file(kind: str, pace: str) -> Path:
    """Where it is stored."""
    return HERE / f"{kind}{'-slow' * (pace == 'slow')}.json"


def main(arguments: list[str]) -> None:
    """Write the kinds that are named, or all."""
    if NO_DATA:
        raise SystemExit("CPRSIM_DATA does not name the folder with the real failure logs")
    if arguments[:1] == ["--show"]:
        _, wanted, name = arguments
        values = [found(kind, pace) for kind, pace in KINDS if kind == wanted]
        print(json.dumps([one[name] for one in values if name in one], indent=1))
        return
    for kind, pace in KINDS:
        if arguments and kind not in arguments:
            continue
        began, values = time.process_time(), found(kind, pace)
        lines = [
            f"{json.dumps(name)}: {json.dumps(short(kind, name, values[name]), sort_keys=True)}"
            for name in sorted(values)
        ]
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        file(kind, pace).write_text(text, "utf-8")
        took_s = time.process_time() - began
        print(f"{kind} {pace}: {len(values)} names, {len(text) / 1000:.0f} kB, {took_s:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
