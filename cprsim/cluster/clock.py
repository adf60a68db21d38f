"""The clock on which failures age, and the alarm that strikes the job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import simpy
from simpy.events import EventPriority

from cprsim.records import Failure

AFTER_ALL_ELSE = EventPriority(
    2
)  # SimPy's urgent is 0, normal 1: what ends at an instant ends before a failure


class Alarm(simpy.Event):
    """An event at an instant, handled after everything else of that instant."""

    def __init__(self, env: simpy.Environment, delay_h: float) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        env.schedule(self, AFTER_ALL_ELSE, delay_h)


class FailureClock:
    """Strikes the job at each failure of its trace, on a clock that stands still at times.

    standing --toggle--> running --toggle--> standing
    running: at the age of the next failure, strike and wait for the one after it
    """

    def __init__(
        self,
        env: simpy.Environment,
        failures: Iterator[Failure],
        strike: Callable[[Failure], None],
    ) -> None:
        self._env = env
        self._failures = failures
        self._strike = strike
        self._next = next(failures, None)
        self._age_h = 0.0  # as of `_since_h`
        self._since_h = 0.0
        self.running = False
        self.n_struck = 0
        self._alarm: Alarm | None = None

    def toggle(self) -> None:
        """Stand still, or run on from the age at which it stood."""
        if self.running:
            self._age_h += self._env.now - self._since_h
            self._alarm = None  # an alarm that is not ours any more rings unheard
        self.running = not self.running
        if self.running:
            self._since_h = self._env.now
            self._set_alarm()

    def _set_alarm(self) -> None:
        if self._next is None:
            return
        age_h = self._age_h + self._env.now - self._since_h
        self._alarm = Alarm(self._env, max(0.0, self._next.at_h - age_h))
        self._alarm.callbacks.append(self._ring)

    def _ring(self, alarm: simpy.Event) -> None:
        if alarm is not self._alarm or self._next is None:
            return
        failure, self._next = self._next, next(self._failures, None)
        self._age_h, self._since_h = failure.at_h, self._env.now
        self._set_alarm()
        self.n_struck += 1
        self._strike(failure)
