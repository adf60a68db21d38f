"""Say what is wrong with a wheel and a source distribution: ``python contents.py DIST``.

The wheel holds the package as the repository has it and no test; the source distribution holds what
the wheel is made of.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml"}
MOST_BYTES = 3_000_000  # of either file


def problems(dist: Path) -> Iterator[str]:
    """What is wrong, one sentence each."""
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    for file in (wheel, source):
        if file.stat().st_size > MOST_BYTES:
            yield f"{file.name} has {file.stat().st_size} bytes, more than {MOST_BYTES}"
    package = _tracked("cprsim")
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    yield from _differences(wheel.name, names, package, exactly=True)
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    yield from _differences(source.name, names, package | SOURCES, exactly=False)
    yield from (f"{source.name}: holds {name}" for name in names if name.startswith("tests/"))


def _tracked(folder: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return {name for name in listed.splitlines() if not name.endswith(".gitkeep")}


def _differences(name: str, found: set[str], wanted: set[str], *, exactly: bool) -> Iterator[str]:
    yield from (f"{name}: lacks {missing}" for missing in sorted(wanted - found))
    if exactly:
        yield from (f"{name}: holds {more}" for more in sorted(found - wanted))


if __name__ == "__main__":
    wrong = list(problems(Path(sys.argv[1])))
    for one in wrong:
        print(one, file=sys.stderr)
    sys.exit(bool(wrong))
