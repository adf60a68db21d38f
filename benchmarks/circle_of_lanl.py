"""Which of LANL's systems lie inside the logs simulated from their fit, through their window.

CPRSIM_DATA=... python -m benchmarks.circle_of_lanl [seed, default 0]

What `cprsim fit LOG --system N --node-dates --through-window --circle` says, for each system with
200 outages or more, as a table of Markdown.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cprsim.errors import TraceError
from cprsim.fitting.posterior_check import Compared
from cprsim.making.fit_log import FitAsked, LogAsked, options_of_reader, read_to_fit
from cprsim.present.fit import FitReport

LOG = Path("failures/lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz")
SYSTEMS = range(2, 25)  # 1 has no record
FEWEST = 200  # outages
SHORT = {
    "mean_gap_h": "mean gap",
    "share_of_zero_gaps": "zero gaps",
    "weekly_dispersion": "per week",
    "concentration": "worst tenth",
}


def cells(one: Compared) -> str:
    """A statistic beside its simulation."""
    outside = "" if one.inside is not False else ", outside"
    return f"{one.trace:.3g} ({one.simulated.low:.3g} to {one.simulated.high:.3g}){outside}"


def report_of(log: Path, system: int, seed: int) -> FitReport:
    """What is made of one system's records."""
    reader = options_of_reader(None, system, (None, None), {}, None, None, None, None)
    read = read_to_fit(LogAsked(log=log, reader=reader, node_dates=True))
    asked = FitAsked(through_window=True, bootstrap=0, circle=True)
    fitted, apart = asked.of(read)
    return FitReport.of(
        fitted, log.name, n_job_nodes=None, circle_seed=seed, through_window=True, apart=apart
    )


def main(seed: int) -> None:
    """Print the table, and how many are inside."""
    log = Path(os.environ["CPRSIM_DATA"]) / LOG
    headings = ("system", "outages", "random factor", *SHORT.values(), "outside")
    print(f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}")
    inside = []
    for system in SYSTEMS:
        try:
            report = report_of(log, system, seed)
        except TraceError:
            continue
        n = report.fitted.outages.n_outages
        if n < FEWEST:
            continue
        factor = None if report.random is None else report.random.factor
        random = "none" if factor is None else f"{factor.variance:.2g}, {factor.lasts_h:.3g} h"
        outside = [SHORT[one.name] for one in report.circle if one.inside is False]
        inside.append(not outside)
        told = [cells(one) for one in report.circle]
        print(f"| {' | '.join([str(system), f'{n:,}', random, *told, ', '.join(outside)])} |")
        sys.stdout.flush()
    print(f"\ninside in all statistics: {sum(inside)} of {len(inside)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
