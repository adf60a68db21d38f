"""What ``cprsim measure`` says: before, what will be known; after, the slope of each strategy."""

from __future__ import annotations

from collections.abc import Sequence

from cprsim.measuring.checks import FAILS_BEYOND, Checks, SeedMean
from cprsim.measuring.curve import FAILED_FRACTION, TYPICAL_INTERVAL, typical_loss, why_unfit
from cprsim.measuring.expectation import FEW_CLICKS, Expected
from cprsim.measuring.measure import Measured, MemoryOfForks
from cprsim.measuring.power import PlannedSeeds
from cprsim.measuring.runs import COUNTED_INTERVAL
from cprsim.measuring.trainer_check import TrainerCheck
from cprsim.present.document import Block, Column, Table, Words
from cprsim.records import NO_NUMBER
from cprsim.results.words import with_ends
from cprsim.staleness import ALWAYS, FEWEST_SEEDS_TO_USE, WHOLE, Metric

PAPERS_CORRELATION = 0.88  # recalled: of accuracy loss and PLS

# ------------------------------------------------------------------------------ before it measures


def expectation(expected: Expected, n_seeds: int | None, precision: float) -> list[str]:
    """The model beside its baselines, the test, and the precision to come."""
    one = expected
    if one.logistic_auc is None or one.base_rate_log_loss is None:
        return [_of_own(one), _precision(one, n_seeds, precision)]
    return [
        f"The stand-in without failures: AUC {one.auc:.3f}, log-loss {one.log_loss:.4f}. Beside "
        f"it: the base rate, {one.base_rate_auc:.3f} and {one.base_rate_log_loss:.4f}; logistic "
        f"regression on the same clicks, {one.logistic_auc:.3f} and {one.logistic_log_loss:.4f}. "
        f"The test has {one.n_test:,} samples, {one.n_test_clicks:,} of them clicks.",
        _precision(one, n_seeds, precision),
    ]


def _of_own(one: Expected) -> str:
    """Of a trainer of one's own, which knows no baselines."""
    sentence = f"The trainer without failures: AUC {one.auc:.4f}, log-loss {one.log_loss:.5f}."
    if one.n_test is None:
        return f"{sentence} It reports its metrics itself: how many samples test it is not known."
    return (
        f"{sentence} Beside it: the base rate, {one.base_rate_auc:.3f} and "
        f"{one.base_rate_log_loss:.4f}. The evaluation set has {one.n_test:,} samples, "
        f"{one.n_test_clicks:,} of them clicks."
    )


def forks(memory: MemoryOfForks) -> str:
    """The memory that copies of the tables take."""
    sentence = (
        f"Forks: each seed follows {memory.n_copies - 1} ways of saving, a copy of the tables for "
        f"each, {memory.copy_bytes / 1e6:,.1f} MB: {memory.needed_bytes / 1e9:,.2f} GB in "
        f"{memory.n_workers} workers"
    )
    if not memory.spilled_bytes:
        return f"{sentence}."
    on_disk = f"{memory.spilled_bytes / 1e9:,.2f} GB of it on disk: half of the memory is kept"
    return f"{sentence}, {on_disk}."


def noise_warning(rehearsal: TrainerCheck, precision: float) -> list[str]:
    """What it costs that equal runs do not end equal; nothing where they do."""
    if rehearsal.repeats:
        return []
    noisy, quiet = rehearsal.seeds_for(precision)
    cost = (
        f"about {noisy} seeds instead of {quiet}"
        if noisy > quiet
        else f"no more than {quiet} seeds"
    )
    return [
        f"Warning: equal runs do not end equal: AUC differs by {rehearsal.auc_noise:.2g}, log-loss "
        f"by {rehearsal.log_loss_noise:.2g}. Every loss is off by as much: a precision of "
        f"{precision:.0%} takes {cost}. Deterministic algorithms and seeded loaders would help."
    ]


def seeds_to_run(found: PlannedSeeds, metric: Metric, limit: float, pilot: str) -> str:
    """How many seeds and runs tell a loss from nothing."""
    return (
        f"{found.n_seeds:,} seeds, {found.n_runs:,} runs: they tell a loss of {limit:g} of "
        f"{metric.label} (a failure of {FAILED_FRACTION:.1%} of the servers at any time) from "
        f"nothing with a probability of {found.power:.1%}, at a one-sided level of 95 %. Seeds "
        f"scatter by {found.spread:.2g}, as the {found.n_pilot} seeds of {pilot} say; a curve is "
        f"for use from {FEWEST_SEEDS_TO_USE} seeds."
    )


def _precision(one: Expected, n_seeds: int | None, precision: float) -> str:
    n = one.seeds_for(precision) if n_seeds is None else n_seeds
    asked = f"{n} seeds" if n_seeds is not None else f"About {n} seeds, as the precision asks,"
    enough = "" if n >= FEWEST_SEEDS_TO_USE else f" A curve is for use from {FEWEST_SEEDS_TO_USE}."
    return (
        f"To expect: {asked} will tell a predicted loss to about ± {one.half_width(n):.0%} (95 %), "
        "if seeds differ as in measurements so far (by a quarter) and noise falls with the root of "
        f"the test's clicks.{enough}"
    )


def expectation_warnings(expected: Expected) -> list[str]:
    """What speaks against measuring this at all."""
    warnings = []
    if expected.hardly_learned and expected.logistic_auc is None:
        warnings.append(
            f"Warning: the trainer has hardly learned: AUC {expected.auc:.3f}. Its losses say "
            "little of a model that has; its curve is not fit for use."
        )
    elif expected.hardly_learned:
        warnings.append(
            f"Warning: the stand-in has hardly learned: AUC {expected.auc:.3f}, where logistic "
            f"regression reaches {expected.logistic_auc:.3f} and guessing "
            f"{expected.base_rate_auc}. Its losses say little of a model that has. More "
            "`kernel.samples`, a higher `kernel.rate` or a smaller `kernel.batch` would help; its "
            "curve is not fit for use."
        )
    if expected.few_clicks:
        warnings.append(
            f"Warning: {expected.n_test_clicks:,} clicks in the test are few: below {FEW_CLICKS:,} "
            "single clicks move the AUC as much as stale shards do. More `kernel.samples` would "
            "help."
        )
    return warnings


# ------------------------------------------------------------------------------ what was measured


def measured_blocks(measured: Measured, of_lengths: Sequence[str] = ()) -> list[Block]:
    """What a terminal shows: the verdict, the table, and what was checked."""
    return [
        Words([fitness(why_unfit(measured))]),
        slopes_table(measured),
        Words([*sentences(measured), *of_lengths]),
    ]


def slopes_table(measured: Measured) -> Table:
    """A row per strategy: what a PLS costs under it, and the bytes that its saves write."""
    written = bytes_over_partial(measured)
    share = f"{COUNTED_INTERVAL:.0%} of run"
    columns = [Column("strategy", is_number=False)]
    metrics = list(measured.fitted)
    for metric in metrics:
        loss = metric.loss_label
        columns.append(Column(f"{loss} per PLS", brief=f"{loss}\nper PLS"))
        columns.append(Column("over that of partial", brief="over that\nof partial"))
    columns.append(Column(f"bytes, T_save {share}", brief=f"bytes, T_save\n{share}"))
    return Table(
        caption="Slopes per weighted PLS, ± the half-width of the 95 % interval",
        columns=columns,
        rows=[
            [
                strategy,
                *(
                    cell
                    for metric in measured.fitted
                    for cell in _slope(measured, metric, strategy)
                ),
                f"× {written[strategy]:.2f}" if strategy in written else NO_NUMBER,
            ]
            for strategy in measured.seen.strategies
        ],
    )


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


def sentences(measured: Measured) -> list[str]:
    """What has to be said with the numbers."""
    auc = measured.checks(Metric.AUC)
    n_runs = sum(len(one.quality) + 1 for one in measured.results)
    cpu_min = sum(one.cpu_s for one in measured.results) / 60
    return [
        f"A failure of {FAILED_FRACTION:.1%} of the servers at any time, with saves every "
        f"{TYPICAL_INTERVAL:.0%} of the run, costs under partial recovery "
        f"{' and '.join(_typical(measured, metric) for metric in measured.fitted)}.",
        *(_held_out(one, measured.checks(one)) for one in measured.fitted if one in ALWAYS),
        f"Correlation of AUC loss with PLS, single failures, partial: {_pm(auc.correlation)} "
        f"(paper, recalled: about {PAPERS_CORRELATION}).",
        f"{len(measured.seen.seeds)} seeds, {n_runs:,} runs, {cpu_min:.1f} CPU minutes.",
    ]


def _typical(measured: Measured, metric: Metric) -> str:
    lost = typical_loss(measured, metric)
    return f"{with_ends(lost.mean, *lost.interval())} of {metric.label}"


def _pm(estimate: SeedMean) -> str:
    return f"{estimate.mean:.2f} ± {estimate.standard_error:.2f}"


def _held_out(metric: Metric, checks: Checks) -> str:
    """How well runs are predicted that took no part in the fit."""
    kinds = "; ".join(
        f"{one.strategy}, {one.n_failures} failures: {_pm(one.ratio)} ({one.verdict.value})"
        for one in checks.held_out
    )
    return (
        f"Runs held out of the fit, measured over predicted {metric.loss_label} "
        f"(± standard error; holds: not surely off by {FAILS_BEYOND:.0%}, and told from none and "
        "from twice as much): "
        f"{kinds or 'none were run'}."
    )


def fitness(unfit: Sequence[str]) -> str:
    """Whether the curve is fit for use, in one sentence."""
    if not unfit:
        return "The curve is fit for use."
    return f"NOT FIT FOR USE: {'; '.join(unfit)}. `cprsim select` refuses this curve."
