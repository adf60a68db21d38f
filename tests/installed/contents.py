"""Say what is wrong with a wheel and a source distribution: ``python contents.py DIST``.

The wheel holds the package as the repository has it and no test; the source distribution holds what
the wheel is made of.
"""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml"}
MOST_BYTES = 3_000_000  # of either file


def problems(dist: Path) -> list[str]:
    """What is wrong, one sentence each."""
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    listed = subprocess.run(["git", "ls-files", "cprsim"], cwd=ROOT, capture_output=True, text=True)
    package = {name for name in listed.stdout.splitlines() if not name.endswith(".gitkeep")}
    with zipfile.ZipFile(wheel) as packed:
        in_wheel = {name for name in packed.namelist() if ".dist-info/" not in name}
    with tarfile.open(source) as archive:
        in_source = {member.name.partition("/")[2] for member in archive if member.isfile()}
    return [
        *(f"{file.name} is larger than {MOST_BYTES} bytes"
          for file in (wheel, source) if file.stat().st_size > MOST_BYTES),
        *(f"{wheel.name}: lacks {name}" for name in sorted(package - in_wheel)),
        *(f"{wheel.name}: holds {name}" for name in sorted(in_wheel - package)),
        *(f"{source.name}: lacks {name}" for name in sorted((package | SOURCES) - in_source)),
        *(f"{source.name}: holds {name}" for name in in_source if name.startswith("tests/")),
    ]  # fmt: skip


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(bool(wrong))
