"""Pages and the site in a real browser, on a telephone and on a screen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from selenium.webdriver.support.ui import WebDriverWait

from cprsim.pages.document import (
    Document,
    ListingBlock,
    Picture,
    Section,
    Table,
    number_columns,
)
from cprsim.pages.writing import write_page
from tests.making import PATIENCE_S

ROOT = Path(__file__).parents[2]
TELEPHONE, SCREEN = 400, 1280  # pixels
BEYOND = """
return [...document.querySelectorAll(arguments[0])].map((one) => one.scrollWidth - one.clientWidth)
"""
SCALE = "const one = document.querySelector('img'); return one.width / one.naturalWidth"


def look(browser: Any, page: Path, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())


def test_what_is_wider_than_a_page_scrolls_in_its_place_and_no_figure_is_too_small(
    browser: Any, tmp_path: Path
) -> None:
    table = Table("Numbers", number_columns(*"abcdefgh"), [["1,234,567.89"] * 8])
    text = ListingBlock("a file", "word " * 40)
    picture = Picture("a figure", "nothing", lambda: Figure((13.2, 4)))
    document = Document("Wide", "How wide?", ["Wide."], [Section("All", [text, picture])], table)
    [page] = write_page(document, tmp_path / "page.html")
    for width, is_scrolled in ((TELEPHONE, True), (SCREEN, False)):
        look(browser, page, width)
        page_beyond, *beyond = browser.execute_script(BEYOND, "html, .scroll, pre, .drawing")
        assert [over > 0 for over in beyond] == [is_scrolled] * 3
        assert page_beyond == 0
        assert 0.749 < browser.execute_script(SCALE) < 1


@pytest.mark.long
def test_the_site_cuts_no_output_and_is_searched_from_a_disk(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("material")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", tmp_path]
    subprocess.run(build, cwd=ROOT, check=True)
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 50
    for width in (TELEPHONE, SCREEN):
        for page in pages:
            look(browser, page, width)
            page_beyond, *beyond = browser.execute_script(BEYOND, "html, pre > code")
            assert page_beyond == 0, page
            assert width == TELEPHONE or not any(beyond), page
    look(browser, tmp_path / "start.html", SCREEN)
    browser.find_element("css selector", ".md-search__input").send_keys("ETTR")
    WebDriverWait(browser, PATIENCE_S).until(
        lambda _: browser.find_elements("css selector", ".md-search-result__link")
    )
