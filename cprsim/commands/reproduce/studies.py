"""Results of papers that a command reproduces, with ours and the verdicts."""

from __future__ import annotations

from typing import Any

from cprsim.commands.reproduce.study import CATALOGUE, Study
from cprsim.scenario.yaml_text import read_yaml

_catalogue: Any = read_yaml(CATALOGUE.read_text("utf-8"), CATALOGUE)[0]
STUDIES: dict[str, Study] = {name: Study.described(name, **of) for name, of in _catalogue.items()}
"""What can be reproduced, by name, in the order in which it is shown."""
