"""What `cprsim train` trains where the scenario names a trainer of the user's own."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.measuring.plugged import PluggedSetting
from cprsim.measuring.runs import own_setting
from cprsim.scenario.reading import LoadedScenario


@dataclass(frozen=True, slots=True)
class OwnModel:
    """What is trained: a model of the user's own."""

    named: str
    n_samples: int
    teacher: None = None
    n_skipped: int = 0

    def __str__(self) -> str:
        return f"{self.named}, trained on {self.n_samples:,} samples"

    @property
    def measured_on(self) -> str:
        """What accuracy was measured on, in words."""
        return f"a trainer of your own: {self}"


def own_model(loaded: LoadedScenario) -> tuple[OwnModel, PluggedSetting]:
    """The trainer that the scenario names, made. Raises ScenarioError where it can't be."""
    kernel = loaded.scenario.kernel
    assert kernel is not None
    setting = own_setting(loaded, kernel.seed)
    return OwnModel(str(kernel.trainer), setting.trainer().n_samples), setting
