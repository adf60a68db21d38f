"""Results that a command makes again: the papers' beside ours, and those of the documents.

`STUDIES` lists them; `runner` makes one, or finds it.
"""

from __future__ import annotations

from cprsim.studies import (
    accuracy,
    failure_analysis,
    fig_overheads,
    fleet,
    pls_accuracy,
    production,
    production_loss,
    scalability,
    sensitivity,
    shadowsync,
    systems,
    trackers,
)
from cprsim.studies.study import Study

STUDIES: dict[str, Study] = {
    room.STUDY.name: room.STUDY
    for room in (
        failure_analysis, fleet, fig_overheads, accuracy, pls_accuracy, sensitivity, scalability,
        production, production_loss, trackers, shadowsync, systems,
    )
}  # fmt: skip
"""What can be reproduced, by name, in the order in which it is shown."""

__all__ = ["STUDIES", "Study"]
