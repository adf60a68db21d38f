"""Results that a command makes again: the papers' beside ours, and those of the documents.

`STUDIES` lists them; `runner` makes one, or finds it.
"""

from __future__ import annotations

from cprsim.reproduce import (
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
from cprsim.reproduce.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        failure_analysis.STUDY,
        fleet.STUDY,
        fig_overheads.STUDY,
        accuracy.STUDY,
        pls_accuracy.STUDY,
        sensitivity.STUDY,
        scalability.STUDY,
        production.STUDY,
        production_loss.STUDY,
        trackers.STUDY,
        shadowsync.STUDY,
        systems.STUDY,
    )
}
"""What can be reproduced, by name, in the order in which it is shown."""

__all__ = ["STUDIES", "Study"]
