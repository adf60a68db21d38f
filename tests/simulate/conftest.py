"""What is compared here is machine code, but where a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cprsim.compiling import always


@pytest.fixture(autouse=True)
def by_machine_code() -> Iterator[None]:
    """Have nothing interpreted."""
    with always(machine_code=True):
        yield
