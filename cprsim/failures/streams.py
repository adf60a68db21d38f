"""Random streams, addressed by what they are for.

A stream is named by (seed, block of replications, name). Nothing else enters, so that every
strategy meets the same failures, one replication can be replayed by drawing its block alone,
and a result does not depend on which worker drew it or in which order.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np


def stream(seed: int, block: int, name: str) -> np.random.Generator:
    """The generator of one purpose in one block of replications.

    Parameters
    ----------
    seed : the scenario's seed, a non-negative integer
    block : number of the block of replications, from 0
    name : what the draws are for, e.g. ``"failures/job"``
    """
    purpose = np.random.SeedSequence(seed, spawn_key=(block, crc32(name.encode())))
    return np.random.Generator(np.random.SFC64(purpose))
