"""The record of a selection, and its results folder.

The records are stored in `selection.json` (`cprsim.files`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite, nan
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.files import NOT_STORED, OMITTED, Number
from cprsim.job.losses import Metric, strategy_key
from cprsim.job.policy import Policy
from cprsim.job.records import Estimate
from cprsim.results import money
from cprsim.results.folder import (
    ResultTarget,
    new_folder,
    read_manifest,
    read_record,
    write_csv,
    write_record,
)
from cprsim.results.limit import Limit
from cprsim.results.metrics import OVERHEAD
from cprsim.results.money import Bills, JobPrices, JobUse, bills_of
from cprsim.results.unknown import WAIT, Assumption, BreakEven, SpareNeed
from cprsim.results.words import hours

SELECTION = "selection.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSummary:
    """Results of one strategy at one interval; estimates have 95 % intervals."""

    strategy: str
    policy: Policy
    # formula of CPR that gives the interval; else empty
    formula: str = field(default="", metadata={"alias": "rule"})
    # of a recovery system; empty if it has none
    interval_option: str = field(default="", metadata={"alias": "option"})
    entry: str  # its entry under `recovery`
    n_saves: int = field(metadata={"alias": "saves"})  # number of due whole saves; 0: never saves
    # mean number of committed saves, of all tiers
    n_committed: float = field(default=0.0, metadata={"alias": "n_made"})
    finished_fraction: float
    overhead: Estimate  # (wall - useful) / useful
    waiting: float  # mean hours of `wait` / work done
    worst: Number = nan  # largest overhead of a replication
    pls: Estimate
    loss: Estimate  # mean in the limit's quantity; its interval includes the curve's error
    benefit: Estimate  # full recovery's best overhead minus this one, paired
    upper_bound: Number  # of the loss; compared with the limit
    within_limit: bool
    beyond_fraction: float  # share of replications beyond the curve's measurements
    # share of replications with a stale shard
    stale_fraction: float = field(metadata={"alias": "struck_fraction"})

    @property
    def summary(self) -> dict[str, Estimate]:
        """Its overhead, and the waits in it."""
        return {OVERHEAD: self.overhead, WAIT: Estimate(self.waiting)}

    @property
    def loses(self) -> bool:
        """Whether it leaves shards stale, or loses accuracy by the curve."""
        return self.policy.leaves_stale or self.loss.mean > 0

    @property
    def is_cheaper(self) -> bool:
        """Whether it costs significantly less than full recovery at its best interval."""
        return self.benefit.low > 0

    @property
    def interval_words(self) -> str:
        """Its interval in words; of a recovery system, with the name of its option."""
        option, every = self.interval_option, hours(self.policy.interval_h)
        if not self.policy.from_cpr_paper and not option:
            return "at the interval of the scenario"
        if self.n_saves == 0:
            return f"never saving ({option}: the job's length)" if option else "never saving"
        return f"{option} {every}" if option else f"saving every {every}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The recommended candidate, the others, and the inputs of the decision."""

    useful_h: float
    n_replications: int = field(metadata={"alias": "replications"})
    limit: Limit
    curve: str | None  # its name and origin; None: none applies
    # strategy; full recovery if none of known loss is significantly cheaper
    chosen_name: str = field(metadata={"alias": "recommended"})
    full: CandidateSummary  # at its own best interval
    # by strategy; None: no interval that was tried is within the limit
    best: dict[str, CandidateSummary | None]
    formula: tuple[CandidateSummary, ...]  # partial recovery at CPR's intervals
    notes: tuple[str, ...] = ()  # warnings, of the curve and of this selection
    left_out: tuple[str, ...] = ()  # strategies whose loss the curve does not predict
    # strategies equivalent to the first choice (`decision.simplest`); the simplest is recommended
    equivalent: tuple[str, ...] = field(default=(), metadata={"alias": "alike"})
    stand_in: bool = False  # whether the curve is a shipped one, measured on another model
    accuracy: str = ""  # the section of a scenario with this limit
    limited: bool = True  # whether a compared option leaves shards stale, or loses by the curve
    # of the figure by strategy, the fewest saves first
    points: dict[str, tuple[CandidateSummary, ...]] = field(metadata={"alias": "front"})
    break_evens: tuple[BreakEven, ...] = ()  # of each unknown input
    # the assumed input that moves the answer most
    assumption: Assumption | None = field(default=None, metadata=OMITTED)
    spares: tuple[SpareNeed, ...] = ()  # numbers of spares that would pay
    # sentences: memory, bandwidth and retained saves of the chosen
    resources: str = field(default="", metadata={"alias": "takes"})
    n_nodes: int = 0  # of the job
    path: Path = field(default=Path(), metadata=NOT_STORED)  # its results folder
    manifest: Mapping[str, Any] = field(default_factory=dict, metadata=NOT_STORED)

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self.manifest["name"]).removesuffix("-select")

    @property
    def fell_back(self) -> bool:
        """Whether full recovery is chosen."""
        return self.chosen_name == self.full.strategy

    @property
    def recommended(self) -> str | None:
        """The chosen strategy; None if not all of its jobs finish."""
        return self.chosen_name if self.chosen.finished_fraction == 1 else None

    @property
    def chosen(self) -> CandidateSummary:
        """The candidate of the chosen strategy."""
        return self.at_best[self.chosen_name]

    @property
    def at_best(self) -> dict[str, CandidateSummary]:
        """Full recovery and each option that has one, at its best interval, by name."""
        best = {name: candidate for name, candidate in self.best.items() if candidate is not None}
        return {self.full.strategy: self.full, **best}

    @property
    def entries(self) -> dict[str, str]:
        """The entry under `recovery` of each candidate in `at_best`, by name."""
        return {name: candidate.entry for name, candidate in self.at_best.items()}

    @property
    def finishing(self) -> dict[str, CandidateSummary]:
        """Candidates of `at_best` under which all jobs finish."""
        at_best = self.at_best.items()
        return {name: best for name, best in at_best if best.finished_fraction == 1}

    def bills(self, prices: JobPrices | None) -> Bills:
        """The bill of each candidate in `finishing`; empty without prices."""
        finishing = self.finishing.items()
        used = {name: (candidate.policy, self._use(candidate)) for name, candidate in finishing}
        return bills_of(prices, used)

    def _use(self, candidate: CandidateSummary) -> JobUse:
        overhead = {money.OVERHEAD: candidate.overhead.mean * self.useful_h}
        is_auc = self.limit.quantity == Metric.AUC and isfinite(candidate.loss.mean)
        lossless = 0.0 if strategy_key(candidate.policy) is None else None
        loss = candidate.loss.mean if is_auc and candidate.loses else lossless
        return JobUse(self.useful_h, overhead, candidate.n_committed, loss)


# --------------------------------------------------------------------------- its results folder


def write_selection(
    target: ResultTarget, selection: Selection, draw: Callable[[Selection], object]
) -> Selection:
    """Write a selection into its folder, completely or not at all; return it as read back."""
    with new_folder(target) as folder:
        write_record(folder / SELECTION, selection)
        write_csv(candidate_rows(selection), folder / "candidates.csv")
        draw(replace(selection, path=folder, manifest={"name": target.identity.name}))
    return load_selection(target.folder)


def load_selection(folder: Path) -> Selection:
    """Read a finished selection. Raises ResultError if it is unfinished or damaged."""
    about = {"path": folder, "manifest": read_manifest(folder)}
    return read_record(Selection, folder / SELECTION, "a selection", **about)


def candidate_rows(selection: Selection) -> pd.DataFrame:
    """One row per candidate.

    Columns: part (full, best, formula RULE; front: of the figure), strategy, option (whose value
    is the interval of a recovery system; else empty), interval_h (infinite: never saves), n_saves
    (due), on_failure, finished_fraction; with 95 % intervals overhead_fraction, pls, loss and
    benefit_fraction (full recovery's overhead minus its own, paired); upper_bound (compared with
    the limit), keeps (whether it is within the limit), beyond_fraction.
    """
    parts = [
        ("full", selection.full),
        *(("best", candidate) for candidate in selection.best.values() if candidate is not None),
        *((f"formula {candidate.formula}", candidate) for candidate in selection.formula),
        *(("front", candidate) for points in selection.points.values() for candidate in points),
    ]
    rows = [
        {
            "part": part,
            "strategy": candidate.strategy,
            "option": candidate.interval_option,
            "interval_h": candidate.policy.interval_h,
            "n_saves": candidate.n_saves,
            "on_failure": candidate.policy.on_failure,
            "finished_fraction": candidate.finished_fraction,
            **candidate.overhead.columns("overhead_fraction"),
            **candidate.pls.columns("pls"),
            **candidate.loss.columns("loss"),
            **candidate.benefit.columns("benefit_fraction"),
            "upper_bound": candidate.upper_bound,
            "keeps": candidate.within_limit,
            "beyond_fraction": candidate.beyond_fraction,
        }
        for part, candidate in parts
    ]
    return pd.DataFrame(rows)
