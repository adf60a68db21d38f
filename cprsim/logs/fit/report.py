"""Report on a log of failures: fits, the MTBF of a job, and contradictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import exp, inf, isfinite, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import MUCH, Note, Outages, n_repeats, n_rows
from cprsim.job.records import ROUNDED_Z_95, WEEK_H, Estimate, Ints
from cprsim.logs.columns import words_in
from cprsim.logs.fit.correlated_fit import CorrelatedFit, fit_correlated
from cprsim.logs.fit.goodness import FEWEST_TO_TRUST, FittedQuantity, Ranking, rank
from cprsim.logs.fit.lifetimes import Age, Lifetimes, gaps, repair_times, uptimes
from cprsim.logs.fit.likelihood import Fit, NotConvergedError
from cprsim.logs.fit.observation import (
    WORST_FRACTION,
    concentration,
    dispersion,
    failure_groups,
    job_rate_per_h,
    observation,
    share_of_job,
    weekly_counts,
)
from cprsim.logs.fit.trend import Trend, silences, trend

MOST_REASONS = 4
NOTE_KINDS = {"outages": "", "merged": "merged", "no failures": "no_failure", "left out": "dropped"}
# notes that the answer shows: their kind, and whether they lack a number of rows
SHOWN_NOTES = {("dropped", True), ("inferred", False)}
FEW_WEEKS = 8  # below, the bunching of failures can't be told
MOSTLY = 0.5
NEAR_H = 5 / 60  # between outages that one node may have under two names
N_WORST = 3  # nodes that are named
WORTH_AIC = 10.0  # by how much unequal nodes have to be better to be asked for
FACTS = {
    "n_nodes": "how many nodes there are", "begins": "when it begins", "ends": "when it ends"
}  # fmt: skip
FIT_MEASURES = ("log_likelihood", "aic", "bic", "ks", "p_value", "rmse_survival")  # of a fit
Row = dict[str, Any]


@dataclass(frozen=True)
class Fitted:
    """Fits to a log, and results for a job on some of its nodes."""

    outages: Outages
    observation: Mapping[str, Mapping[str, int | str]]  # value, source and how
    origin: str  # the log's name
    cause: str | None  # the only one that is asked about
    n_job_nodes: int
    gaps: FittedQuantity
    uptimes: FittedQuantity
    repairs: FittedQuantity
    groups: Ints  # nodes of each group that failed at one instant, in order of time
    trend: Trend
    correlated: CorrelatedFit | None
    why_not_correlated: str  # empty where there is a fit

    @property
    def subjects(self) -> tuple[FittedQuantity, ...]:
        return self.gaps, self.uptimes, self.repairs

    @property
    def n_failures(self) -> int:
        return len(self.outages.failed_at_h)

    @property
    def job_share(self) -> float:
        """Share of the failures that strike the job."""
        return share_of_job(self.groups, self.n_job_nodes, self.outages.n_nodes)

    @property
    def larger_groups(self) -> Ints:
        """Sizes of those groups that have more than one node."""
        return self.groups[self.groups > 1]

    @property
    def share_of_zero_gaps(self) -> float:
        """Of the gaps between successive node failures."""
        n_nodes = int(self.groups.sum())
        return (n_nodes - len(self.groups)) / max(n_nodes - 1, 1)

    @property
    def weekly_dispersion(self) -> float:
        """Variance over mean of the failures per week."""
        return dispersion(weekly_counts(self.outages.failed_at_h, self.outages.window_h))

    @property
    def _node(self) -> Ints:
        """The node of each failure, where it is known."""
        chosen = self.outages.in_window & self.outages.chosen & self.outages.placed
        return self.outages.node[chosen]

    @property
    def share_of_worst(self) -> float:
        """Share of the failures on the worst tenth of the nodes."""
        return concentration(self._node, self.outages.n_nodes)

    @property
    def worst_nodes(self) -> dict[str, int]:
        """The nodes that fail most, with their failures; nothing where the log names no two."""
        names = self.outages.node_names
        node, first, n = np.unique(self._node, return_index=True, return_counts=True)
        worst = np.lexsort((first, -n))[:N_WORST]
        return {names[node[k]]: int(n[k]) for k in worst} if len(names) > 1 else {}

    @property
    def differ(self) -> bool:
        """Whether nodes differ by more than one distribution can say."""
        if self.correlated is None or self.outages.n_nodes < 2:
            return False
        aic = {form.family: form.aic for form in self.correlated.forms}
        return aic["alike"] - min(aic.values()) > WORTH_AIC

    @property
    def asks_for_correlation(self) -> bool:
        """Whether nodes differ, or failed together."""
        shocks = self.correlated is not None and self.correlated.shocks is not None
        return self.differ or (shocks and self.outages.n_nodes > 1)

    # ------------------------------------------------------------------------- in words

    @property
    def wider(self) -> float:
        """Times the variance of a Poisson number that of the failures is; NaN if that is open."""
        is_known = isfinite(self.weekly_dispersion) and self.outages.window_h >= FEW_WEEKS * WEEK_H
        return max(self.weekly_dispersion, 1.0) if is_known else nan

    @property
    def mtbf_h(self) -> Estimate:
        """MTBF of the job while its nodes are present; bunched failures widen the interval."""
        rate, n_events = job_rate_per_h(self.outages, self.n_job_nodes), len(self.groups)
        mtbf_h = 1 / rate if rate > 0 else inf
        error = sqrt((self.wider if isfinite(self.wider) else 1.0) / n_events)
        low_h, high_h = (mtbf_h * exp(sign * ROUNDED_Z_95 * error) for sign in (-1, 1))
        return Estimate(mtbf_h, low_h, high_h, n_events)

    @property
    def answer(self) -> tuple[str, str]:
        """How often the job fails, and how sure that is."""
        mtbf, wider = self.mtbf_h, f"{self.wider:.2g}"
        bunching = {
            "1": "whose counts per week show no bunching",
            "nan": f"if they do not bunch, which a log under {FEW_WEEKS} weeks can't tell",
        }.get(wider, f"allowing for failures that bunch ({wider} times a Poisson variance)")
        return (
            f"A job on {self.n_job_nodes} of the {self.outages.n_nodes} nodes meets a failure "
            f"every {_time(mtbf.mean)} on average.",
            f"95 % interval: {_time(mtbf.low)} to {_time(mtbf.high)}, from "
            f"{'only ' if mtbf.n < FEWEST_TO_TRUST else ''}{mtbf.n} failures, {bunching}.",
        )

    @property
    def much_left_out(self) -> str:
        """That over a tenth of the rows are left out, of which some may be failures; or nothing."""
        n_read, n = self.outages.n_read, n_rows(self.outages.notes, "dropped")
        if n <= MUCH * n_read:
            return ""
        return f"Of {n_read:,} rows read {n:,} are left out: {_reasons(self.outages, 'dropped')}."

    @property
    def balance(self) -> str:
        """Rows read, and their numbers by outcome and reason."""
        n_read, *became = self.outages.balance.values()
        parts = [
            f"{n:,} {name}" + (f" ({why})" if (why := _reasons(self.outages, kind)) else "")
            for n, (name, kind) in zip(became, NOTE_KINDS.items(), strict=True)
            if n
        ]
        return f"{n_read:,} rows read = {' + '.join(parts)}."

    @property
    def causes(self) -> str:
        """The failures by cause, of which some may be planned; nothing where the log names none."""
        of, which = self.outages, self.outages.in_window & self.outages.chosen
        cause = pd.Series(np.array(of.cause_names, dtype=object)[of.cause_code[which]])
        listed = f"By cause: {words_in(cause.mask(cause == ''))} (--not-cause omits planned work)."
        return listed if (cause != "").any() else ""

    @cached_property
    def contradictions(self) -> list[str]:
        """What in the log contradicts one distribution."""
        none_fit = [of.name for of in self.subjects if of.ranking and of.ranking.none_fits]
        groups, n_again = self.larger_groups, n_repeats(self.outages.where(self.outages.placed))
        known, window_h = self.outages.where(~self.outages.guessed), self.outages.window_h
        apart_h, n = np.diff(self.outages.where(self.outages.placed).failed_at_h), self.n_failures
        # independent failures at one rate: n^2 x NEAR_H / window_h such pairs, by chance
        near = (apart_h > 0) & (apart_h <= NEAR_H) & (np.diff(self._node) != 0)
        down_h = np.minimum(known.end_h, window_h) - np.maximum(known.start_h, 0.0)
        down = float(down_h.sum()) / max(self.outages.node_hours, 1.0)
        contradictions = {
            f"nodes are down for {down:.0%} of the time (is it up that is called down?)":
                down > MOSTLY,
            f"{n_again} failures are within an hour of another of the same node (--coalesce '1 h' "
            "makes one of them)": n_again,
            f"{near.sum()} of {n} failures begin up to 5 min after one of another node (is it one "
            "of two names? --together '5 min' makes one event of them)":
                near.sum() > max(MUCH * n, 3 * n * n * NEAR_H / self.outages.window_h),
            "the rate changes over the log": self.trend.differs,
            f"no family fits the {' and the '.join(none_fit)}": none_fit,
            f"nodes fail together ({len(groups)} times, up to {max(groups, default=0)} at once)":
                self.asks_for_correlation and len(groups),
            f"nodes differ (the worst {WORST_FRACTION:.0%} have {self.share_of_worst:.1%} of the "
            "failures)": self.differ,
        }  # fmt: skip
        return [text for text, holds in contradictions.items() if holds]

    @property
    def remarks(self) -> list[str]:
        """What contradicts the fit, had to be inferred, does not count; worst nodes, warnings."""
        verdict = "Nothing in the log contradicts the fit."
        if self.contradictions:
            verdict = f"What does not fit one distribution: {'; '.join(self.contradictions)}."
        facts = self.observation
        guessed = [text for name, text in FACTS.items() if facts[name]["source"] == "inferred"]
        if guessed:
            listed = " and ".join(filter(None, (", ".join(guessed[:-1]), guessed[-1])))
            verdict += f" The log does not say {listed}: that is inferred from its failures alone."
        unfitted = [
            f"{of.name} are not fitted: {of.why_not}"
            for of in self.subjects
            if of.why_not and of.lifetimes.n_observed > 0
        ]
        verdict = " ".join([verdict, *sentences(unfitted)])
        worst = ", ".join(f"{one_line(name, 40)} {n}" for name, n in self.worst_nodes.items())
        most = [f"The worst nodes by count: {worst} of {self.n_failures} failures."] * bool(worst)
        unread = [str(of) for of in self.outages.notes if (of.kind, of.n is None) in SHOWN_NOTES]
        how = [str(note) for note in self.outages.notes if note.kind == "read_as"][-1:]
        said = {*self.outages.dropped, *how, *unread}
        return [
            verdict,
            " ".join([*sentences(how), self.balance, self.causes]).rstrip(),
            *sentences(unread),
            *most,
            *sentences(one for one in self.warnings if one not in said),
        ]

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings, the most important first."""
        halves = (
            f"the first half of the log has {self.trend.first_half} failures, the second "
            f"{self.trend.second_half}; {self.trend.in_words()}; choose a period"
        )
        warnings = [
            *(f"{subject.name}: the mean is extrapolated beyond "
              f"{subject.lifetimes.longest_h:,.6g} h, the longest time watched"
              for subject in self.subjects
              if subject.mean is not None and subject.lifetimes.extrapolates(subject.mean.mean)),
            halves if self.trend.differs else "",
            *silences(self.outages),
            *(warning for subject in self.subjects for warning in _warnings_of(subject)),
            *map(str, self.outages.notes),
        ]  # fmt: skip
        return tuple(filter(None, warnings))

    # ------------------------------------------------------------------------- as tables

    @cached_property
    def frames(self) -> dict[str, list[Row]]:
        """All numbers, a row of each table as a mapping."""
        tables = frames_of(self.subjects)
        for form in self.correlated.forms if self.correlated else ():
            mean = Estimate(form.distribution.mean_h)
            _add(tables, "nodes", form, mean, self.outages.window_h)
        tables["observation"] = [{"fact": name, **of} for name, of in self.observation.items()]
        return tables


def fit_failures(
    outages: Outages, origin: str = "the log", *, n_job_nodes: int | None = None,
    age: Age | None = None, n_bootstrap: int = 199, cause: str | None = None,
) -> Fitted:  # fmt: skip
    """Fit everything that can be fitted to a log.

    Raises ParameterError for more nodes than the log has, or nothing that can be fitted.
    """
    n_job = n_job_nodes or outages.n_nodes
    nothing = "; ".join(["nothing can be fitted to this log", *outages.dropped])
    if not 1 <= n_job <= outages.n_nodes:
        raise ParameterError(
            f"a job of {n_job} nodes: the log has {outages.n_nodes} (a log says nothing of more "
            "nodes than were watched; --nodes says how many were)"
        )
    groups = failure_groups(outages)
    if len(groups) < 2:
        n = Note("merged", int(outages.in_window.sum()), "failure(s)")
        raise ParameterError(
            f"{nothing}: the log has {n}, at one instant; two instants at least are needed"
        )
    correlated, why_not = None, _why_not_fitted("uptimes", outages)
    try:
        if not why_not:  # before the times below fill the memory
            correlated = fit_correlated(outages.where(outages.placed))
    except (ParameterError, NotConvergedError) as error:
        why_not = str(error)
    subjects = {
        name: _subject(name, times(outages), n_bootstrap, outages)
        for name, times in (
            ("gaps", gaps), ("uptimes", partial(uptimes, age=age)), ("repairs", repair_times)
        )
    }  # fmt: skip
    if subjects["gaps"].ranking is None and subjects["uptimes"].ranking is None:
        raise ParameterError(f"{nothing}: {subjects['gaps'].why_not}")
    return Fitted(
        outages, observation(outages, age), origin, cause, n_job, **subjects, groups=groups,
        trend=trend(outages), correlated=correlated, why_not_correlated=why_not,
    )  # fmt: skip


def _reasons(outages: Outages, kind: str) -> str:
    """Notes that count rows, the largest first."""
    notes = [note for note in outages.notes if note.kind == kind and note.n]
    notes.sort(key=lambda note: -(note.n or 0))
    more = [f"{len(notes) - MOST_REASONS} more reasons"] if len(notes) > MOST_REASONS else []
    return "; ".join([*map(str, notes[:MOST_REASONS]), *more])


def _why_not_fitted(name: str, outages: Outages) -> str:
    """Why times are not fitted, as the log does not know much of them; empty: they are."""
    failures = outages.in_window & outages.chosen
    unknown, how = failures & ~outages.placed, "are of a node that is not known"
    if name == "gaps":
        return ""
    if name == "repairs":
        without_end = failures & outages.guessed
        unknown = without_end & (outages.end_h >= outages.window_h)
        how = "have no end and may last still: the repairs of the others are too short"
        if 2 * unknown.sum() <= without_end.sum():  # ends are missing, not open
            unknown = failures & outages.ended & (outages.down_h == 0)
            how = "end when they begin, by the log: the others are too long"
    n, n_unknown = int(failures.sum()), int(unknown.sum())
    return f"{n_unknown} of {n} failures {how}" if n_unknown > MUCH * n else ""


def _within(most_h: float, ranking: Ranking, *, alone: bool) -> Ranking:
    """With the families first whose mean is no longer; with these `alone`, or ParameterError."""
    within = tuple(fit for fit in ranking.judged if fit.mean.mean <= 1.001 * most_h)
    longer = tuple(fit for fit in ranking.judged if fit not in within)
    if not alone:
        return replace(ranking, judged=(*within, *longer))
    why = f"mean is longer than the log of {most_h:,.5g} h"
    if not within:
        raise ParameterError(f"each family's {why}")
    failed = [(fit.family, f"{fit.family}: its {why}") for fit in longer]
    return replace(ranking, judged=within, failed=(*ranking.failed, *failed))


def _subject(name: str, lifetimes: Lifetimes, n_bootstrap: int, outages: Outages) -> FittedQuantity:
    ranking, why_not = None, _why_not_fitted(name, outages)
    if why_not and lifetimes.n_observed > 0:
        return FittedQuantity(name=name, lifetimes=lifetimes, ranking=None, why_not=why_not)
    try:
        ranking = rank(lifetimes, n_bootstrap=n_bootstrap)
        is_repair = name == "repairs"
        most_h = outages.window_h if is_repair else lifetimes.total_h
        ranking = _within(most_h, ranking, alone=is_repair)
    except ParameterError as error:
        ranking = None
        zeros = f" ({lifetimes.n_zero} of zero length)" if lifetimes.n_zero else ""
        why_not = f"{error}{zeros}"
    return FittedQuantity(name=name, lifetimes=lifetimes, ranking=ranking, why_not=why_not)


def _warnings_of(subject: FittedQuantity) -> Iterable[str]:
    ranking, times = subject.ranking, subject.lifetimes
    if ranking is None:
        return
    if subject.name == "gaps" and times.n_observed < FEWEST_TO_TRUST:
        yield f"only {times.n_observed} gaps: the intervals are wide"
    if ranking.none_fits:
        yield f"{subject.name}: none fits, every family is rejected"
    if (nth := ranking.fitted_every) > 1:
        yield f"{subject.name}: fitted to every {nth}th of {times.n} times, for speed"
    if ranking.resampled_every > 1:
        n = times.n // (ranking.fitted_every * ranking.resampled_every)
        yield f"{subject.name}: p-values by {n} of the {times.n} times, for speed"


def _time(hours: float) -> str:
    if hours >= 10_000:
        return f"{hours / 8766:.3g} years"
    return f"{hours * 60:.3g} min" if hours < 1 else f"{float(f'{hours:.3g}'):,g} h"


def sentences(warnings: Iterable[str]) -> list[str]:
    """Each with a capital and a full stop."""
    return [f"{warning[:1].upper()}{warning[1:].rstrip('.')}." for warning in warnings]


# ------------------------------------------------------------------------------ rows of tables


def frames_of(subjects: Sequence[FittedQuantity]) -> dict[str, list[Row]]:
    """Kinds of times, the families fitted to each, and their parameters."""
    tables = {"times": [subject.row for subject in subjects]}
    tables |= {"families": list[Row](), "parameters": list[Row]()}
    for subject in subjects:
        for fit in subject.ranking.judged if subject.ranking else ():
            longest_h = subject.lifetimes.longest_h
            _add(tables, subject.name, fit, subject.mean_of(fit), longest_h)
    return tables


def _add(
    tables: dict[str, list[Row]], times: str, fit: Fit, mean: Estimate, longest_h: float
) -> None:
    """A family, and its parameters (times in hours)."""
    key = {"times": times, "family": fit.family}
    numbers = {name: getattr(fit, name) for name in FIT_MEASURES}
    tables["families"].append(key | numbers | {"extrapolated": fit.mean.mean > longest_h})
    for name, number in {**fit.by_name, "mean_h": mean}.items():
        row = key | {"parameter": name} | number.columns("value")
        tables["parameters"].append(
            row | {"standard_error": getattr(number, "standard_error", nan)}
        )
