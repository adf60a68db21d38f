"""`cprsim explore` in a real browser: its numbers, what it saves, its links; and who may see it."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

import cprsim
from cprsim.commands.explore.sliders import sliders_of
from cprsim.commands.options import source_of
from cprsim.results.words import with_interval
from tests.making import PATIENCE_S, PROGRAM, call

webdriver = pytest.importorskip("selenium.webdriver")
BROWSER = [shutil.which("chromium"), shutil.which("chromedriver")]
SAVE, MTBF, REPAIR = "costs.save", "failures.mtbf", "cluster.repair"


@contextmanager
def explored(*arguments: object) -> Iterator[str]:
    """Address of a page that is served."""
    command = [*PROGRAM, "explore", *map(str, arguments)]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as serving:
        try:
            yield re.search(r"http://\S+", serving.stderr.readline())[0]
        finally:
            serving.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if None in BROWSER:
        pytest.skip("no Chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER[0]
    for option in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1280,900"):
        options.add_argument(f"--{option}")
    with webdriver.Chrome(options, webdriver.ChromeService(BROWSER[1])) as driver:
        yield driver


class Screen:
    """The page, as somebody opens, reads and moves it."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser, self.find = browser, lambda css: browser.find_element("css selector", css)
        browser.get(address)
        self.wait()

    def wait(self) -> None:
        """Until all replications of the values of the moment are there, or their error."""
        begin, done = time.monotonic(), re.compile(r"[\d,]+ replications?|for the values before:")
        while not done.fullmatch(self.find("#state").text):
            assert time.monotonic() - begin < PATIENCE_S
            time.sleep(0.02)

    def field(self, key: str, kind: str = "text") -> Any:
        return self.find(f'[data-key="{key}"] [type={kind}]')

    def write(self, key: str, value: str) -> None:
        keys = webdriver.Keys
        self.field(key).send_keys(keys.CONTROL + "a" + keys.NULL + value + keys.TAB)
        self.wait()

    @property
    def state(self) -> tuple[dict[str, str], str]:
        """The overheads in the table of a run, and what is set."""
        tables = self.browser.find_elements("css selector", "#answer table")
        table = next(one for one in tables if one.text.startswith("small: "))
        rows = [row.find_elements("css selector", "th, td")
                for row in table.find_elements("css selector", "tbody tr")]  # fmt: skip
        return {row[0].text: row[2].text for row in rows}, self.browser.current_url


def overheads(*arguments: object) -> dict[str, str]:
    """What `cprsim run` has in that table."""
    shown, name = {}, "overhead_fraction"
    for row in json.loads(call("run", *arguments, "--json").stdout)["frames"]["strategies"]:
        half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
        shown[row["strategy"]] = with_interval(100 * row[name], 100 * half)
    return shown


@pytest.mark.long
def test_a_slider_moves_the_answer_of_run_and_the_state_opens_again(
    browser: Any, scenario: Path
) -> None:
    with explored(scenario) as address:
        screen = Screen(browser, address)
        assert screen.state[0] == overheads(scenario)
        screen.field(SAVE, "range").send_keys(30 * webdriver.Keys.ARROW_LEFT)
        screen.wait()
        moved = f"{SAVE}={screen.field(SAVE).get_attribute('value')}"
        (now, link), today = screen.state, overheads(scenario)
        assert now == overheads(scenario, "--set", moved) != today
        assert f"--set '{moved}'" in screen.find("#answer pre").text
        compared = screen.find("#answer table").text
        assert all(f"{name} {now[name]} % {today[name]} %" in compared for name in now)
        screen.write(MTBF, "soon")
        assert screen.find("#error").text.startswith(f"--set {MTBF}: {MTBF}: `soon` is not a time")
        screen.write(MTBF, "10 h")
        assert screen.state == (now, link)  # the page lives on
        cookie = f"{(one := browser.get_cookies()[0])['name']}={one['value']}"
        to_save = Request(screen.find("#save").get_attribute("href"), headers={"Cookie": cookie})
        saved = Path("saved.yaml")
        saved.write_bytes(urlopen(to_save).read())
        browser.switch_to.new_window("tab")
        assert Screen(browser, link).state == (now, link)
        shown = browser.get_log("browser")  # with what the rules for its content refuse
        assert [one for one in shown if "favicon" not in one["message"]] == []
    with explored(saved, "--set", f"{REPAIR}=2 h") as address:
        screen = Screen(browser, address)
        assert screen.field(REPAIR, "range").get_attribute("aria-valuetext") == "2 h"
        screen.find(f'[data-key="{REPAIR}"] button').click()
        screen.wait()
        assert screen.state[0] == now == overheads(saved)


def test_nobody_sees_the_page_without_its_token_or_from_another_address(scenario: Path) -> None:
    with explored(scenario) as address:
        parts = urlsplit(address)
        page = f"http://{parts.netloc}/"
        requests = [page, f"{page}answer?coarse=0&width=800", f"{page}?token=wrong",
                    Request(address, headers={"Host": "elsewhere.example"})]  # fmt: skip
        for request in requests:
            with pytest.raises(HTTPError) as refused, urlopen(request):
                pass
            assert refused.value.code == 403
        own = socket.gethostbyname(socket.gethostname())
        others = {own, "127.0.0.2", "::1"} - {parts.hostname}
        for other in others:
            with pytest.raises(OSError, match=r".*"), socket.create_connection((other, parts.port)):
                pass


def test_without_tornado_a_line_says_how_to_install_it(monkeypatch, scenario: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tornado.httpserver", None)
    called = call("explore", scenario)
    assert called.exit_code == 2
    assert called.stderr == "cprsim: Tornado is not installed: pip install 'cprsim[explore]'\n"


def test_each_number_of_a_scenario_has_a_slider_with_its_unit_and_a_range_that_it_takes() -> None:
    for name in ("quickstart", "planning", "llm"):
        loaded = source_of(name).read()
        sliders = sliders_of(loaded)
        assert {"failures.mtbf", "costs.reschedule", "recovery.full.interval"} <= sliders.keys()
        for key, one in sliders.items():
            assert one.low <= one.number <= one.high
            for end in (one.low, one.high):
                cprsim.load(name, {key: f"{end:g} {one.unit}" if one.unit else end})
    planned = sliders_of(source_of("planning").read())["failures.mtbf"]
    assert (planned.low, planned.high, planned.unit) == (10.0, 40.0, "h")  # of `unknown`
