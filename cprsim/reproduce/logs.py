"""The public failure logs that some results read, where the user has them."""

from __future__ import annotations

import os
from pathlib import Path

DATA = "CPRSIM_DATA"
LOGS = {
    "gpu-cluster": "failures/infinitehbd/fault_trace.json",
    "lanl": "failures/lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz",
}
"""The scenarios that name the logs, and where the logs stand below the folder with the data."""

TITLES = {"gpu-cluster": "InfiniteHBD", "lanl": "LANL"}


def logs() -> dict[str, Path]:
    """The logs, by the name of their scenario; none where they are not there."""
    folder = Path(os.environ.get(DATA, ""))
    found = {name: folder / log for name, log in LOGS.items()}
    return found if all(path.is_file() for path in found.values()) else {}
