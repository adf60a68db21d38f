"""What a command interpreted for long is compiled when it has ended, by a process nobody awaits.

It starts when a command ends, is the last to get a processor, and ends by itself.
``CPRSIM_COMPILE_BEHIND=0`` in the environment forbids it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

AT_MOST_S = 300  # of processor time
AT_MOST_BYTES = 32_768  # told to it: what a pipe takes at once
FORBIDS = "CPRSIM_COMPILE_BEHIND"


def compile_behind() -> subprocess.Popen[bytes] | None:
    """Start it, if this command had to interpret much and nothing speaks against it."""
    blocks = sys.modules.get("cprsim.simulate.blocks")
    if blocks is None or os.environ.get(FORBIDS) == "0":
        return None
    jobs = blocks.interpreted_for_long()
    if not jobs:
        return None
    import pickle
    import subprocess

    pickled = pickle.dumps(jobs)
    if len(pickled) > AT_MOST_BYTES:
        return None
    with suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        with process.stdin as pipe:  # type: ignore[union-attr]  # it was asked for
            pipe.write(pickled)
        return process
    return None


def main() -> None:
    """What that process does."""
    import pickle

    jobs = pickle.load(sys.stdin.buffer)
    with suppress(ImportError, OSError, ValueError):
        import resource

        os.nice(19)
        resource.setrlimit(resource.RLIMIT_CPU, (AT_MOST_S, AT_MOST_S))
    from cprsim.simulate.blocks import compile_for

    for job in jobs:
        compile_for(job)


if __name__ == "__main__":
    main()
