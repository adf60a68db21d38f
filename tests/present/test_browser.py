"""Pages in a real browser without a network: errors, keyboard, accessibility, telephone, paper.

Needs Debian's Chromium, Playwright and axe-core; ``make browser`` installs them and makes a missing
one a failure instead of a skip.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.usefixtures("browser"),  # without one there is no need to make pages
]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE_MS = 240_000  # a busy machine is slow, not wrong
DESKTOP, PHONE, PAPER = (
    {"width": 1280, "height": 800},
    {"width": 360, "height": 740},
    {"width": 718, "height": 1000},  # A4 less margins, at 96 px to the inch
)


def needed(found, what):
    """What was found; else a skip, or a failure where somebody asked for this test by name."""
    if not found:
        reason = f"{what} is not installed: make browser"
        if os.environ.get("CPRSIM_BROWSER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    play = needed(sync_playwright, "Playwright")
    chromium = needed(shutil.which("chromium"), "Chromium")
    with play() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def axe():
    needed(AXE.is_file(), "axe-core")
    return AXE.read_text("utf-8")


@pytest.fixture
def opened(browser):
    """Open a page without a network; whatever it says on the console or asks for is an error."""

    @contextmanager
    def _opened(path, viewport=DESKTOP, **options):
        context = browser.new_context(viewport=viewport, offline=True, **options)
        context.set_default_timeout(PATIENCE_MS)
        complaints, asked = [], []

        def answer(route):
            asked.append(route.request.url)
            if route.request.url == path.as_uri():
                route.continue_()
            else:
                route.abort()

        context.route("**/*", answer)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(path.as_uri())
        yield page
        assert complaints == []
        assert asked == [path.as_uri()]
        context.close()

    return _opened


def focused(page, attribute):
    return page.evaluate(f"document.activeElement.getAttribute('{attribute}')")


def tab_to(page, selector, most=60):
    """Press Tab until what has the focus matches."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(f"document.activeElement.matches('{selector}')"):
            return
    raise AssertionError(f"{most} times Tab never came to {selector}")


# ------------------------------------------------------------------------------ by keyboard


def test_the_first_tab_leads_past_the_navigation(pages, opened):
    with opened(pages.one) as page:
        page.keyboard.press("Tab")
        assert focused(page, "class") == "skip"
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"


def test_arrow_keys_go_from_piece_to_piece_of_a_figure(pages, opened):
    with opened(pages.one) as page:
        readout = page.locator(".readout")
        before = readout.text_content()
        tab_to(page, ".mark")
        first = focused(page, "aria-label")
        page.keyboard.press("ArrowRight")
        second = focused(page, "aria-label")
        assert len({before, first, second}) == 3
        assert readout.text_content() == second
        page.keyboard.press("End")
        page.keyboard.press("ArrowDown")
        assert focused(page, "aria-label") == first
        assert page.locator('.wide .mark[aria-selected="true"]').count() == 1
        page.keyboard.press("Tab")  # the other pieces are no stops of their own
        assert focused(page, "class") != "mark"


def test_every_stop_of_the_tab_key_shows_where_it_is(pages, opened):
    with opened(pages.two) as page:
        unseen = []
        for _ in range(60):
            page.keyboard.press("Tab")
            look = page.evaluate(
                """() => {
                    const at = document.activeElement;
                    if (at === document.body) return null;
                    const inner = getComputedStyle(at.querySelector("path") ?? at);
                    const ring = getComputedStyle(at).outlineStyle !== "none";
                    const edge = at.matches(".mark") && parseFloat(inner.strokeWidth) >= 3;
                    return ring || edge ? "" : at.outerHTML.slice(0, 80);
                }"""
            )
            if look is None:
                break
            unseen += [look] if look else []
        assert unseen == []


def test_a_cause_is_singled_out_by_its_button(pages, opened):
    with opened(pages.one) as page:
        tab_to(page, 'button[data-group="lost"]')
        page.keyboard.press("Space")
        assert focused(page, "aria-pressed") == "true"
        bright = page.locator(".wide .mark:not(.dim)").all()
        assert {mark.get_attribute("data-group") for mark in bright} == {"lost"}
        assert page.locator(".wide .mark.dim").count() > 0
        page.keyboard.press("Space")
        assert focused(page, "aria-pressed") == "false"
        assert page.locator(".mark.dim").count() == 0


def test_the_percentile_is_moved_and_read_by_keyboard(pages, opened):
    with opened(pages.one) as page:
        texts = page.locator(".scale dd").all_text_contents()
        line = page.locator(".scale .wide .pointer")
        at_90 = line.bounding_box()["x"]
        tab_to(page, 'input[type="range"]')
        page.keyboard.press("Home")
        assert page.locator(".scale .chosen").first.text_content() == "1"
        assert page.locator(".scale dd").all_text_contents() != texts
        plot = page.locator(".scale .wide .plot-area").bounding_box()
        moved = (at_90 - line.bounding_box()["x"]) / plot["width"]
        assert moved == pytest.approx(0.89, abs=0.01)


def test_a_price_makes_node_hours_money(pages, opened):
    with opened(pages.one) as page:
        costs = page.locator(".price dd")
        once = float(costs.first.text_content().split()[0].replace(",", ""))
        tab_to(page, 'input[type="number"]')
        page.keyboard.type("00")  # after the 1 that stands there
        page.keyboard.press("End")
        value = float(page.locator('input[type="number"]').input_value())
        assert value in (0, 100)
        if value == 0:  # the focus had selected what stood there
            page.locator('input[type="number"]').fill("100")
        hundred = float(costs.first.text_content().split()[0].replace(",", ""))
        assert hundred == pytest.approx(100 * once, rel=0.01)
        page.locator('input[type="number"]').fill("")
        assert costs.first.text_content() == "a price is missing"


def test_a_pointer_reads_the_piece_under_it(pages, opened):
    with opened(pages.one) as page:
        mark = page.locator(".wide .mark").first
        mark.hover()
        assert page.locator(".readout").text_content() == mark.get_attribute("aria-label")
        mark.click()
        assert mark.get_attribute("aria-selected") == "true"


def test_every_entry_of_the_contents_leads_to_its_heading(pages, opened):
    with opened(pages.two) as page:
        for link in page.locator("nav a").all():
            link.click()
            target = page.locator(link.get_attribute("href"))
            assert target.text_content() == link.text_content()
            assert target.is_visible()


# ------------------------------------------------------------------------------ for everybody


@pytest.mark.parametrize(
    ("name", "viewport", "scheme", "media"),
    [
        ("one", DESKTOP, "light", "screen"),
        ("one", DESKTOP, "dark", "screen"),
        ("one", PHONE, "light", "screen"),
        ("one", PAPER, "light", "print"),
        ("two", DESKTOP, "light", "screen"),
        ("two", PHONE, "dark", "screen"),
        ("paper", DESKTOP, "light", "screen"),
        ("sweep", PHONE, "light", "screen"),
        ("selection", DESKTOP, "dark", "screen"),
        ("selection", PHONE, "light", "screen"),
        ("curve", PHONE, "light", "screen"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value["width"]),
)
def test_axe_finds_no_violation(pages, opened, axe, name, viewport, scheme, media):
    with opened(getattr(pages, name), viewport, color_scheme=scheme) as page:
        page.emulate_media(media=media)
        page.evaluate(axe)
        found = page.evaluate("axe.run()")
        assert found["passes"]
        assert [
            (rule["id"], [node["html"][:200] for node in rule["nodes"]])
            for rule in found["violations"]
        ] == []


def test_a_phone_shows_the_answer_first_and_scrolls_one_way_only(pages, opened):
    with opened(pages.one, PHONE, has_touch=True, is_mobile=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        answer = page.locator(".answer p").first.bounding_box()
        assert answer["y"] + answer["height"] < PHONE["height"]
        smallest = page.evaluate(
            """() => Math.min(...[...document.querySelectorAll(".narrow svg text")].map((text) =>
                parseFloat(getComputedStyle(text).fontSize)
                * Math.hypot(text.getCTM().a, text.getCTM().b)))"""
        )
        assert smallest >= 8
        assert not page.locator(".wide").first.is_visible()


def test_without_scripts_everything_is_there_and_nothing_pretends_to_work(pages, opened):
    with opened(pages.one, java_script_enabled=False) as page:
        assert page.locator("table").first.is_visible()
        assert page.locator(".wide svg").first.is_visible()
        assert not page.locator(".controls").first.is_visible()


def test_on_paper_nothing_is_cut_off_and_no_control_is_left(pages, opened):
    with opened(pages.one, PAPER) as page:
        page.emulate_media(media="print")
        cut = page.evaluate(
            """() => [...document.querySelectorAll("table, svg, pre, dl")].filter((one) =>
                one.getBoundingClientRect().right > innerWidth + 1)
                .map((one) => one.outerHTML.slice(0, 80))"""
        )
        assert cut == []
        assert not page.locator(".controls").first.is_visible()
        assert page.pdf(format="A4").startswith(b"%PDF")


def test_motion_is_left_out_where_it_is_not_wanted(pages, opened):
    look = "getComputedStyle(document.querySelector('.mark')).transitionDuration"
    with opened(pages.one, reduced_motion="reduce") as page:
        assert page.evaluate(look) == "0s"
    with opened(pages.one, reduced_motion="no-preference") as page:
        assert page.evaluate(look) != "0s"
