"""What ``cprsim measure`` says before it measures: how good the stand-in is, what will be known."""

from __future__ import annotations

from cprsim.measuring.expectation import FEW_CLICKS, Expected
from cprsim.measuring.measure import MemoryOfForks
from cprsim.measuring.trainer_check import TrainerCheck
from cprsim.staleness import FEWEST_SEEDS_TO_USE


def expectation(expected: Expected, n_seeds: int | None, precision: float) -> list[str]:
    """The model beside its baselines, the test, and the precision to come.

    Parameters
    ----------
    n_seeds : that were asked for; None: as many as `precision` takes
    """
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
    said = f"The trainer without failures: AUC {one.auc:.4f}, log-loss {one.log_loss:.5f}."
    if one.n_test is None:
        return f"{said} It reports its metrics itself: how many samples test it is not known."
    return (
        f"{said} Beside it: the base rate, {one.base_rate_auc:.3f} and "
        f"{one.base_rate_log_loss:.4f}. The evaluation set has {one.n_test:,} samples, "
        f"{one.n_test_clicks:,} of them clicks."
    )


def forks(memory: MemoryOfForks) -> str:
    """The memory that copies of the tables take."""
    said = (
        f"Forks: each seed follows {memory.n_copies - 1} ways of saving, a copy of the tables for "
        f"each, {memory.copy_bytes / 1e6:,.1f} MB: {memory.needed_bytes / 1e9:,.2f} GB in "
        f"{memory.n_workers} workers"
    )
    if not memory.spilled_bytes:
        return f"{said}."
    return (
        f"{said}, {memory.spilled_bytes / 1e9:,.2f} GB of it on disk: half of the memory is kept."
    )


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
