"""One replication after the other, from failure to failure; compiled.

A job is taken from one failure to the next in a few steps, whatever lies between: whole intervals
are jumped over. Where something is not known yet (failures, costs, room for losses), a replication
says so and is run again from its start when it is.

    work --a save is due--> stall --committed--> work ... --a failure strikes--> recovery --> work
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from cprsim.compiling import compiled
from cprsim.engine.failing import go_back, price_recovery, reload, suffer
from cprsim.engine.standing import (
    AT_SAVE,
    GOING,
    JOB,
    LEFT,
    MOST_UNDER_WAY,
    RECOVERY,
    STOPPED,
    WANTS_COSTS,
    WANTS_FAILURES,
    begin,
)
from cprsim.engine.stretches import live_on, live_until, price_save
from cprsim.engine.terms import Drawn, Plan
from cprsim.failures.block import Strikes
from cprsim.records import Floats, Ints


@compiled
def run(
    plan: Plan, drawn: Drawn, strikes: Strikes, rows: Ints,
    hours: Floats, counts: Ints, losses: Any, keeps: bool, slots: Any, desks: Any,
) -> int:  # fmt: skip
    """Run some replications.

    Parameters
    ----------
    rows : (n_rows,) numbers of the replications
    hours, counts : (n_columns, n_replications) what comes out, columns as in HOURS and COUNTS
    losses : (n_room,) of LOSS; the shards that go back
    keeps : whether losses are kept, or summed only
    slots, desks : (n_slots,) of SLOT and (1,) of DESK, of nobody else: what they hold from other
        calls does not matter, so that no call has to fill a table of all nodes

    Returns
    -------
    how many losses there are

    Notes
    -----
    Arrays stay up here, and in what a failure under partial recovery does: each call that takes
    one counts a reference, which costs more than the step itself.
    """
    desk = desks[0]
    desk.keeps, desk.n_losses = keeps, 0
    scratch = np.zeros(1, JOB)
    job = scratch[0]
    under_way = np.zeros(1 + min(MOST_UNDER_WAY, plan.n_slots), RECOVERY)
    first, at_h = strikes.first, strikes.at_h
    border_h = strikes.until_h
    if plan.on_progress and border_h >= plan.useful_h:
        border_h = inf
    for row in rows:
        begin(plan, job)
        desk.course += 1
        desk.n_under_way = 0
        n_losses = desk.n_losses
        chunk, failure = 0, first[0, row]
        status = GOING
        while status == GOING:
            while chunk < len(first) and failure == first[chunk, row + 1]:
                chunk += 1
                failure = first[chunk, row] if chunk < len(first) else -1
            status = live_until(plan, job, border_h if failure < 0 else at_h[failure])
            while status == AT_SAVE:
                status = price_save(plan, drawn, row, job)
                if status == GOING:
                    status = live_on(plan, job)
            if failure < 0:
                status = WANTS_FAILURES if status in (GOING, LEFT) else status
                break
            if status == GOING:
                status = suffer(plan, job)
            if status == GOING and plan.recovery_varies:
                status = price_recovery(plan, drawn, row, job)
            if status == GOING and plan.reloads:
                status = reload(plan, strikes, failure, row, job, losses, slots, under_way, desk)
            elif status == GOING:
                go_back(plan, job)
            job.n_failures += status == GOING
            failure += 1
        if status > STOPPED:
            desk.n_losses = n_losses
        hours[0, row] = job.wall_h
        hours[1, row] = job.frontier_h
        hours[2, row] = max(0.0, job.worked_h - job.frontier_h)
        hours[3, row] = job.save_h
        hours[4, row] = job.detect_h
        hours[6, row] = job.reschedule_h
        hours[7, row] = job.load_h
        hours[8, row] = job.stale_h
        hours[9, row] = job.stale_net_h
        counts[0, row] = status
        counts[1, row] = job.n_failures
        counts[2, row] = job.n_attempts if status == WANTS_COSTS else job.n_saves
    return int(desks[0].n_losses) + 0 * len(scratch)  # records do not keep their array alive
