"""Names of `cprsim.api.scenario` that older modules ask for here; goes with them."""

from cprsim.api.parameters import Overrides as Overrides
from cprsim.api.parameters import ScenarioLike as ScenarioLike
from cprsim.api.scenario import NamedScenario as NamedScenario
from cprsim.api.scenario import Scenario as Scenario
from cprsim.api.scenario import assignments
from cprsim.api.scenario import load as load
from cprsim.api.scenario import source_of as source_of

override_texts = assignments
