"""Failure rates and distributions that others have published or that were fitted, with sources.

The mark says how sure a number is: published (in the paper's abstract or the authors' own words),
secondary (in a text that quotes it), derived (follows by arithmetic), recalled (not checked against
the text), fitted (from the named log, by this project; the command is given).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cprsim.job.records import DAY_H


@dataclass(frozen=True, slots=True)
class FailurePreset:
    """Failures as a scenario can name them."""

    name: str
    of: Literal["job", "node"]  # whose clock it is
    family: str
    mean_h: float
    shape: float | None  # of Weibull and gamma, sigma of lognormal
    mark: Literal["published", "secondary", "derived", "recalled", "fitted"]
    source: str
    note: str
    n_nodes: int | None = None  # of the job whose clock it is; None: not known, or of a node


CPR = "Maeng et al., MLSys 2021, arXiv 2011.02999"

ROWS = (
    (
        "cpr-frequent", "job", "gamma", 14.0, 0.67, "secondary", CPR,
        "MTBF of training jobs 14 to 30 h (secondary), this the lower end; shape 0.67 derived from "
        "recalled medians",
    ),
    (
        "cpr", "job", "gamma", 28.0, 0.67, "recalled", CPR,
        "MTBF of the emulation (recalled); shape 0.67 derived from recalled medians",
    ),
    (
        "cpr-rare", "job", "gamma", 30.0, 0.67, "secondary", CPR,
        "MTBF of training jobs 14 to 30 h (secondary), this the upper end",
    ),
    (
        "kokolis-rsc1", "node", "exponential", 1000 * DAY_H / 6.50, None, "published",
        "Kokolis et al. 2025", "6.50 failures per 1000 node-days",
    ),
    (
        "kokolis-rsc2", "node", "exponential", 1000 * DAY_H / 2.34, None, "published",
        "Kokolis et al. 2025", "2.34 failures per 1000 node-days",
    ),
    (
        "llama3", "job", "exponential", 54 * DAY_H / 419, None, "derived",
        "Llama 3 (2024)", "419 interruptions in 54 days of a job on 16,384 GPUs, 8 on a node", 2048,
    ),
    (
        "infinitehbd", "job", "gamma", 0.4897 * 32.0749, 0.4897, "fitted",
        "InfiniteHBD's fault trace (StepFun)",
        "gaps between failures of all 400 servers; 9.3 % more gaps are zero", 400,
    ),
    (
        "lanl-system-2", "job", "weibull", 16.03, 0.8248, "fitted",
        "Los Alamos, LA-UR-05-7318",
        "gaps between failures of all 49 nodes of system 2, 2000 to 2005; its rate falls", 49,
    ),
)  # fmt: skip

FAILURE_PRESETS = {preset.name: preset for preset in (FailurePreset(*row) for row in ROWS)}
