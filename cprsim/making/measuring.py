"""What comes before a measurement: one run without failures, and a trainer of one's own tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cprsim.curves.trained_on import digests_of, option_files
from cprsim.measuring.expectation import Expected, expect
from cprsim.measuring.measure import MeasureRequest, MemoryOfForks, memory_of_forks
from cprsim.measuring.runs import own_setting, setting_of
from cprsim.measuring.trainer_check import TrainerCheck, check_trainer


def prepared(
    request: MeasureRequest, on_forks: Callable[[MemoryOfForks], object] = lambda memory: None
) -> tuple[MeasureRequest, Expected, TrainerCheck | None]:
    """Train once without failures.

    Raises CprsimError: the trainer does not do what the protocol says, or what it needs is not
    there.
    """
    kernel = request.kernel
    if kernel.trainer is None:
        built_in = setting_of(request.loaded, kernel.seed)
        known = replace(request, n_samples=built_in.trainer().n_samples)
        return known, expect(built_in), None
    setting, again = (own_setting(request.loaded, kernel.seed) for _ in range(2))
    on_forks(memory_of_forks(setting, request))
    tried = check_trainer(setting, again)
    expected = replace(tried.expected, noise=tried.auc_noise)
    described, n_samples = dict(setting.own.describe()), int(setting.own.n_samples)
    if files := digests_of(option_files(kernel.options)):
        described["files"] = files
    return replace(request, described=described, n_samples=n_samples), expected, tried
