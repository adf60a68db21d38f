"""Results of papers that a command makes again, ours beside theirs, judged."""

from __future__ import annotations

import yaml

from cprsim.studies.study import CATALOGUE, Study

STUDIES: dict[str, Study] = {
    name: Study.described(name, **described)
    for name, described in yaml.safe_load(CATALOGUE.read_text("utf-8")).items()
}
"""What can be reproduced, by name, in the order in which it is shown."""
