"""One BLAS thread while the kernel works, whatever the environment says.

Its products are small: two threads on shared cores wait for each other and drop to a hundredth of
one thread's speed. Parallel runs use the cores instead; and the order of sums, so the bytes of a
result, does not depend on the number of cores.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> Any:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Hold every BLAS library of the process to one thread inside the `with` block."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


def description() -> str:
    """Which BLAS numpy uses here and the kind of core it took this one for."""
    libraries = [lib for lib in _controller().info() if lib["user_api"] == "blas"]  # scipy's too
    blas = next((lib for lib in libraries if "numpy" in lib["filepath"]), libraries[0])
    return f"{blas['internal_api']} {blas['version']} for {blas.get('architecture', 'any core')}"
