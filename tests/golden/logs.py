"""What logs of failures become, column by column, and what is fitted to them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from tests.failures.tidy import read
from tests.golden.plain import NO_DATA, Golden, digest, fit_numbers, table
from tests.making import SCENARIOS, call

WHOLE = ""
CLOSE = {"fit ": 1e-6}
RUN = Path(__file__).parents[1] / "failures" / "samples_run"
EXAMPLE = SCENARIOS.parent / "docs" / "examples" / "failures.csv"
LANL, HBD = "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", "infinitehbd/fault_trace.json"
SYSTEMS = (2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 23, 24)
N_BOOTSTRAP = 9
FEW = f"--bootstrap {N_BOOTSTRAP}"
FITS = {
    "table": f"{EXAMPLE} --time-unit h {FEW}",
    "table, nodes": f"{EXAMPLE} --time-unit h --nodes 40 {FEW}",
    "table, window": f"{EXAMPLE} --time-unit h --period 100..600 {FEW}",
    "table, coalesced": f"{EXAMPLE} --time-unit h --coalesce 24h {FEW}",
    "table, new": f"{EXAMPLE} --time-unit h --age new --job-nodes 8 {FEW}",
}
FITS_OF_DATA = {
    "node": f"{LANL} --system 2 --node 2/22 {FEW}",
    "cause": f"{LANL} --system 18 --cause hardware --period 2004-01-01..2005-01-01 {FEW}",
    "dates": f"{LANL} --system 19 --nodes dates {FEW}",
    "together": f"{LANL} --system 2 --period 2000-01-01..2001-01-01 --together 10min {FEW}",
    "system": f"{LANL} --system 8 {FEW}",
    "InfiniteHBD": f"{HBD} --nodes 400 {FEW}",
}


def outages(path: Path, form: str | None = None, **asked: Any) -> dict[str, Any]:
    """The columns of a log: node, start, end, whether it ended, cause."""
    found = read(path, format=form, **asked)
    names = ("node", "start_h", "end_h", "ended", "guessed")
    columns = table(pd.DataFrame({name: getattr(found, name) for name in names}))
    counts = {"n": found.n_outages, "nodes": found.n_nodes, "window_h": found.window_h}
    return {**columns, **counts, "cause": digest([one.replace(" ", "_") for one in found.cause])[0]}


def fitted(command: str) -> dict[str, Any]:
    """The numbers of `fit --json`."""
    called = call("fit", *command.split(), "--json")
    assert called.exit_code == 0, called.output
    return fit_numbers(json.loads(called.stdout), N_BOOTSTRAP)


def real(name: str) -> Iterator[Path]:
    """A file of real logs, where they are."""
    if not NO_DATA:
        yield Path(os.environ["CPRSIM_DATA"]) / "failures" / name


def quick() -> Golden:
    yield "example", outages(EXAMPLE, time_unit="h")
    for path in sorted(RUN.iterdir()):
        yield path.name, outages(path)
    for name, command in FITS.items():
        yield f"fit {name}", fitted(command)


def slow() -> Golden:
    for path in real(HBD):
        yield "data InfiniteHBD", outages(path, n_nodes=400)
    for path in real(LANL):
        for system in SYSTEMS:
            yield f"data LANL {system}", outages(path, "lanl", system=system)
        for name, command in FITS_OF_DATA.items():
            yield f"data fit {name}", fitted(f"{path.parents[1]}/{command}")
