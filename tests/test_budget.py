"""The budget of memory, as users set it."""

from __future__ import annotations

import pytest

from cprsim.errors import ParameterError
from cprsim.failures.budget import MEMORY, how_to_raise, memory_bytes


def test_it_is_a_gigabyte_unless_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MEMORY, raising=False)
    assert memory_bytes() == 1e9


def test_users_raise_it_in_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY, "4 GiB")
    assert memory_bytes() == 4 * 2**30
    assert f"4 GiB; {MEMORY}=" in how_to_raise()


@pytest.mark.parametrize("text", ["", "4", "-1 GB", "0 GB", "4 h", "nan GB"])
def test_what_is_no_size_is_refused_by_its_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY, text)
    with pytest.raises(ParameterError, match=f"{MEMORY}={text}: "):
        memory_bytes()
