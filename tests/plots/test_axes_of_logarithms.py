"""Labels of a logarithmic axis."""

from __future__ import annotations

from matplotlib.figure import Figure

from cprsim.pages.figures import MOST_TICK_LETTERS, log_scale


def test_long_labels_along_an_axis_leave_room_between_them() -> None:
    axes = Figure().subplots()
    axes.set_xlim(0.01, 1e5)
    log_scale(axes, "x")
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["0.01", "1", "100", "10,000"]
    assert len(labels) * max(map(len, labels)) <= MOST_TICK_LETTERS
