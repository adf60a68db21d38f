"""Which replications of a run are worth looking at: a usual one, a bad one, and the worst."""

from __future__ import annotations

from math import ceil

import numpy as np

from cprsim.results.metrics import FINISHED
from cprsim.results.run import Result

SHARES = {"median": 0.5, "p95": 0.95, "worst": 1.0}


def judged_by(result: Result) -> str | None:
    """The strategy whose overhead orders replications: plain full recovery, else the first."""
    spreads = result.spreads()
    finished = [one for one in result.policies if spreads[one.name][FINISHED].mean > 0]
    plain = [one for one in finished if one.is_plain_full]
    return next((one.name for one in (*plain, *finished)), None)


def worth_seeing(result: Result) -> dict[str, int]:
    """Numbers of replications by `SHARES`; empty where none finished."""
    name = judged_by(result)
    rows = result.replications
    mine = rows[(rows["strategy"] == name) & rows["finished"].astype(bool)]
    if not len(mine):
        return {}
    in_order = mine.sort_values(["wall_h", "replication"])
    walls = in_order["wall_h"].to_numpy(np.float64)
    numbers = in_order["replication"].to_numpy(np.int64)
    ranks = {what: ceil(share * len(walls)) - 1 for what, share in SHARES.items()}
    return {what: int(numbers[np.searchsorted(walls, walls[rank])]) for what, rank in ranks.items()}
