"""Results that a command makes again: the papers' beside ours, and those of the documents.

`STUDIES` lists them; `runner` makes one, or finds it; `rendering` tells it.
"""

from __future__ import annotations

from cprsim.reproduce import distribution, fig_overheads, production, shadowsync
from cprsim.reproduce.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        fig_overheads.STUDY,
        production.STUDY,
        distribution.STUDY,
        shadowsync.STUDY,
    )
}
"""What can be reproduced, by name, in the order in which it is shown."""

__all__ = ["STUDIES", "Study"]
