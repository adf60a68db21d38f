"""What a trainer waits for before it says that it has come to a save."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cprsim.rehearsal.trainer import TrainerProcess


@pytest.mark.parametrize(
    ("happens", "is_taken"),
    [
        (lambda trainer: trainer._unacknowledged.discard(1), True),
        (lambda trainer: setattr(trainer._servers[1], "closed", True), True),  # it is dead
        (lambda trainer: setattr(trainer, "_halt", 7), False),
    ],
)
def test_all_living_servers_have_the_last_batch(happens, is_taken) -> None:
    """A save that overtakes it would hold the shard without it."""
    trainer = object.__new__(TrainerProcess)
    trainer._servers = {k: SimpleNamespace(closed=False) for k in range(2)}
    trainer._unacknowledged, trainer._halt = {1}, None
    turns = iter([lambda _: None, happens])
    trainer._loop = SimpleNamespace(turn=lambda until: next(turns)(trainer))
    assert trainer._is_taken() == is_taken
    assert list(turns) == []
