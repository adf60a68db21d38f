"""`cprsim explore` in a real browser: its numbers, what it saves, its links; and who may see it."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.support.ui import WebDriverWait

import cprsim
from cprsim.commands.explore.page import sliders_of
from cprsim.commands.options import source_of
from cprsim.results.words import with_interval
from tests.making import PATIENCE_S, PROGRAM, call

ALL = Keys.CONTROL + "a" + Keys.NULL
SAVE, MTBF, REPAIR = "costs.save", "failures.mtbf", "cluster.repair"


@contextmanager
def explored(*arguments: object) -> Iterator[str]:
    """Address of a page that is served."""
    run = [*PROGRAM, "explore", *map(str, arguments)]
    with subprocess.Popen(run, stderr=subprocess.PIPE, text=True) as serving:
        try:
            yield re.search(r"http://\S+", serving.stderr.readline())[0]
        finally:
            serving.terminate()


class Screen:
    """The page, as somebody opens, reads and moves it."""

    def __init__(self, browser: Any, address: str) -> None:
        self.browser, self.find = browser, lambda css: browser.find_element("css selector", css)
        browser.get(address)
        self.wait()

    def wait(self) -> None:
        """Until all replications of the values of the moment are there, or their error."""
        done = re.compile(r"[\d,]+ replications?|for the values before:").fullmatch
        WebDriverWait(self.browser, PATIENCE_S, 0.02).until(
            lambda _: done(self.find("#state").text)
        )

    def send(self, key: str, typed: str, kind: str = "text") -> str:
        self.find(f'[data-key="{key}"] [type={kind}]').send_keys(typed)
        self.wait()
        return self.find(f'[data-key="{key}"] [type=text]').get_attribute("value")

    @property
    def state(self) -> tuple[dict[str, str], str]:
        """The overheads in the table of a run, and the link."""
        table = "//table[starts-with(normalize-space(caption), 'small: ')]/tbody/tr"
        rows = self.browser.find_elements("xpath", table)
        cells = [[cell.text for cell in row.find_elements("xpath", "*")] for row in rows]
        return {name: overhead for name, _, overhead, *_ in cells}, self.browser.current_url


def overheads(*arguments: object) -> dict[str, str]:
    """What `cprsim run` has in that table."""
    shown, name = {}, "overhead_fraction"
    for row in json.loads(call("run", *arguments, "--json").stdout)["frames"]["strategies"]:
        half = (row[f"{name}_high"] - row[f"{name}_low"]) / 2
        shown[row["strategy"]] = with_interval(100 * row[name], 100 * half)
    return shown


@pytest.mark.long
def test_its_answer_is_that_of_run_and_its_state_opens_again(browser: Any, scenario: Path) -> None:
    with explored(scenario) as address:
        screen, today, saved = Screen(browser, address), overheads(scenario), Path("saved.yaml")
        assert screen.state[0] == today
        moved = f"{SAVE}={screen.send(SAVE, 30 * Keys.ARROW_LEFT, 'range')}"
        now, link = screen.state
        assert now == overheads(scenario, "--set", moved) != today
        assert f"--set '{moved}'" in screen.find("#answer pre").text
        compared = screen.find("#answer table").text
        assert all(f"{name} {now[name]} % {today[name]} %" in compared for name in now)
        screen.send(MTBF, f"{ALL}soon{Keys.TAB}")
        assert screen.find("#error").text.startswith(f"--set {MTBF}: `soon` is not a time")
        assert "soon" not in screen.find("#save").get_attribute("href")
        screen.send(MTBF, f"{ALL}10 h{Keys.TAB}")
        assert screen.state == (now, link)  # the page lives on
        fetched = "return fetch(document.querySelector('#save').href).then((file) => file.text())"
        saved.write_text(browser.execute_script(fetched), "utf-8")
        browser.switch_to.new_window("tab")
        assert Screen(browser, link).state == (now, link)
        assert [one for one in browser.get_log("browser") if "favicon" not in one["message"]] == []
    with explored(saved, "--set", f"{REPAIR}=2 h") as address:
        screen = Screen(browser, address)
        assert screen.send(REPAIR, Keys.ARROW_LEFT, "range") != "2 h"
        screen.find(f'[data-key="{REPAIR}"] button').click()  # leave it out
        screen.wait()
        assert screen.state[0] == now == overheads(saved)


def test_nobody_sees_the_page_without_its_token_or_from_another_address(scenario: Path) -> None:
    with explored(scenario) as address:
        page, port = address.partition("?")[0], int(re.search(r":(\d+)/", address)[1])
        elsewhere = Request(address, headers={"Host": "elsewhere.example"})
        for asked in (page, f"{page}answer?coarse=0&width=800", f"{page}?token=wrong", elsewhere):
            with pytest.raises(HTTPError, match="403") as refused:
                urlopen(asked)
            refused.value.close()
        for other in ("127.0.0.2", "::1"):  # what listens on all addresses takes both
            with pytest.raises(OSError, match=r"refused|assign|unreach"):
                socket.create_connection((other, port))


def test_without_tornado_a_line_says_how_to_install_it(monkeypatch, scenario: Path) -> None:
    monkeypatch.setitem(sys.modules, "tornado.httpserver", None)
    called = call("explore", scenario)
    assert called.exit_code == 2
    assert called.stderr == "cprsim: Tornado is not installed: pip install 'cprsim[explore]'\n"


def test_each_number_of_a_scenario_has_a_slider_with_its_unit_and_a_range_that_it_takes() -> None:
    for name in ("quickstart", "llm", "planning"):
        sliders = sliders_of(source_of(name).read())
        assert name != "llm" or sliders["cluster.spares"].low == 0
        assert {MTBF, "costs.reschedule", "recovery.full.interval"} <= sliders.keys()
        for key, one in sliders.items():
            assert one.low <= one.number <= one.high
            for end in (one.low, one.high):
                cprsim.load(name, {key: f"{end:g} {one.unit}" if one.unit else end})
    assert sliders[MTBF][4:8] == ("h", 20.0, 10.0, 40.0)  # of planning's section `unknown`
