"""A page as Markdown: every number of the tables, nothing that users write is markup, figures."""

import re

import pytest
from matplotlib.figure import Figure

from cprsim.pages.document import (
    Document,
    Picture,
    Section,
    Table,
    Words,
)
from cprsim.pages.markdown import render, write_page

PICTURE = Picture("Bars", "what they show", lambda: Figure((1, 1)))


def page(*blocks) -> Document:
    return Document("t", "Why?", ["So."], [Section("Part", blocks)])


def markdown(*blocks) -> str:
    return render(page(*blocks), lambda picture: "figure.png")


def test_title_question_answer_and_sections_come_in_order() -> None:
    table = Table("Costs", ["name", "cost, h"], [["a|b", "1.0 ± 0.1"]])
    part = "First.\n\nCosts\n\n| name | cost, h |\n| --- | ---: |\n| a\\|b | 1.0 ± 0.1 |\n"
    assert markdown(Words(["First."]), table) == f"# t\n\n*Why?*\n\nSo.\n\n## Part\n\n{part}"


@pytest.mark.parametrize(
    ("written", "escaped"),
    [
        ("<img src=x>", "\\<img src=x\\>"),
        ("*bold* `code` [link](x)", "\\*bold\\* \\`code\\` \\[link\\](x)"),
        ("_so_ but save_interval", "\\_so\\_ but save_interval"),
        ("$5 &amp; more", "\\$5 \\&amp; more"),
        ("# 1. - + a", "\\# 1. - + a"),
        ("1. a", "1\\. a"),
        ("two\nlines", "two lines"),
        ("\x1b[2J", "\\x1b\\[2J"),
    ],
)
def test_nothing_in_a_text_is_markup(written, escaped) -> None:
    assert f"## Part\n\n{escaped}\n" in markdown(Words([written]))


def test_figures_lie_beside_the_text_that_links_to_them(tmp_path) -> None:
    path = tmp_path / "my report.md"
    written = write_page(page(PICTURE, PICTURE), path)
    assert written == [path, tmp_path / "my report_files"]
    links = re.findall(r"!\[what they show\]\((.*?)\)", path.read_text("utf-8"))
    assert links == [f"my%20report_files/figure-{n}.png" for n in (1, 2)]
    assert sorted(p.name for p in written[1].iterdir()) == ["figure-1.png", "figure-2.png"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my report.md", "my report_files"]
