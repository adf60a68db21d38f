"""The input on which an answer turns: found, with the values that closed forms give."""

from dataclasses import replace
from pathlib import Path

import pytest

import cprsim
from cprsim.pages.recommendation import turns_on
from cprsim.results.unknown import WITHOUT, Assumption, break_evens_of, decisive_assumption
from cprsim.scenario.reading import load_scenario
from tests.making import call

TEXT = """\
name: turning
job: {useful: 200 h, horizon: 1000 h}
cluster: {workers: 8}
failures: {kind: job, family: exponential, mtbf: 10 h, role: worker}  # MTBF
scopes:
  - {name: node, share: 0.9, reach: node}
  - name: all
    share: 0.1  # ALL
    reach: all
    detect: 5 h
costs:
  save: 1 min
  load: 1 min
  detect: 1 s  # assumed; hardly matters
recovery:
  - {strategy: full, interval: 30 min}
  - {strategy: none}
  - {strategy: full, name: hourly, interval: 1 h}
simulation: {seed: 1, replications: 400}
"""


def decisive(text: str, **able: tuple[str, ...]) -> Assumption | None:
    return decisive_assumption(load_scenario("turning.yaml", text=text), able, {})


def turning(*changes: tuple[str, str], more: str = "") -> Assumption:
    text = TEXT
    for old, new in changes:
        text = text.replace(old, new)
    return decisive(text + more, full=("full", "none", "hourly"))


RECALLED, ASSUMED = ("# ALL", "# recalled"), ("# MTBF", "# assumed")  # of the share; of the rate
SOON = ("detect: 5 h", "detect: 1 s")


def test_a_rare_failure_that_takes_all_decides_and_is_left_out() -> None:
    found = turning(RECALLED)
    assert (found.key, found.mark, found.tried) == ("scopes.all.share", "recalled", WITHOUT)
    # per hour of work: saves, and 0.1 failures each with half an interval lost and the load
    each, rest = 0.25 + 1 / 60, 1 / 30
    assert found.overhead_tried == pytest.approx(rest + 0.09 * each, rel=0.1)
    assert found.overhead == pytest.approx(rest + 0.1 * each + 0.1 * 0.1 * 5.0, rel=0.15)
    assert found.choice_tried == "full"


def test_without_half_of_the_failures_there_are_half_as_many() -> None:
    found = turning(RECALLED, ("share: 0.9", "share: 0.5"), ("share: 0.1", "share: 0.5"))
    assert found.choice_tried == "hourly"
    assert found.overhead_tried == pytest.approx(1 / 60 + 0.05 * (0.5 + 1 / 60), rel=0.05)


def test_what_other_draws_of_failures_alone_move_is_nothing() -> None:
    rare = ("share: 0.9", "share: 0.998"), ("share: 0.1", "share: 0.002")
    assert turning(RECALLED, SOON, *rare).key == "costs.detect"


def test_the_mean_time_between_failures_is_tried_at_a_third() -> None:
    found = turning(ASSUMED, ("detect: 5 h", "detect: 1 min"))
    assert (found.key, found.value, found.mark) == ("failures.mtbf", "10 h", "assumed")
    assert found.tried == "3.33333 h"
    assert found.overhead_tried == pytest.approx(1 / 30 + 0.3 * (0.25 + 1 / 60), rel=0.1)


def test_that_a_spare_is_always_free_is_assumed_where_a_repair_is_given() -> None:
    found = turning(("workers: 8", "workers: 8, repair: 24 h"))
    assert (found.key, found.value, found.tried) == ("cluster.spares", "always available", "1")
    # 0.09 failures of nodes an hour, which one repair at a time of 24 h can't follow
    assert found.overhead_tried > 1
    assert turning(("workers: 8", "workers: 8, repair: 24 h, spares: 1")).key == "costs.detect"


def test_another_choice_is_named_where_the_input_reverses_it() -> None:
    # 5 h, a save of 6 min each 1.4 h: 3 saves cost 6 %; at an MTBF of 10 h to start again costs
    # 2 (exp(.5) - 1) - 1 = 30 %, at one of 100 h 20 (exp(.05) - 1) - 1 = 2.5 %
    found = turning(
        ASSUMED, SOON, ("useful: 200 h", "useful: 5 h"), ("save: 1 min", "save: 6 min"),
        ("interval: 30 min", "interval: 1.4 h"),
        more="unknown: {failures.mtbf: {low: 9.99 h, high: 100 h}}",
    )  # fmt: skip
    assert (found.tried, found.choice, found.choice_tried) == ("100 h", "full", "none")
    assert found.overhead_tried == pytest.approx(0.025, abs=0.01)


def test_what_may_not_be_chosen_takes_no_place() -> None:
    """At no failures nothing costs less than never to save, and that is no choice here."""
    text = TEXT.replace(*ASSUMED).replace(*SOON)
    text = f"{text}unknown: {{failures.mtbf: {{low: 9.99 h, high: 1000000 h}}}}"
    of_all, alone = decisive(text, full=("full", "none")), decisive(text, full=("full",))
    assert (of_all.choice_tried, alone.choice_tried) == ("none", "full")
    assert decisive(text, hourly=("hourly",), full=("full",)).choice == "hourly"


def test_an_input_that_moves_nothing_that_is_shown_is_said_to_hardly_move_it() -> None:
    none = Assumption("costs.detect", "assumed", "1 s", "3 s", 0.05, 0.0500001, "full", "full")
    said = "The answer hardly depends on `costs.detect` (assumed: 1 s): with 3 s, "
    assert turns_on(none).startswith(said)
    assert turns_on(replace(none, overhead_tried=0.06)).startswith("The answer depends most on ")
    unsure = turns_on(replace(none, overhead_tried=0.06, half_width=0.02))
    assert "full costs 6.00 ± 2.00 % instead of 5.00 %" in unsure


def test_an_effect_of_few_failures_has_its_interval() -> None:
    found = turning(RECALLED, SOON)
    assert 0 < found.half_width < found.overhead_tried


def test_nothing_turns_on_what_was_given() -> None:
    given = TEXT.replace("# assumed", "# given")
    assert decisive(given, full=("full", "none", "hourly")) is None


def test_the_range_of_unknown_takes_the_place_of_a_third_and_three_times() -> None:
    more = "unknown: {failures.mtbf: {low: 5 h, high: 11 h}}\n"
    assert turning(ASSUMED, SOON, more=more).tried == "5 h"


def test_run_ends_with_it_on_a_terminal_and_has_it_in_its_recommendation(tmp_path: Path) -> None:
    file = tmp_path / "turning.yaml"
    file.write_text(TEXT.replace("# ALL", "# recalled"))
    answer = cprsim.run(file)
    said = "The answer depends most on `scopes.all.share` (recalled: 0.1): without such failures, "
    assert str(answer).splitlines()[-1].startswith(said)
    chosen = answer.values["recommendation"]
    assert (chosen["name"], chosen["beats"]) == ("full", "hourly")
    assert chosen["entry"]["interval"] == "30 min"
    assert chosen["overhead"]["low"] < chosen["overhead"]["mean"] < chosen["overhead"]["high"]
    assert chosen["by"]["low"] > 0
    assert chosen["turns_on"].key == "scopes.all.share"
    no_share, over_it = "a number without % is a share", "the least overhead, of full, is"
    for over, code, said in (
        ("1%", 4, over_it), ("90%", 0, ""), ("100%", 0, ""), ("0.9", 0, ""),
        ("1", 2, no_share), ("10", 2, no_share), ("nan", 2, no_share),
    ):  # fmt: skip
        ran = call("run", file, "--fail-above", over, "--out", tmp_path / "r")
        assert ran.exit_code == code
        assert said in ran.stderr


def test_all_are_tried_where_the_cheapest_few_are_not_what_wins() -> None:
    # to first order an hour costs save / interval, and interval / 2 / MTBF: of 10 h 6.0 % at 33
    # min and 6.8 % at 20 min, of 3.3 h 11.8 % and 10.5 %
    entry = "{{strategy: full, name: {}, interval: {} min}}".format
    entries = {f"at-{n}": entry(f"at-{n}", n) for n in (33, 36, 38, 40, 42, 44, 20)}
    shown = {name: 0.06 + 0.001 * place for place, name in enumerate(entries)}
    unknown = "unknown: {failures.mtbf: {low: 2 h, high: 10 h}}\n"
    text = TEXT.replace(*SOON).replace(*ASSUMED)
    found = decisive_assumption(
        load_scenario("turning.yaml", text=text), {"at-33": [*entries]}, shown, entries
    )
    assert (found.key, found.tried, found.choice_tried) == ("failures.mtbf", "3.33333 h", "at-20")
    (other,) = break_evens_of(
        load_scenario("turning.yaml", text=text + unknown), entries, shown, "at-33"
    )
    assert other.becomes == "at-20"
