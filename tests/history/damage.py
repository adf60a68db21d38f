"""Logs as they come from real jobs: events missing, lines cut, deaths without an instant."""

from __future__ import annotations

from typing import Any

import numpy as np

EVER_THERE = ("job.start",)  # without it nothing is known of the job's first hours


def damaged(
    events: list[dict[str, Any]], rng: np.random.Generator, *, missing: float, unseen_deaths: float
) -> list[dict[str, Any]]:
    """Some events left out at random, and what a dying process can't write.

    Parameters
    ----------
    missing : probability of each event to be missing
    unseen_deaths : probability of a failure to have no event of its own
    """
    kept = []
    for event in events:
        one = dict(event)
        if one["event"] == "failure":
            one.pop("step", None)
        if one["event"] == "failure" and rng.random() < unseen_deaths:
            continue
        if one["event"] not in EVER_THERE and rng.random() < missing:
            continue
        kept.append(one)
    return kept
