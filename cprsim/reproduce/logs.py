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


def missing() -> str:
    """Why they can't be read here; empty where they can."""
    folder = os.environ.get(DATA)
    if folder and all((Path(folder) / log).is_file() for log in LOGS.values()):
        return ""
    state = (
        f"{DATA}={folder} lacks one of" if folder else f"{DATA} is not set: it names a folder of"
    )
    return (
        f"{state} two public logs, {LOGS['gpu-cluster']} (from the InfiniteHBD repository on "
        f"GitHub) and {LOGS['lanl']} (from the Computer Failure Data Repository, CFDR); "
        "see the first lines of scenarios/gpu-cluster.yaml and scenarios/lanl.yaml"
    )


def logs() -> dict[str, Path]:
    """The logs, by the name of their scenario; none where they are not there."""
    return {} if missing() else {name: Path(os.environ[DATA]) / log for name, log in LOGS.items()}
