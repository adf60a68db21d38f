"""A made-up year of one cluster: 24 jobs, one after the other, as event logs of docs/events.md.

    python examples/cluster_year.py FOLDER [--seed N] [--jobs N] [--missing SHARE]

Made up are all numbers. Failures are Weibull with a falling hazard, whose rate falls by half over
the year; one node in twenty is a lemon; detection now and then takes half an hour (a hang). A
tenth of the failures leaves no event of its own, and a share of all other events is missing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

YEAR_H = 8760.0
BEGINS_NS = 1_735_689_600 * 10**9  # 2025-01-01
N_NODES = 64
STEP_S = 6.0
SAVE_EVERY_STEPS = 600
PROGRESS_EVERY_STEPS = 100
NEVER_MISSING = ("job.start",)


def main() -> None:
    """Write the logs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--missing", type=float, default=0.05)
    said = parser.parse_args()
    said.folder.mkdir(parents=True, exist_ok=True)
    for name, events in year(said.seed, said.jobs, said.missing):
        lines = "".join(json.dumps(one) + "\n" for one in events)
        (said.folder / f"{name}.jsonl").write_text(lines, "utf-8")


def year(
    seed: int, n_jobs: int = 24, missing: float = 0.05
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The logs of all jobs: name and events, in order of time."""
    rng = np.random.default_rng(seed)
    lemons = rng.choice(N_NODES, size=max(1, N_NODES // 20), replace=False)
    each_h = YEAR_H / n_jobs
    for number in range(n_jobs):
        name = f"job-{number:02d}"
        begins_h = number * each_h
        job = _Job(name, begins_h, 0.93 * each_h, lemons, rng)
        yield name, [one for one in job.run() if _is_kept(one, missing, rng)]


def _is_kept(event: dict[str, Any], missing: float, rng: np.random.Generator) -> bool:
    share = 0.1 if event["event"] == "failure" else missing
    return event["event"] in NEVER_MISSING or rng.random() >= share


class _Job:
    """One job, until its time is over: it is stopped then."""

    def __init__(
        self,
        name: str,
        begins_h: float,
        lasts_h: float,
        lemons: np.ndarray,
        rng: np.random.Generator,
    ) -> None:
        self.name, self.begins_h, self.lasts_h, self.lemons, self.rng = (
            name, begins_h, lasts_h, lemons, rng,
        )  # fmt: skip
        self.at_s, self.step, self.saved, self.attempt, self.n_saves = 0.0, 0, 0, 0, 0

    def run(self) -> Iterator[dict[str, Any]]:
        """All that happens, in order."""
        end_s = self.lasts_h * 3600
        yield self._event("job.start")
        self.at_s += self.rng.gamma(8.0, 20.0)
        yield self._event("train.resume", step=0)
        while self.at_s < end_s:
            fails_s = self.at_s + 3600 * self._life_h()
            yield from self._work(min(fails_s, end_s))
            if fails_s < end_s:
                yield from self._recover()
        self.at_s = end_s
        yield self._event("job.end", step=self.step, outcome="stopped")

    def _life_h(self) -> float:
        """Hours to the next failure: fewer and fewer over the year."""
        share = (self.begins_h + self.at_s / 3600) / YEAR_H
        return float(self.rng.weibull(0.8)) * 11.0 * 2.0**share

    def _work(self, until_s: float) -> Iterator[dict[str, Any]]:
        while True:
            next_s = self.at_s + STEP_S * PROGRESS_EVERY_STEPS
            if next_s > until_s:
                self.step += int((until_s - self.at_s) / STEP_S)
                self.at_s = until_s
                return
            self.at_s, self.step = next_s, self.step + PROGRESS_EVERY_STEPS
            yield self._event("progress", step=self.step)
            if self.step % SAVE_EVERY_STEPS == 0:
                self.n_saves += 1
                about = {"step": self.step, "save_id": str(self.n_saves)}
                yield self._event("save.start", **about)
                stall_s = float(self.rng.gamma(25.0, 5.0))
                if self.at_s + stall_s > until_s:
                    self.at_s = until_s
                    return
                self.at_s += stall_s
                self.saved = self.step
                yield self._event("save.commit", **about)

    def _recover(self) -> Iterator[dict[str, Any]]:
        lemon = self.rng.random() < 0.4
        node = int(self.rng.choice(self.lemons)) if lemon else int(self.rng.integers(N_NODES))
        hang = self.rng.random() < 0.08
        yield self._event("failure", node=f"node-{node:02d}", cause="hang" if hang else "crash")
        self.at_s += 1800.0 if hang else float(self.rng.gamma(4.0, 20.0))
        yield self._event("failure.detected")
        yield self._event("reschedule.start")
        self.at_s += float(self.rng.gamma(3.0, 90.0))
        self.attempt += 1
        yield self._event("job.start")
        yield self._event("load.start", step=self.saved)
        self.at_s += float(self.rng.gamma(16.0, 15.0))
        self.step = self.saved
        yield self._event("train.resume", step=self.step)

    def _event(self, event: str, **facts: Any) -> dict[str, Any]:
        at_ns = BEGINS_NS + round((self.begins_h * 3600 + self.at_s) * 1e9)
        return {
            "time_unix_nano": at_ns, "event": event, "job": self.name, "attempt": self.attempt,
            **facts,
        }  # fmt: skip


if __name__ == "__main__":
    main()
