"""Trainers in step: each learns from its part of a batch, and all need all parts.

    to another trainer   part (gradients), whole (all parts are here);  layers -> layers

A batch counts once all parts are here and at every other trainer. So nobody who dies takes along a
batch that counts: whoever is left has all of it. A halt may find some who have counted one and
others who have its parts alone: the supervisor lets all of them count it, or none (`counts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cprsim.kernel.training import Gradients, together
from cprsim.rehearsal.messages import Channel, Message
from cprsim.rehearsal.store import Arrays
from cprsim.rehearsal.worker import Worker


def counts(answers: Iterable[Message]) -> bool:
    """Whether a batch counts in which a halt has found trainers.

    If it does for anybody, dead or alive, then all who live have all its parts.
    """
    stand = [(int(one.fields["position"]), bool(one.fields.get("whole"))) for one in answers]
    before = min(position for position, _ in stand)
    return all(whole or position > before for position, whole in stand)


class PartsExchange:
    """The parts of a batch that trainers in step send each other."""

    def __init__(self, worker: Worker, name: str, part: int, layers: Callable[[], Arrays]) -> None:
        self._worker, self._part, self._layers = worker, part, layers
        self._peers: dict[int, Channel] = {}
        self._run = self._position = 0
        self._parts: dict[tuple[int, int], dict[int, Gradients]] = {}  # by run and position
        self._n_whole = 0  # others who have all parts of the batch in hand
        self.address = worker.listen(name, self._serve)

    def connect(self, addresses: Mapping[int, str]) -> None:
        """Connect to the others by the registry; earlier connections are closed."""
        for channel in self._peers.values():
            self._worker.loop.remove(channel)
        self._peers = {
            number: self._worker.connected(address, _nothing)
            for number, address in addresses.items()
            if number != self._part
        }

    def begin(self, run: int) -> None:
        """What was sent in earlier runs is dropped."""
        self._run = run
        self._parts = {key: parts for key, parts in self._parts.items() if key[0] >= run}

    def offer(self, position: int, own: Gradients) -> None:
        """Send the others the own part of the batch at a position."""
        self._position, self._n_whole = position, 0
        for channel in self._peers.values():
            channel.send(
                "part", (own.d_dense, own.d_fields),
                run=self._run, position=position, part=self._part,
            )  # fmt: skip
        self._add(self._run, position, self._part, own)

    def _add(self, run: int, position: int, number: int, part: Gradients) -> None:
        """Keep a part; tell the others where all are here."""
        parts = self._parts.setdefault((run, position), {})
        parts[number] = part
        if len(parts) == len(self._peers) + 1:
            for channel in self._peers.values():
                channel.send("whole", run=run, position=position)

    @property
    def is_known(self) -> bool:
        """Whether all parts of the batch in hand are here and at all others."""
        return self.is_whole and self._n_whole == len(self._peers)

    @property
    def is_whole(self) -> bool:
        """Whether all parts of the batch in hand are here."""
        return len(self._parts[self._run, self._position]) == len(self._peers) + 1

    def together(self) -> Gradients:
        """The gradients of the batch in hand, whose parts are all here."""
        parts = self._parts.pop((self._run, self._position))
        return together([parts[number] for number in sorted(parts)])

    def _serve(self, channel: Channel, message: Message) -> None:
        fields = message.fields
        if message.kind == "part":
            part = Gradients(*message.arrays)
            self._add(int(fields["run"]), int(fields["position"]), int(fields["part"]), part)
        elif message.kind == "whole":
            self._n_whole += (fields["run"], fields["position"]) == (self._run, self._position)
        elif message.kind == "layers":
            channel.send("layers", tuple(self._layers().values()))


def _nothing(channel: Channel, message: Message) -> None:
    """Nobody answers over a channel that parts go out by."""
