"""Names and values of users are drawn as they are written, wherever they stand in a figure."""

from io import BytesIO
from xml.etree import ElementTree

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

from cprsim.pages.figures import bytes_of, fold, style

NO_FORMULA = r"$x_{\alpha$"  # matplotlib ends in an error where it takes this for mathematics
NAMES = (NO_FORMULA, "$a$", r"\$b\$", "$", "a_b^c", "x$y$z")


def words(figure: Figure) -> set[str]:
    bytes_of(figure, "svg")  # spells out what no page shows
    file = BytesIO()
    with style(), rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    root = ElementTree.fromstring(file.getvalue())
    return {
        "".join(one.itertext()).strip() for one in root.iter("{http://www.w3.org/2000/svg}text")
    }


def everywhere(name: str) -> Figure:
    """A figure that says a name wherever one can stand."""
    with style():
        figure = Figure(figsize=(9, 7), layout="constrained")
        axes = figure.subplots()
        figure.suptitle(f"suptitle {name}")
        axes.set_title(f"title {name}")
        axes.set_ylabel(f"label {name}")
        axes.plot([0, 1], [1, 100], label=f"legend {name}")
        axes.set_xticks([0, 1], [fold(f"tick {name}", 99), "other"])
        axes.annotate(f"note {name}", (0.5, 10))
        axes.legend()
        figure.supxlabel(f"below {name}")
    return figure


@pytest.mark.parametrize("name", NAMES)
def test_every_text_of_a_figure_means_itself(name) -> None:
    said = words(everywhere(name))
    for place in ("suptitle", "title", "label", "legend", "tick", "note", "below"):
        assert f"{place} {name}" in said


def test_controls_are_spelled_out_so_that_an_svg_can_be_read() -> None:
    assert r"title \x1b[31m\u202eevil" in words(everywhere("\x1b[31m\u202eevil"))
