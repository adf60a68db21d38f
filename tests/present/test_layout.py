"""Pages and the site in a real browser, on a telephone and on a screen."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from selenium.webdriver.support.expected_conditions import presence_of_element_located as present
from selenium.webdriver.support.ui import WebDriverWait

from cprsim.pages import document
from cprsim.pages.markdown import write_page
from tests.making import PATIENCE_S, SCENARIOS

TELEPHONE, SCREEN = 400, 1280  # pixels
ALL = "return [...document.querySelectorAll(arguments[0])]"


def beyond(browser: Any, width: int, blocks: str) -> list[int]:
    """How much of the page, and of blocks of it, is hidden beside what shows [pixels]."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    hidden = f"{ALL}.map((one) => one.scrollWidth - one.clientWidth)"
    return browser.execute_script(hidden, f"html, {blocks}")


def test_what_is_wider_than_a_page_scrolls_in_its_place_and_no_figure_is_too_small(
    browser: Any, tmp_path: Path
) -> None:
    table = document.Table("", [*"abcdefgh"], [["1,234,567.89"] * 8])
    picture = document.Picture("a figure", "nothing", lambda: Figure((13.2, 4)))
    section = document.Section("All", [document.ListingBlock("a file", "word " * 40), picture])
    whole = document.Document("Wide", "How wide?", ["Wide."], [section], table)
    [page] = write_page(whole, tmp_path / "page.html")
    browser.get(page.as_uri())
    for width, is_scrolled in ((TELEPHONE, True), (SCREEN, False)):
        hidden = beyond(browser, width, ".scroll, pre, .drawing")
        assert [pixels > 0 for pixels in hidden] == [False, *[is_scrolled] * 3]
        [scale] = browser.execute_script(f"{ALL}.map((one) => one.width / one.naturalWidth)", "img")
        assert 0.749 < scale < 1


@pytest.mark.long
def test_the_site_cuts_no_output_and_is_searched_from_a_disk(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("material")
    build = ["mkdocs", "build", "--strict", "--quiet", "-d", tmp_path]
    subprocess.run(build, cwd=SCENARIOS.parent, check=True)
    for page in sorted(tmp_path.rglob("*.html")):
        browser.get(page.as_uri())
        assert beyond(browser, TELEPHONE, "body")[0] == 0, page
        assert not any(beyond(browser, SCREEN, "pre > code")), page
    browser.find_element("css selector", ".md-search__input").send_keys("ETTR")
    WebDriverWait(browser, PATIENCE_S).until(present(("css selector", ".md-search-result__link")))
