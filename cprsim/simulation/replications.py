"""Many replications of a job, compiled: from instant to instant, or from failure to failure."""

from __future__ import annotations

from typing import NamedTuple

from cprsim.compiling import inlined, parts_of, slow_to_compile
from cprsim.job.records import Floats, Ints
from cprsim.simulation import copies, cycles, recoveries, saves, step
from cprsim.simulation.cycles import closed_form_steps, skip_cycles
from cprsim.simulation.saves import needed_by_step
from cprsim.simulation.spec import (
    COLUMNS,
    NONE,
    OF_JOB,
    RUNNING,
    SAME_INSTANT,
    STOPPED,
    WANTS_FAILURES,
    WANTS_MORE,
)
from cprsim.simulation.state import Sim
from cprsim.simulation.step import FailedSlots, advance, complete, end, fail, next_event, start
from cprsim.simulation.strikes import ScopedStrikes, next_failure

parts_of(copies, saves, recoveries, step, cycles)


class Results(NamedTuple):
    """Results of replications, by number.

    `hours` : (4 + n_columns, n_replications) wall hours, useful hours, staleness summed over shards
        (since the content, and since the later of that and the shard's own last reload); `COLUMNS`
    `counts` : (3, n_replications) status, failures, saves
    """

    hours: Floats
    counts: Ints


@inlined
def has_room(sim: Sim) -> bool:
    """Whether the next step finds all draws, and places for recoveries and losses."""
    job, drawn, losses = sim.job, sim.drawn, sim.losses
    n_of_saves, n_of_failures, n_recoveries = needed_by_step(sim)
    if drawn.of_failures.shape[0] and n_of_failures > drawn.of_failures.shape[1]:
        return False
    if drawn.of_saves.shape[0] and n_of_saves > drawn.of_saves.shape[1]:
        return False
    if len(losses) and job.n_losses + 2 * sim.spec.n_slots > len(losses):
        return False
    return n_recoveries <= len(sim.recoveries)


@slow_to_compile
def run(of: Sim, strikes: ScopedStrikes, rows: Ints, out: Results) -> int:
    """Run replications of a job, whose state is used again, and return the number of their losses.

    A replication that needs more failures, draws or room than given stops with the status
    `WANTS_FAILURES` or `WANTS_MORE`, and has to be run again.
    """
    spec, job = of.spec, of.job
    near_h = SAME_INSTANT * spec.useful_h
    no_slots = FailedSlots(NONE, strikes.slot[:0], strikes.repair_h[:0])
    for row in rows:
        sim = Sim(spec, job, of.slots, of.recoveries, of.drawn, row, of.losses, None)
        start(sim)
        n_losses = job.n_losses
        chunk, failure = next_failure(strikes, row, 0, strikes.first[0, row])
        while job.status == RUNNING:
            struck = False
            if spec.has_closed_form and job.n_recoveries == 0 and job.stalled_by == NONE:
                chunk, failure, struck = closed_form_steps(sim, strikes, chunk, failure)
            if job.status == RUNNING and not has_room(sim):
                job.status = WANTS_MORE
                break
            if not struck:
                if job.status != RUNNING:
                    break
                fails_at_h = strikes.until_h if failure == NONE else strikes.at_h[failure]
                event = next_event(sim, fails_at_h)
                if job.status != RUNNING:
                    break
                if skip_cycles(sim, event, fails_at_h):
                    continue
                struck = event.fails_h < event.at_h - near_h  # of one instant a failure comes last
                to_h = max(job.now_h, event.fails_h) if struck else event.at_h
                if not struck or failure != NONE:
                    advance(sim, to_h, event)
            if not struck:
                complete(sim, event, no_slots)
            elif failure == NONE:
                job.status = WANTS_FAILURES
            else:
                at = slice(strikes.first_slot[failure], strikes.first_slot[failure + 1])
                fail(
                    sim, FailedSlots(strikes.scope[failure], strikes.slot[at], strikes.repair_h[at])
                )
                chunk, failure = next_failure(strikes, row, chunk, failure + 1)
        end(sim)
        out.hours[0, row], out.hours[1, row] = job.now_h, job.frontier_h
        out.hours[2, row], out.hours[3, row] = job.stale_h, job.stale_since_reload_h
        for column in range(len(COLUMNS)):
            out.hours[OF_JOB + column, row] = job.hours[column]
        out.counts[0, row] = job.status
        out.counts[1, row], out.counts[2, row] = job.n_failures, job.n_saves
        if job.status > STOPPED:
            job.n_losses = n_losses
    return int(job.n_losses)
