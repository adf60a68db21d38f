"""Trainers in step: each learns from its part of a batch, and all need all parts.

    to another trainer   part (gradients) -> kept;  layers -> layers

A batch counts where its parts are together. Who counts one knows that the other has its part too:
either of two trainers can finish what the other has begun when it died.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cprsim.kernel.training import Gradients, together
from cprsim.rehearsal.messages import AnyChannel, Message
from cprsim.rehearsal.store import Arrays
from cprsim.rehearsal.worker import Worker


class PartsExchange:
    """The parts of a batch that trainers in step send each other.

    Parameters
    ----------
    part : number of the own part
    layers : what a replacement is given
    """

    def __init__(self, worker: Worker, name: str, part: int, layers: Callable[[], Arrays]) -> None:
        self._worker, self._part, self._layers = worker, part, layers
        self._peers: dict[int, AnyChannel] = {}
        self._run = self._position = 0
        self._parts: dict[tuple[int, int], dict[int, Gradients]] = {}  # by run and position
        self._n_kept = 0
        self.address = worker.listen(name, self._serve)

    def connect(self, addresses: Mapping[int, str]) -> None:
        """Connect to the others by the registry; earlier connections are closed."""
        for channel in self._peers.values():
            self._worker.loop.remove(channel)
        self._peers = {
            number: self._worker.connected(address, self._on_kept)
            for number, address in addresses.items()
            if number != self._part
        }

    def begin(self, run: int) -> None:
        """What was sent in earlier runs is dropped."""
        self._run = run
        self._parts = {key: parts for key, parts in self._parts.items() if key[0] >= run}

    def offer(self, position: int, own: Gradients) -> None:
        """Send the others the own part of the batch at a position."""
        self._position, self._n_kept = position, 0
        self._parts.setdefault((self._run, position), {})[self._part] = own
        for channel in self._peers.values():
            channel.send(
                "part", (own.d_dense, own.d_fields),
                run=self._run, position=position, part=self._part,
            )  # fmt: skip

    @property
    def is_known(self) -> bool:
        """Whether the others have the own part, and their parts are here."""
        return self._is_whole and self._n_kept == len(self._peers)

    @property
    def _is_whole(self) -> bool:
        return len(self._parts[self._run, self._position]) == len(self._peers) + 1

    def whole(self) -> Gradients | None:
        """The gradients of the batch; None where a part is missing."""
        if not self._is_whole:
            return None
        parts = self._parts.pop((self._run, self._position))
        return together([parts[number] for number in sorted(parts)])

    def _serve(self, channel: AnyChannel, message: Message) -> None:
        fields = message.fields
        if message.kind == "part":
            key = int(fields["run"]), int(fields["position"])
            part = Gradients(*message.arrays)
            self._parts.setdefault(key, {})[int(fields["part"])] = part
            channel.send("kept", run=key[0], position=key[1])
        elif message.kind == "layers":
            channel.send("layers", tuple(self._layers().values()))

    def _on_kept(self, channel: AnyChannel, message: Message) -> None:
        fields = message.fields
        self._n_kept += (fields["run"], fields["position"]) == (self._run, self._position)
