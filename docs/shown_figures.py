"""Figures of results that documents show: copied from the results, or with ``--check`` compared."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

FIGURES = {  # in docs/figures: the command, and its figure
    "quickstart-overhead.png": ("run scenarios/quickstart.yaml", "overhead.png"),
    "quickstart-p95.png": ("run scenarios/quickstart.yaml --replay p95", "timeline.png"),
    "criteo-kaggle-pareto.png": (
        "select scenarios/criteo-kaggle.yaml --max-auc-loss 0.0005",
        "pareto.png",
    ),
}

for name, (command, figure) in FIGURES.items():
    printed = subprocess.run(
        ["cprsim", *shlex.split(command), "--json"], capture_output=True, check=True
    )
    made = (Path(json.loads(printed.stdout)["results"]) / figure).read_bytes()
    shown = Path("docs", "figures", name)
    if sys.argv[1:] != ["--check"]:
        shown.write_bytes(made)
    elif shown.read_bytes() != made:
        sys.exit(f"{shown}: run: make docs")
