"""What ``cprsim fit`` says as a `Document`, for terminals and pages; ``cprsim presets``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, TypeVar

from cprsim.errors import CprsimError, ParameterError
from cprsim.estimate import NO_NUMBER, Estimate
from cprsim.failures.presets import PRESETS
from cprsim.fitting.apart import WHOLE, TakenApart
from cprsim.fitting.by_group import ByGroup, OfGroup
from cprsim.fitting.causes import AGES_H, RESTART_H, SAVE_H, OfCause
from cprsim.fitting.correlated_fit import FrailtyFit
from cprsim.fitting.correlation import WORST_FRACTION
from cprsim.fitting.families import Fit
from cprsim.fitting.fragments import fragment, job_fragment, nodes_of_job
from cprsim.fitting.goodness import P_REJECTED, Judged, Ranking
from cprsim.fitting.lifetimes import Lifetimes
from cprsim.fitting.posterior_check import Compared, check_by_simulation, check_through_window
from cprsim.fitting.random_rate import RandomRate
from cprsim.fitting.rates import (
    Rates,
    fragment_from_now,
    fragment_through_window,
    rates_and_factor,
)
from cprsim.fitting.since_last import Since
from cprsim.fitting.trace_fit import FitVerdict, Subject, TraceFit, verdict
from cprsim.fitting.trend import Trend
from cprsim.foreign import one_line
from cprsim.present.document import (
    Block,
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    Words,
    row_columns,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADINGS = {"gaps": "Gaps", "uptimes": "Up-times", "repairs": "Repairs"}
TITLES = {
    "gaps": "Gaps between failures of the cluster",
    "uptimes": "Up-times of the nodes",
    "repairs": "Repair times",
}


MONTH_H = 720.0  # of 30 days
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class FitReport:
    """A fit with what is made of it for the reader."""

    fitted: TraceFit
    n_job_nodes: int
    origin: str
    fragment: str | None
    why_no_fragment: str
    simpler: str | None  # kind job, where `fragment` is none
    circle: tuple[Compared, ...]
    why_no_circle: str  # empty where there is one, or none was asked for
    verdict: FitVerdict
    more: tuple[str, ...] = ()  # sentences that belong to the verdict
    apart: TakenApart = WHOLE
    rates: Rates | None = None
    why_no_rates: str = ""
    through_window: bool = False
    random: RandomRate | None = None  # what is random about the rate

    @classmethod
    def of(
        cls, fitted: TraceFit, origin: str, *, n_job_nodes: int | None, circle_seed: int | None,
        now: bool = False, through_window: bool = False, apart: TakenApart = WHOLE,
    ) -> FitReport:  # fmt: skip
        """Make the fragments, and close the circle.

        Parameters
        ----------
        fitted : the log
        origin : what it is called
        n_job_nodes : nodes of the job that the fragments are for; None for all of the log's
        circle_seed : of the simulation; None for no circle
        now : the fragment is for what comes after the log, where the rate changes
        through_window : fragment and circle have the rate as it changes along the log
        apart : the log by cause, group or domain
        """
        course, random, why_no_rates = _rates(fitted)
        n_job = nodes_of_job(n_job_nodes, fitted.outages.n_nodes)
        simpler = None
        if now or through_window:
            if now:
                written, why_no_fragment = _from_now(fitted, course, origin, n_job)
            else:
                written, why_no_fragment = _through_window(fitted, course, random, origin, n_job)
            why_no_fragment = why_no_rates or why_no_fragment
        else:
            written, why_no_fragment = _or_reason(lambda: fragment(fitted, origin, n_job_nodes))
            if fitted.asks_for_correlation:
                simpler, _ = _or_reason(lambda: job_fragment(fitted, origin, n_job_nodes))
            if course is not None and written is not None:
                written = "\n".join([*_not_in_it(course, random), written])
        circle, why_no_circle = _circle(
            fitted, circle_seed, course if through_window else None, random
        )
        verdicts = verdict(fitted, n_job)
        return cls(
            fitted, n_job, origin, written, why_no_fragment, simpler, circle, why_no_circle,
            verdicts, _now_sentences(fitted, course, n_job), apart, course, why_no_rates,
            through_window, random,
        )  # fmt: skip

    @property
    def text(self) -> str:
        """The fragment, or why there is none."""
        return self.fragment or f"# no fragment: {self.why_no_fragment}\n"

    @property
    def to_save(self) -> str | None:
        """What a file gets: the fragment of what was asked for; of groups, that of each."""
        if self.apart.causes:
            return self.apart.fragment_of_causes
        if self.apart.groups is not None:
            return "---\n".join(self.apart.groups.fragments)
        return self.fragment


WHOLE_WINDOW = (
    "# simulates the whole window of the log, whose rate changes, as if it did not; --now: what "
    "comes after it;\n# --through-window: the window with its rate as it changes"
)


WITHOUT_FACTOR = (
    "# simulates a rate without the random factor that this log has; --through-window: has it"
)


def _not_in_it(course: Rates, random: RandomRate | None) -> list[str]:
    """What the rate does and a fragment of the whole window does not."""
    wanders = random is not None and random.is_claimed
    return [*([WHOLE_WINDOW] if course.changes else []), *([WITHOUT_FACTOR] if wanders else [])]


def _rates(fitted: TraceFit) -> tuple[Rates | None, RandomRate | None, str]:
    found, why_not = _or_reason(lambda: rates_and_factor(fitted.outages))
    return (None, None, why_not) if found is None else (*found, "")


def _from_now(
    fitted: TraceFit, course: Rates | None, origin: str, n_job: int
) -> tuple[str | None, str]:
    if course is None:
        return None, ""
    written, why_not = _or_reason(
        lambda: fragment_from_now(fitted.outages, course, origin, n_job, fitted.observation)
    )
    return written, why_not and f"the last piece of the log alone: {why_not}"


def _through_window(
    fitted: TraceFit, course: Rates | None, random: RandomRate | None, origin: str, n_job: int
) -> tuple[str | None, str]:
    if course is None:
        return None, ""
    return _or_reason(lambda: fragment_through_window(fitted, course, origin, n_job, random))


def _now_sentences(fitted: TraceFit, course: Rates | None, n_job: int) -> tuple[str, ...]:
    if course is None or not course.changes:
        return ()
    share = fitted.together.share_of_job(n_job, fitted.outages.n_nodes)
    now, low, high = (1 / (rate * share) for rate in course.now_per_h.triple)
    return (
        f"The rate changes ({course.name}): where the log ends it is one every {now:.3g} h "
        f"[{high:.3g}, {low:.3g}], if it is constant, log-linear or in pieces.",
    )


def document_of_fit(report: FitReport) -> Document:
    """All that a log says: how often a job fails, what fits, and the section `failures`."""
    fitted = report.fitted
    return Document(
        title=f"Failures of {report.origin}",
        question=f"How often does a job on {report.n_job_nodes} nodes of this log fail, and how?",
        answer=[*report.verdict.sentences, *report.more],
        sections=[
            Section("The log", [Words(_of_log(fitted)), _failures_picture(fitted)]),
            *(Section(HEADINGS[one.name], _subject_blocks(one)) for one in fitted.subjects),
            Section(
                "What one distribution can't say",
                [Words([*_correlation_lines(fitted), _rate_line(report)])],
            ),
            Section("Simulated again", _circle_blocks(report)),
            Section("For the scenario", _fragment_blocks(report)),
            Section("Causes", _cause_blocks(report) if report.apart.causes else []),
            Section("Groups", _group_blocks(report.apart.groups) if report.apart.groups else []),
        ],
    )


def blocks_of_fit(report: FitReport) -> list[Block]:
    """The document on a terminal."""
    document = document_of_fit(report)
    return [Words([*document.answer, *_of_log(report.fitted)]), *document.blocks[1:]]


def _of_log(fitted: TraceFit) -> list[str]:
    return [*fitted.observation.lines(), *(f"note: {warning}" for warning in fitted.warnings)]


def _failures_picture(fitted: TraceFit) -> Picture:
    def draw() -> Figure:
        from cprsim.plots.fit import nodes_figure  # a terminal needs no matplotlib

        return nodes_figure(fitted)

    caption = "Each failure as a dot over time, a row for each node."
    return Picture("Failures over time", caption, draw)


def _fragment_blocks(report: FitReport) -> list[Block]:
    if report.simpler is None:
        return [ListingBlock("The section failures", report.text)]
    simpler = f"# or, simpler, without groups and lemons:\n{report.simpler}"
    return [ListingBlock("The section failures", report.text), ListingBlock("Simpler", simpler)]


def _circle(
    fitted: TraceFit,
    seed: int | None,
    course: Rates | None,
    random: RandomRate | None,
) -> tuple[tuple[Compared, ...], str]:
    """The log beside its simulation, or why it can't be simulated."""
    if seed is None:
        return (), ""
    if fitted.correlated is None:
        why_not = fitted.why_not_correlated
        return (), f"nodes that differ could not be fitted to this log: {why_not}"
    try:
        if course is not None:
            factor = None if random is None else random.factor
            found = check_through_window(fitted.outages, course.course, seed=seed, factor=factor)
            return found, ""
        return check_by_simulation(fitted.outages, fitted.correlated, seed=seed), ""
    except (CprsimError, ArithmeticError, ValueError) as error:
        return (), f"the fit can't be simulated: {error}"


def is_beyond(form: FrailtyFit, fitted: TraceFit) -> bool:
    """Whether the mean lies beyond what the log watched."""
    return form.lifetime.mean_h > fitted.outages.window_h


def preset_blocks() -> list[Block]:
    """The presets with their sources."""
    lines = []
    for one in PRESETS:
        shape = "" if one.shape is None else f", shape {one.shape:.3g}"
        lines += [
            f"{one.name}: {one.family}, mean {one.mean_h:.4g} h{shape}, per {one.of}",
            f"    {one.note} ({one.mark}; {one.source})",
        ]
    return [Words(lines)]


def _or_reason(make: Callable[[], M]) -> tuple[M | None, str]:
    """What is made, or why it can't be."""
    try:
        return make(), ""
    except ParameterError as error:
        return None, str(error)


def _subject_blocks(subject: Subject) -> list[Block]:
    times, ranking = subject.lifetimes, subject.ranking
    counted = (
        f"{TITLES[subject.name]}: {times.n_observed} ended, {times.n - times.n_observed} "
        f"censored, {times.n_zero} of zero left out"
    )
    if ranking is None:
        return [Words([counted, f"not fitted: {subject.why_not}"])]
    return [
        Words([counted]),
        Table(
            f"{TITLES[subject.name]}: families, the best by AIC first",
            row_columns("family", "log-lik.", "AIC", "BIC", "KS", "p", "RMSE"),
            [_cells(judged) for judged in ranking.judged],
        ),
        Words(_parameter_lines(times, ranking)),
        _subject_picture(subject),
    ]


def _subject_picture(subject: Subject) -> Picture:
    def draw() -> Figure:
        from cprsim.plots.fit import subject_figure

        return subject_figure(subject)

    shown = "Survival with the fitted families, hazard over age, and quantiles."
    return Picture(TITLES[subject.name], shown, draw)


def _parameter_lines(times: Lifetimes, ranking: Ranking) -> list[str]:
    """Parameters with their intervals, and what has to be known with them."""
    lines = []
    if ranking.none_fits:
        lines.append(
            f"none fits: every p is below {P_REJECTED:g}; the first is the least bad by AIC"
        )
    beyond = [times.extrapolates(judged.fit.mean.mean) for judged in ranking.judged]
    lines.append("with 95 % intervals, times in hours:")
    lines += [
        f"  {_parameters(judged)}{' (extrapolated)' if is_so else ''}"
        for judged, is_so in zip(ranking.judged, beyond, strict=True)
    ]
    if any(beyond):
        lines.append(
            f"extrapolated: beyond {times.longest_h:.6g} h, the longest time watched; what the "
            f"log supports is one end in {times.hours_per_end:.4g} h of watching"
        )
    return [*lines, *(reason for _, reason in ranking.failed)]


def _cells(judged: Judged) -> list[str]:
    """Family, log-likelihood, AIC, BIC, KS distance, p-value, RMSE of survival."""
    fit = judged.fit
    return [
        fit.family,
        f"{fit.log_likelihood:.1f}",
        f"{fit.aic:.1f}",
        f"{fit.bic:.1f}",
        f"{judged.ks:.3f}",
        f"{judged.p_value:.3f}" if isfinite(judged.p_value) else NO_NUMBER,
        f"{100 * judged.rmse_survival:.1f} %",
    ]


def _parameters(judged: Judged) -> str:
    return f"{judged.fit.family}: {_intervals(judged.fit)}"


def _intervals(fit: Fit) -> str:
    """Parameters and mean, each with its interval."""
    return ", ".join(f"{p.name} {_in_brackets(p, digits=4)}" for p in (*fit.parameters, fit.mean))


def _in_brackets(estimate: Estimate, factor: float = 1.0, *, digits: int = 3) -> str:
    """``1.23 [0.98, 1.55]``, in another unit by a factor."""
    mean, low, high = (f"{value * factor:.{digits}g}" for value in estimate.triple)
    return f"{mean} [{low}, {high}]"


def _correlation_lines(fitted: TraceFit) -> list[str]:
    drawn, larger = fitted.portrait, fitted.together.larger
    lines = [
        f"Together: {fitted.together.share_of_zero_gaps:.1%} of the gaps are zero; "
        f"{len(larger)} groups of more than one node, the largest of "
        f"{larger.max() if len(larger) else 1}",
        f"Per week: {_weekly(drawn.weekly_dispersion)}",
        f"Nodes: the worst {WORST_FRACTION:.0%} hold {drawn.concentration:.1%} of the failures",
        f"Halves of the log: {fitted.trend.first_half} and {fitted.trend.second_half} failures; "
        f"trend: {_trend(fitted.trend)}",
    ]
    if fitted.correlated is None:
        return [*lines, f"Weibull nodes: not fitted: {fitted.why_not_correlated}"]
    return [*lines, *(_form_line(form, fitted) for form in fitted.correlated.forms)]


def _rate_line(report: FitReport) -> str:
    if report.rates is None:
        return f"Rate over time: {report.why_no_rates}"
    besides = "" if report.random is None else f"; {report.random.in_words()}"
    return f"Rate over time: {report.rates.in_words()}{besides}"


def _form_line(form: FrailtyFit, fitted: TraceFit) -> str:
    numbers = "  ".join(f"{p.name} {_in_brackets(p)}" for p in form.parameters)
    beyond = ""
    if is_beyond(form, fitted):
        beyond = f" (extrapolated: mean {form.lifetime.mean_h:.3g} h)"
    return f"Weibull nodes, {form.name}: AIC {form.aic:.1f}  {numbers}{beyond}"


def _weekly(dispersion: float) -> str:
    if not isfinite(dispersion):
        return "nothing can be said of so short a log"
    return f"variance over mean {dispersion:.2f} (1 for Poisson)"


def _trend(trend: Trend) -> str:
    if not isfinite(trend.p_value):
        return "nothing can be said of so few failures"
    return (
        f"p {trend.p_value:.2g} (of a rise or fall {trend.p_laplace:.2g}, of three pieces "
        f"{trend.p_pieces:.2g})"
    )


def _circle_blocks(report: FitReport) -> list[Block]:
    """The log's statistics beside those of logs simulated from its fit."""
    if report.why_no_circle:
        return [Words([f"no circle: {report.why_no_circle}"])]
    if not report.circle:
        return []
    cause = report.fitted.observation.cause
    words = {
        "simulated: this cause alone, whose clocks no other cause's repair renews":
            cause is not None,
        "simulated: the rate as it changes along the log": report.through_window,
        "simulated: a random factor on the rate": report.through_window
            and report.random is not None and report.random.is_claimed,
    }  # fmt: skip
    return [
        Table(
            "The log beside logs simulated from its fit",
            row_columns("statistic", "log", "simulated", "95 % of them", "inside"),
            [_compared_cells(one) for one in report.circle],
        ),
        Words([text for text, is_so in words.items() if is_so]),
    ]


def _compared_cells(one: Compared) -> list[str]:
    mean, low, high = one.simulated.triple
    numbers = (f"{one.trace:.4g}", f"{mean:.4g}", f"{low:.4g} to {high:.4g}")
    inside = {True: "yes", False: "no", None: "can't be told"}[one.inside]
    return [one.name, *(number.replace("nan", NO_NUMBER) for number in numbers), inside]


# --------------------------------------------------------------------------- causes


def _cause_blocks(report: FitReport) -> list[Block]:
    """What each costs, its up-times, and the fragments."""
    first = f"Causes, for a job on {report.n_job_nodes} node(s), the one to fix first on top:"
    return [
        Words([first]),
        Table(
            "What each cause costs the job",
            row_columns(
                "cause", "failures", "of the job per 30 days", "repair [h]", "overhead saved"
            ),
            [_costs(one) for one in report.apart.causes],
        ),
        Words([
            "overhead saved: what full recovery with saves at Young's interval would cost less "
            f"without the cause; assumed: a save and a restart take {SAVE_H * 60:g} and "
            f"{RESTART_H * 60:g} min. With 95 % intervals, as if failures did not bunch.",
            "Up-times to each cause, the others censoring, and the share it strikes first:",
            *(f"  {_fit_line(one)}" for one in report.apart.causes),
        ]),
        ListingBlock("A source for each cause", report.apart.fragment_of_causes or "# no fragment"),
    ]  # fmt: skip


def _costs(one: OfCause) -> list[str]:
    repair = f"{one.mean_repair_h:.3g}" if isfinite(one.mean_repair_h) else NO_NUMBER
    rates = _in_brackets(one.job_rate_per_h, MONTH_H)
    return [one_line(one.name, 30), str(one.n_failures), rates, repair, f"{one.saved:.2%}"]


def _fit_line(one: OfCause) -> str:
    shares = ", ".join(f"{one.incidence.at(age_h):.2%} by {age_h / 24:g} d" for age_h in AGES_H)
    if one.uptimes is None:
        return f"{one_line(one.name)}: not fitted: {one.why_not}; {shares}"
    return f"{one_line(one.name)}: weibull: {_intervals(one.uptimes)}; {shares}"


# --------------------------------------------------------------------------------------- groups


def _group_blocks(found: ByGroup) -> list[Block]:
    """A row for each group, and its fragment."""
    first = found.groups[0].name
    apart = f" {found.n_nodes_apart} node(s) of no known group are left out."
    return [
        Table(
            f"Groups by {one_line(found.column)}",
            row_columns(
                "group", "nodes", "failures", "per node and 30 days", "shape of up-times",
                "ratio of hazards",
            ),
            [_group_cells(one) for one in found.groups],
        ),
        Words([
            f"ratio of hazards: over that of {one_line(first)}, of nodes of the same age (Cox), "
            "with 95 % intervals that let up-times of one node resemble each other."
            + (apart if found.n_nodes_apart else ""),
            *(f"{one_line(one.name)}: not fitted: {one.why_not}"
              for one in found.groups if one.uptimes is None),
        ]),
        *(ListingBlock(f"The nodes of {one_line(one.name)}", text)
          for one, text in zip(found.groups, found.fragments, strict=True)),
    ]  # fmt: skip


def _group_cells(one: OfGroup) -> list[str]:
    ratio = NO_NUMBER if one.ratio is None else _in_brackets(one.ratio)
    shape = NO_NUMBER if one.uptimes is None else _in_brackets(one.uptimes.parameters[0])
    rate = _in_brackets(one.rate_per_h, MONTH_H)
    return [one_line(one.name, 30), str(one.n_nodes), str(one.n_failures), rate, shape, ratio]


def since_sentences(since: Since) -> list[str]:
    """What has changed, in words."""
    one = since.plain
    best = since.allowing or one
    verb = "has changed" if best.is_change else "has not visibly changed"
    return [
        f"Since {since.before.ends} the rate of failures {verb}: {one.n_since} in "
        f"{one.since_h:.4g} node-hours against {one.n_before} in {one.before_h:.4g}, "
        f"{one.ratio.mean:.3g} times the rate "
        f"[{best.ratio.low:.3g}, {best.ratio.high:.3g}], p {best.p_value:.2g}"
        + (f" (bunching of {since.dispersion:.2g} allowed for; p {one.p_value:.2g} without)."
           if since.allowing else "."),
        f"A doubled rate would have been noticed with a probability of {best.power_of_doubling:.0%}"
        + (f"; 80 % is reached from {best.least_noticed:.3g} times on."
           if isfinite(best.least_noticed) else "; no rate up to 100 times reaches 80 %."),
    ]  # fmt: skip
