"""What ``cprsim measure`` prints: the slope of each strategy, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from cprsim.measuring.checks import HOLDS_WITHIN, AdditivityVerdict, Checks, Difference, SeedMean
from cprsim.measuring.curve import FAILED_FRACTION, TYPICAL_INTERVAL, typical_loss, why_unfit
from cprsim.measuring.measure import Measured
from cprsim.measuring.runs import COUNTED_INTERVAL
from cprsim.present.terminal import plain_table, print_whole, say
from cprsim.results.words import with_ends
from cprsim.staleness import MORE_BYTES, WHOLE, Metric

PAPERS_CORRELATION = 0.88  # recalled: of accuracy loss and PLS
NAMES = {Metric.AUC: "AUC", Metric.LOG_LOSS: "log-loss"}


def print_measured(console: Console, measured: Measured) -> None:
    """The table, what was checked, and what it took."""
    checks = {metric: measured.checks(metric) for metric in measured.fitted}
    print_whole(console, _table(measured, checks))
    for sentence in [*sentences(measured, checks), fitness(why_unfit(measured))]:
        say(console, sentence)


def _table(measured: Measured, checks: dict[Metric, Checks]) -> Table:
    table = plain_table()
    table.add_column("strategy")
    for metric in checks:
        table.add_column(f"{NAMES[metric]} loss\nper PLS", justify="right")
        table.add_column("over that\nof partial", justify="right")
    table.add_column(f"bytes, T_save\n{COUNTED_INTERVAL:.0%} of run", justify="right")
    written = bytes_over_partial(measured)
    for strategy in measured.seen.strategies:
        cells = [cell for metric in checks for cell in _slope(measured, metric, strategy)]
        table.add_row(
            strategy, *cells, f"× {written[strategy]:.2f}" if strategy in written else "–"
        )
    return table


def _slope(measured: Measured, metric: Metric, strategy: str) -> tuple[str, str]:
    slopes = measured.fitted[metric].slopes
    half = slopes.half_width(slopes.standard_error(strategy))
    ratio = slopes.mean(strategy) / slopes.mean(WHOLE)
    return f"{slopes.mean(strategy):.4f} ± {half:.4f}", f"{ratio:.2f}"


def bytes_over_partial(measured: Measured) -> dict[str, float]:
    """Bytes that each strategy's saves wrote, over those of plain partial recovery."""
    twin = measured.results[0].twin
    assert twin is not None, "a measured seed is complete"
    written = {saving.strategy: n_bytes for saving, n_bytes in twin.bytes_written.items()}
    return {strategy: n_bytes / written[WHOLE] for strategy, n_bytes in written.items()}


def sentences(measured: Measured, checks: dict[Metric, Checks]) -> list[str]:
    """What has to be said with the numbers."""
    auc = checks[Metric.AUC]
    took = measured.effort(Metric.AUC)
    return [
        f"Slopes per weighted PLS: means over {len(measured.seen.seeds)} seeds, ± the half-width "
        "of the 95 % interval (Student's t), the weights being as fitted. The largest standard "
        f"error is {measured.widest:.0%} of plain partial recovery's slope. `{MORE_BYTES}`: the "
        "small tables are saved with every sub-save, at more bytes.",
        f"A failure of {FAILED_FRACTION:.1%} of the servers at any time, with saves every "
        f"{TYPICAL_INTERVAL:.0%} of the run, costs under plain partial recovery "
        f"{' and '.join(_typical(measured, metric) for metric in checks)}: that "
        "of the weights is in it.",
        f"Correlation of AUC loss with PLS under plain partial recovery: {_pm(auc.correlation)} "
        f"(paper, recalled: about {PAPERS_CORRELATION}), with weighted PLS "
        f"{_pm(auc.weighted_correlation)}; ± one standard error over seeds.",
        *(_ranking(metric, one) for metric, one in checks.items() if one.differences),
        *(_adding_up(metric, one) for metric, one in checks.items()),
        f"{took.n_runs} runs, {took.cpu_min:.1f} CPU minutes. A paired difference has 1/"
        f"{took.variance_ratio:.0f} of an unpaired one's variance: unpaired runs from scratch "
        f"would have to be {took.n_unpaired:,}.",
    ]


def _typical(measured: Measured, metric: Metric) -> str:
    lost = typical_loss(measured, metric)
    return f"{with_ends(lost.mean, *lost.interval())} of {NAMES[metric]}"


def _pm(estimate: SeedMean) -> str:
    return f"{estimate.mean:.3f} ± {estimate.standard_error:.3f}"


def _ranking(metric: Metric, checks: Checks) -> str:
    told = "; ".join(_difference(one) for one in checks.differences)
    return f"Paired differences of {NAMES[metric]} slopes (95 % interval): {told}."


def _difference(one: Difference) -> str:
    low = one.difference.mean - one.difference.half_width
    high = one.difference.mean + one.difference.half_width
    seen = "" if low > 0 or high < 0 else f", detectable {one.difference.detectable:.4f}"
    return f"{one.strategy} - {one.other} [{low:+.4f}, {high:+.4f}]{seen}"


def _adding_up(metric: Metric, checks: Checks) -> str:
    told = "; ".join(
        f"{one.strategy}, {one.n_failures} failures, PLS {one.pls:.2f}: "
        f"{_pm(one.measured_over_sum)} ({_pm(one.measured_over_predicted)}), {one.verdict.value}"
        for one in checks.adding_up
    )
    return (
        f"Histories of several failures, {NAMES[metric]} loss over the sum of their failures' (in "
        f"brackets: over what the curve says, as the other seeds bend it; ± one standard error), "
        f"and whether the curve holds to within {HOLDS_WITHIN:.0%}, by the 95 % interval: "
        f"{told or 'none were run'}. {_all_in_all(checks)}"
    )


def _all_in_all(checks: Checks) -> str:
    if checks.fails_from_pls is not None:
        return f"The curve does not hold from PLS {checks.fails_from_pls:.2f} on."
    unknown = [one for one in checks.adding_up if one.verdict is AdditivityVerdict.UNKNOWN]
    if not unknown and checks.adding_up:
        return f"The curve holds to within {HOLDS_WITHIN:.0%} at every PLS tried."
    return (
        f"Whether the curve holds to within {HOLDS_WITHIN:.0%} cannot be told for {len(unknown)} "
        f"of {len(checks.adding_up)} kinds: more seeds would tell."
    )


def fitness(unfit: Sequence[str]) -> str:
    """Whether the curve is fit for use, in one sentence."""
    if not unfit:
        return "The curve is fit for use."
    return f"NOT FIT FOR USE: {'; '.join(unfit)}. `cprsim select` refuses this curve."
