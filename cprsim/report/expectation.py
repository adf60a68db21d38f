"""What ``cprsim measure`` says before it measures: how good the stand-in is, what will be known."""

from __future__ import annotations

from cprsim.measuring.expectation import FEW_CLICKS, Expected
from cprsim.staleness import FEWEST_SEEDS_TO_USE


def expectation(expected: Expected, n_seeds: int | None, precision: float) -> list[str]:
    """The model beside its baselines, the test, and the precision to come.

    Parameters
    ----------
    n_seeds : that were asked for; None: as many as `precision` takes
    """
    one = expected
    return [
        f"The stand-in without failures: AUC {one.auc:.3f}, log-loss {one.log_loss:.4f}. Beside "
        f"it: the base rate, {one.base_rate_auc:.3f} and {one.base_rate_log_loss:.4f}; logistic "
        f"regression on the same clicks, {one.logistic_auc:.3f} and {one.logistic_log_loss:.4f}. "
        f"The test has {one.n_test:,} samples, {one.n_test_clicks:,} of them clicks.",
        _precision(one, n_seeds, precision),
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
    if expected.hardly_learned:
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
