"""The page of a selection, from one made by hand: no simulation."""

from __future__ import annotations

import html

import pytest

from cprsim.present.html import render
from cprsim.present.kinds import page_of
from tests.present.conftest import made_selection


@pytest.fixture
def folder(tmp_path):
    return made_selection(tmp_path)


def test_the_page_of_a_selection_says_what_to_run_and_what_there_was_to_choose(folder):
    page = page_of([folder])
    assert page.title == "What to run: small"
    text = html.unescape(render(page)).replace("\N{NO-BREAK SPACE}", " ")
    assert "Recommended: partial, saving every 5 h." in text
    for said in (
        "partial (recommended)",
        "2.25 ± 0.23",
        "no interval that is worth its saves keeps the limit",
        "partial, cpr",
        "name: small",
    ):
        assert said in text
    rows = [row for row in text.split("<tr>") if "partial, cpr" in row]
    assert ">no<" in rows[0]
