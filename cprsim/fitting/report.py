"""All that is said of a log of failures: fits, how often a job fails, contradictions, fragments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from math import exp, inf, isfinite, log, nan, sqrt
from typing import Any

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import Outages
from cprsim.fitting.causes import AGES_H, OfCause, by_cause, fragment_of_all
from cprsim.fitting.correlated_fit import CorrelatedFit, fit_correlated
from cprsim.fitting.correlation import (
    WEEK_H,
    WORST_FRACTION,
    Togetherness,
    concentration,
    dispersion,
    job_rate_per_h,
    togetherness,
    weekly_counts,
)
from cprsim.fitting.families import WEIBULL, fit
from cprsim.fitting.fragments import Fragment, failures_fragment, job_fragment
from cprsim.fitting.goodness import MOST_FITTED, Subject, rank
from cprsim.fitting.lifetimes import FirstUptime, Lifetimes, gaps, repair_times, uptimes
from cprsim.fitting.likelihood import Fit, NotConvergedError
from cprsim.fitting.observation import Observation, Source, node_hours, observation
from cprsim.fitting.trend import Trend, silences, trend
from cprsim.records import ROUNDED_Z_95, Estimate

FEW = 20  # gaps or failures
FEW_WEEKS = 8  # below, the bunching of failures can't be told
N_WORST = 3  # nodes that are named
WORTH_AIC = 10.0  # by how much unequal nodes have to be better to be asked for
WORTH_SAYING = 1.1  # factor between two estimates
Z99 = 2.807  # 1 % at two sides, for two numbers
FACTS = {
    "n_nodes": "how many nodes there are", "begins": "when it begins", "ends": "when it ends"
}  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True)
class Fitted:
    """What a log says of a job on some of its nodes."""

    outages: Outages
    observation: Observation
    origin: str  # the log's name
    n_job_nodes: int
    gaps: Subject
    uptimes: Subject
    repairs: Subject
    together: Togetherness
    trend: Trend
    correlated: CorrelatedFit | None
    why_not_correlated: str  # empty where there is a fit
    causes: tuple[OfCause, ...]  # where they were asked for, the one to fix first on top
    other_ages: Fit | None  # Weibull up-times with other ages at the beginning, if those are open
    first: FirstUptime

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return self.gaps, self.uptimes, self.repairs

    @property
    def n_failures(self) -> int:
        return len(self.outages.failed_at_h)

    @property
    def node_hours(self) -> float:
        """Hours that all nodes were observed together [h]."""
        return node_hours(self.outages)

    @property
    def job_share(self) -> float:
        """Share of the failures that strike the job."""
        return self.together.share_of_job(self.n_job_nodes, self.outages.n_nodes)

    @property
    def weekly_dispersion(self) -> float:
        """Variance over mean of the failures per week."""
        return dispersion(weekly_counts(self.outages.failed_at_h, self.outages.window_h))

    @property
    def failed_nodes(self) -> list[int]:
        """The node of each failure."""
        failures = self.outages.in_window & self.outages.chosen
        found: list[int] = self.outages.node[failures].tolist()
        return found

    @property
    def share_of_worst(self) -> float:
        """Share of the failures on the worst tenth of the nodes."""
        return concentration(self.failed_nodes, self.outages.n_nodes)

    @property
    def worst_nodes(self) -> dict[str, int]:
        """The nodes that fail most, with their failures; nothing where the log names no two."""
        names = self.outages.node_names
        counts = Counter(self.failed_nodes).most_common(N_WORST)
        return {names[node]: n for node, n in counts} if len(names) > 1 else {}

    @property
    def differ(self) -> bool:
        """Whether nodes differ by more than one distribution can say."""
        if self.correlated is None or self.outages.n_nodes < 2:
            return False
        aic = {form.name: form.aic for form in self.correlated.forms}
        return aic["alike"] - min(aic.values()) > WORTH_AIC

    @property
    def asks_for_correlation(self) -> bool:
        """Whether nodes differ, or failed together."""
        shocks = self.correlated is not None and self.correlated.shocks is not None
        return self.differ or (shocks and self.outages.n_nodes > 1)

    # ------------------------------------------------------------------ how often a job fails

    @property
    def wider(self) -> float:
        """Times the variance of a Poisson number that of the failures is; NaN if that is open."""
        known = isfinite(self.weekly_dispersion) and self.outages.window_h >= FEW_WEEKS * WEEK_H
        return max(self.weekly_dispersion, 1.0) if known else nan

    @property
    def mtbf_h(self) -> Estimate:
        """Of the events that strike the job while its nodes are there, allowing for bunching."""
        rate, n_events = job_rate_per_h(self.outages, self.n_job_nodes), len(self.together.sizes)
        mtbf_h = 1 / rate if rate > 0 else inf
        error = sqrt((self.wider if isfinite(self.wider) else 1.0) / n_events)
        low_h, high_h = (mtbf_h * exp(sign * ROUNDED_Z_95 * error) for sign in (-1, 1))
        return Estimate(mtbf_h, low_h, high_h, n_events)

    @property
    def answer(self) -> tuple[str, str]:
        """How often the job fails, and how sure that is."""
        mtbf, wider = self.mtbf_h, f"{self.wider:.2g}"
        bunching = f"allowing for failures that bunch ({wider} times a Poisson variance)"
        if wider in ("1", "nan"):
            bunching = "as if failures did not bunch"
        if wider == "nan":
            bunching += f", which a log under {FEW_WEEKS} weeks can't tell"
        return (
            f"A job on {self.n_job_nodes} of the {self.outages.n_nodes} nodes meets a failure "
            f"every {_time(mtbf.mean)} on average.",
            f"With 95 % it is between {_time(mtbf.low)} and {_time(mtbf.high)}, from "
            f"{'only ' if mtbf.n < FEW else ''}{mtbf.n} failures, {bunching}.",
        )

    @property
    def contradictions(self) -> list[str]:
        """What in the log contradicts one distribution."""
        none_fit = [one.name for one in self.subjects if one.ranking and one.ranking.none_fits]
        groups = self.together.larger
        found = {
            "the rate changes over the log": self.trend.differs,
            f"no family fits the {' and the '.join(none_fit)}": none_fit,
            f"nodes fail together ({len(groups)} times, up to {max(groups, default=0)} at once)":
                self.asks_for_correlation and len(groups),
            f"nodes differ (the worst {WORST_FRACTION:.0%} have {self.share_of_worst:.1%} of the "
            "failures)": self.differ,
        }  # fmt: skip
        return [text for text, holds in found.items() if holds]

    @property
    def remarks(self) -> list[str]:
        """What contradicts the fit, what had to be inferred, the worst nodes, and warnings."""
        wrong = self.contradictions
        said = "Nothing in the log contradicts the fit."
        if wrong:
            said = f"What does not fit one distribution: {'; '.join(wrong)}."
        guessed = [
            text for name, text in FACTS.items()
            if getattr(self.observation, name).source is Source.INFERRED
        ]  # fmt: skip
        if guessed:
            listed = " and ".join([", ".join(guessed[:-1]), guessed[-1]][len(guessed) < 2 :])
            said += f" The log does not say {listed}: that is inferred from its failures alone."
        worst = ", ".join(f"{one_line(name, 40)} {n}" for name, n in self.worst_nodes.items())
        most = (
            [f"The worst nodes by count: {worst} of {self.n_failures} failures."] if worst else []
        )
        return [said, *most, *(f"{one[:1].upper()}{one[1:].rstrip('.')}." for one in self.warnings)]

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about, the most important first."""
        beyond = [
            f"{one.name}: the mean is extrapolated beyond {one.lifetimes.longest_h:,.6g} h, the "
            "longest time watched"
            for one in self.subjects
            if one.mean is not None and one.lifetimes.extrapolates(one.mean.mean)
        ]
        halves = (
            f"the first half of the log has {self.trend.first_half} failures, the second "
            f"{self.trend.second_half}; {self.trend.in_words()}; choose a period"
            if self.trend.differs else ""
        )  # fmt: skip
        of_subjects = [one for subject in self.subjects for one in _warnings_of(subject)]
        open_ages = _of_ages(self.first, self.uptimes, self.other_ages)
        found = [
            *beyond, halves, *silences(self.outages), *of_subjects, open_ages, *self.outages.notes
        ]  # fmt: skip
        return tuple(one for one in found if one)

    # ------------------------------------------------------------------ for a scenario

    @cached_property
    def _fragments(self) -> dict[str, Fragment | str]:
        """For what was asked for, and of kind job; or why there is none."""
        makers: dict[str, Callable[[Fitted], Fragment | None]] = {
            "asked": lambda fitted: fragment_of_all(fitted.causes)
            if fitted.causes else failures_fragment(fitted),
            "job": job_fragment,
        }  # fmt: skip
        found: dict[str, Fragment | str] = {}
        for name, make in makers.items():
            try:
                found[name] = make(self) or "no cause can be written"
            except ParameterError as error:
                found[name] = str(error)
        return found

    @property
    def fragment(self) -> Fragment | None:
        """The sections for what was asked for; None where there is nothing to write."""
        found = self._fragments["asked"]
        return None if isinstance(found, str) else found

    @property
    def why_no_fragment(self) -> str:
        found = self._fragments["asked"]
        return found if isinstance(found, str) else ""

    @property
    def job_fragment(self) -> Fragment | None:
        """Of kind job, where it can be written; else that for what was asked for."""
        found = self._fragments["job"]
        return self.fragment if isinstance(found, str) else found

    # ------------------------------------------------------------------ as tables

    @cached_property
    def frames(self) -> dict[str, list[Row]]:
        """All numbers, a row of each table as a mapping."""
        forms = self.correlated.forms if self.correlated else ()
        nodes = [
            ("nodes", one.family, {
                "log_likelihood": one.log_likelihood, "aic": one.aic,
                "extrapolated": one.lifetime.mean_h > self.outages.window_h,
            }, {**_named(one), "mean_h": Estimate(one.lifetime.mean_h)})
            for one in forms
        ]  # fmt: skip
        facts = [
            {"fact": name, **asdict(getattr(self.observation, name))} for name in (*FACTS, "ages")
        ]
        found = frames_of(self.subjects, nodes) | {"observation": facts}
        return found | ({"causes": [_cause(one) for one in self.causes]} if self.causes else {})


def fit_failures(
    outages: Outages, observed: Observation | None = None, origin: str = "the log", *,
    n_job_nodes: int | None = None, first: FirstUptime = FirstUptime.NEW, n_bootstrap: int = 199,
    seed: int = 0, causes: bool = False,
) -> Fitted:  # fmt: skip
    """Fit everything that can be fitted to a log, and to each of its causes where asked for.

    Raises ParameterError for more nodes than the log has, or nothing that can be fitted.
    """
    n_job, nothing = n_job_nodes or outages.n_nodes, "nothing can be fitted to this log"
    if not 1 <= n_job <= outages.n_nodes:
        raise ParameterError(
            f"a job of {n_job} nodes: the log has {outages.n_nodes} (a log says nothing of more "
            "nodes than were watched; --nodes says how many were)"
        )
    together = togetherness(outages)
    if len(together.sizes) < 2:
        raise ParameterError(
            f"{nothing}: its {int(outages.in_window.sum())} failure(s) all begin at the same "
            f"instant; two instants at least are needed"
        )
    observed = observed or observation(outages, first)
    times = {"gaps": gaps(outages), "uptimes": uptimes(outages, first)}
    times["repairs"] = repair_times(outages)
    subjects = {name: _subject(name, one, n_bootstrap, seed) for name, one in times.items()}
    if subjects["gaps"].ranking is None and subjects["uptimes"].ranking is None:
        raise ParameterError(f"{nothing}: {subjects['gaps'].why_not}")
    correlated, why_not = None, ""
    try:
        correlated = fit_correlated(outages)
    except (ParameterError, NotConvergedError) as error:
        why_not = str(error)

    def alone(chosen: Outages) -> Fragment | None:
        return fit_failures(
            chosen, observed, origin, n_job_nodes=n_job, n_bootstrap=0, seed=seed
        ).fragment

    return Fitted(
        outages, observed, origin, n_job, **subjects, together=together, trend=trend(outages),
        correlated=correlated, why_not_correlated=why_not,
        causes=by_cause(outages, n_job, first, alone) if causes else (),
        other_ages=_fit_with_other_ages(outages, observed, first), first=first,
    )  # fmt: skip


def _subject(name: str, lifetimes: Lifetimes, n_bootstrap: int, seed: int) -> Subject:
    ranking, why_not = None, ""
    try:
        ranking = rank(lifetimes, n_bootstrap=n_bootstrap, seed=seed)
    except ParameterError as error:
        zeros = f" ({lifetimes.n_zero} of zero length)" if lifetimes.n_zero else ""
        why_not = f"{error}{zeros}"
    return Subject(name=name, lifetimes=lifetimes, ranking=ranking, why_not=why_not)


def _warnings_of(subject: Subject) -> Iterable[str]:
    ranking, times = subject.ranking, subject.lifetimes
    if ranking is None:
        return
    if subject.name == "gaps" and times.n_observed < FEW:
        yield f"only {times.n_observed} gaps: the intervals are wide"
    if ranking.none_fits:
        yield f"{subject.name}: none fits, every family is rejected"
    if ranking.fitted_every > 1:
        nth = ranking.fitted_every
        yield f"{subject.name}: fitted to every {nth}th of {times.n} times, for speed"
    if ranking.resampled_every > 1:
        n = times.n // (ranking.fitted_every * ranking.resampled_every)
        yield f"{subject.name}: p-values by {n} of the {times.n} times, for speed"


def _fit_with_other_ages(outages: Outages, observed: Observation, first: FirstUptime) -> Fit | None:
    """Weibull up-times if the ages at the beginning are otherwise; None where they are known."""
    if observed.ages.source is not Source.INFERRED:
        return None
    other = FirstUptime.UNKNOWN if first is FirstUptime.NEW else FirstUptime.NEW
    try:
        return fit(WEIBULL, uptimes(outages, other).at_most(MOST_FITTED)[0])
    except (ParameterError, NotConvergedError):
        return None


def _of_ages(first: FirstUptime, of_uptimes: Subject, other: Fit | None) -> str:
    """A warning where the ages at the beginning are unknown, and matter.

    If both fits were right, the variance of their difference would be that of the less precise one
    less that of the other (Hausman 1978), here of the logarithms and for times of one node that may
    resemble each other.
    """
    judged = of_uptimes.ranking.judged if of_uptimes.ranking else ()
    mine = next((one.fit for one in judged if one.fit.family == WEIBULL.name), None)
    if other is None or mine is None:
        return ""
    new, unknown = (mine, other) if first is FirstUptime.NEW else (other, mine)
    for one, two in zip(new.parameters, unknown.parameters, strict=True):
        errors = [each.clustered_error / each.mean for each in (one, two)]
        open_by = Z99 * sqrt(abs(errors[1] ** 2 - errors[0] ** 2))
        if abs(log(two.mean / one.mean)) > max(open_by, log(WORTH_SAYING)):
            break
    else:
        return ""
    sentence = (
        f"shape {one.parameters[0].mean:.3g}, mean {one.mean.mean:.4g} h" for one in (new, unknown)
    )
    return (
        "the nodes' ages when the log begins are unknown, and matter: Weibull up-times have {} "
        "where nodes count as new, {} where their first up-times are left out; say which with "
        "--age new or --age unknown".format(*sentence)
    )


def _time(hours: float) -> str:
    if hours >= 10_000:
        return f"{hours / 8766:.3g} years"
    return f"{hours * 60:.3g} min" if hours < 1 else f"{hours:.3g} h"


# ------------------------------------------------------------------------------ rows of tables

Entry = tuple[str, str, Row, dict[str, Estimate]]
"""Kind of times, family, how well it fits, its parameters by name (times in hours)."""


def frames_of(subjects: Iterable[Subject], besides: Iterable[Entry] = ()) -> dict[str, list[Row]]:
    """Kinds of times, the families fitted to each, and their parameters."""
    subjects = list(subjects)
    families, parameters = [], []
    for kind, family, numbers, by_name in (
        *(entry for one in subjects for entry in _entries(one)), *besides
    ):  # fmt: skip
        families.append({"times": kind, "family": family, **numbers})
        parameters += [
            {"times": kind, "family": family, "parameter": name, **one.columns("value"),
             **{error: getattr(one, error, nan) for error in ("standard_error", "clustered_error")}}
            for name, one in by_name.items()
        ]  # fmt: skip
    times = [_times(one) for one in subjects]
    return {"times": times, "families": families, "parameters": parameters}


def _entries(one: Subject) -> Iterable[Entry]:
    """A fixed time where it is the choice, then the families fitted, the best by AIC first."""
    if (fixed := getattr(one, "fixed", None)) is not None:
        aic = one.fixed_aic  # type: ignore[attr-defined]
        yield one.name, "fixed", {"log_likelihood": 1 - aic / 2, "aic": aic}, {"time_h": fixed}
    for judged in one.ranking.judged if one.ranking else ():
        fit = judged.fit
        numbers = {
            "log_likelihood": fit.log_likelihood, "aic": fit.aic, "bic": fit.bic, "ks": judged.ks,
            "p_value": judged.p_value, "rmse_survival": judged.rmse_survival,
            "extrapolated": one.lifetimes.extrapolates(fit.mean.mean),
        }  # fmt: skip
        yield one.name, fit.family, numbers, {**_named(fit), "mean_h": one.mean_of(judged)}


def _named(fit: Fit) -> dict[str, Estimate]:
    return {one.name: one for one in fit.parameters}


def _times(one: Subject) -> Row:
    """One kind of times, with the family that describes it best."""
    times, best, none = one.lifetimes, one.best, Estimate(nan)
    return {
        "times": one.name,
        "n_observed": times.n_observed,
        "n_censored": times.n - times.n_observed,
        "n_zero": times.n_zero,
        "longest_h": times.longest_h,
        "hours_per_end": times.hours_per_end,
        "family": one.family,
        "p_value": best.p_value if best else nan,
        **(one.mean or none).columns("mean_h"),
        **((best.fit.spread if best else None) or none).columns("shape"),
        "none_fits": one.ranking.none_fits if one.ranking else None,
        "not_fitted": one.not_fitted,
        **one.more,
    }


def _cause(one: OfCause) -> Row:
    """A cause, the one to fix first on top."""
    numbers = (*one.uptimes.parameters, one.uptimes.mean) if one.uptimes else ()
    row: Row = {
        "cause": one.name,
        "n_failures": one.n_failures,
        **one.job_rate_per_h.columns("job_rate_per_h"),
        "mean_repair_h": one.mean_repair_h,
        "overhead_saved_fraction": one.saved,
        **{f"struck_within_{age_h:g}_h": one.incidence.at(age_h) for age_h in AGES_H},
    }
    for number in numbers:
        row |= number.columns(f"uptime_{number.name}")
    written = one.fragment
    return row | {
        "not_fitted": one.why_not,
        "fragment": f"# no fragment: {written}\n" if isinstance(written, str) else str(written),
    }
