"""Size on disk of cprsim and of all that it needs to run, by package, as a table in Markdown.

Sums the files that each installed distribution names as its own; compiled Python is left out.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MB = 1e6
SHOWN_MB = 10  # smaller ones are summed
NEEDED_BY = {  # why it is there
    "llvmlite": "numba",
    "numba": "the compiled engines and the training kernel",
    "pyarrow": "results in Parquet, logs in JSON lines",
    "scipy": "fits and distributions",
    "numpy": "everything",
    "pandas": "tables: results, sweeps, logs",
    "matplotlib": "figures",
    "fonttools": "matplotlib",
    "pillow": "matplotlib",
}


def needed(name: str, found: dict[str, Distribution]) -> None:
    """Add a distribution and all that it needs without extras."""
    name = canonicalize_name(name)
    if name in found:
        return
    found[name] = distribution(name)
    for text in found[name].requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed(requirement.name, found)


def size_mb(one: Distribution) -> float:
    """Megabytes of the files of a distribution that are there."""
    files = (Path(str(file.locate())) for file in one.files or () if "__pycache__" not in str(file))
    return sum(path.stat().st_size for path in files if path.is_file()) / MB


def own_size_mb() -> float:
    """Megabytes of cprsim itself: of the package's folder, however it was installed."""
    folder = Path(__file__).parent.parent / "cprsim"
    files = (p for p in folder.rglob("*") if p.is_file() and not re.search("__pycache__", str(p)))
    return sum(path.stat().st_size for path in files) / MB


def main() -> None:
    """Print the table, the largest first."""
    found: dict[str, Distribution] = {}
    needed("cprsim", found)
    sizes = {name: size_mb(one) for name, one in found.items()} | {"cprsim": own_size_mb()}
    shown = {name: mb for name, mb in sizes.items() if mb >= SHOWN_MB or name == "cprsim"}
    print("| package | MB | needed for |\n|---|---|---|")
    for name, mb in sorted(shown.items(), key=lambda item: -item[1]):
        print(f"| {name} | {mb:.0f} | {NEEDED_BY.get(name, '')} |")
    rest = sum(sizes.values()) - sum(shown.values())
    print(f"| {len(sizes) - len(shown)} others | {rest:.0f} | |")
    print(f"| all | {sum(sizes.values()):.0f} | |")


if __name__ == "__main__":
    main()
