"""The warmed parent of all workers: it has everything imported and read, and forks on demand.

    python -m cprsim.rehearsal.nursery FOLDER    one JSON line on stdin asks for one process

It is killed when the supervisor ends, and ends when its input does; its children with it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

from cprsim.foreign import parse_json

TO_SUPERVISOR = 1  # the supervisor reads a pipe there


def main() -> None:
    """Read the material, say so, and fork until the input ends."""
    from cprsim.rehearsal.worker import die_with_parent

    die_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies: nobody waits for the children
    from cprsim.rehearsal import server, trainer  # noqa: F401
    from cprsim.rehearsal.material import fresh_model, read_material
    from cprsim.rehearsal.warming import warm
    from cprsim.rehearsal.worker import Heirloom
    from cprsim.rehearsal.worker import main as work

    material = read_material(Path(sys.argv[1]))
    model = fresh_model(material)
    heirloom = Heirloom(material, model.table, model.dense)
    warm(heirloom)
    gc.collect()
    gc.freeze()
    os.write(TO_SUPERVISOR, b"warm\n")
    own = os.getpid()
    for line in sys.stdin:
        asked = parse_json(line.encode())
        if os.fork() == 0:
            work(heirloom, asked["address"], asked["key"], own)


if __name__ == "__main__":
    main()
