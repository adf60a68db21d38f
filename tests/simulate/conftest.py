"""What is compared here is machine code, but where a test says otherwise."""

from __future__ import annotations

import pytest

from cprsim.compiling import Compiled


@pytest.fixture(autouse=True)
def by_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing interpreted."""
    monkeypatch.setattr(Compiled, "pays", lambda loop, more_s=0.0: True)
