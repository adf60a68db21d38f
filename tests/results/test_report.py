"""Tables and sentences: what is shown, at every width, and what is left out."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from math import inf, nan

import pytest
from rich.console import Console

from cprsim.experiments.pipeline import Outcome
from cprsim.present.comparison import differences_table
from cprsim.present.document import Table, Words
from cprsim.present.run import document_of_run, run_as_json, run_blocks
from cprsim.present.run_sentences import answer, decisions, explain, savings, verdicts
from cprsim.present.terminal import show
from cprsim.records import Decision, OnFailure, RecoveryPolicy, SubSaves
from cprsim.results import Identity, Logbook, compare
from cprsim.results.words import count, hours, percent, saves, significant, with_interval


def printed(blocks, width=200, terminal=False):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None)
    show(console, blocks)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_no_digit_is_cut(write, width):
    text = printed(run_blocks(write()), width=width, terminal=True)
    places = ("results ", "figure ")
    lines = [line for line in text.splitlines() if not line.startswith(places)]
    assert max(len(line.rstrip()) for line in lines) <= width
    for number in ("25.0 ± 24.8", "20.0", "0.803", "0.1000", "15.0"):
        assert number in text


def test_a_narrow_terminal_gets_the_parts_in_a_table_of_their_own(write):
    assert "of which, in % of useful time" in printed(run_blocks(write()), width=60, terminal=True)
    assert "of which" not in printed(run_blocks(write()), width=120, terminal=True)


def test_long_names_are_folded_on_a_narrow_terminal_and_whole_in_a_pipe(write, made):
    name = "full recovery of everything"
    long = replace(made.full, name=name)
    strategies = (made.strategy(long, [1, 1], [0, 0]), made.strategy(made.cpr, [0, 0], [0, 0]))
    result = write(outcome=Outcome(made.useful_h, made.cluster, strategies))
    lines = printed(run_blocks(result), width=80, terminal=True).splitlines()
    assert max(len(line.rstrip()) for line in lines if not line.startswith("results")) <= 80
    assert any(line.startswith("of") and "recovery" not in line for line in lines)
    assert name in printed(run_blocks(result), width=80)


def test_a_pipe_gets_one_line_for_each_strategy(write):
    text = printed(run_blocks(write()), width=80)
    assert "of which" not in text
    assert sum(line.startswith("cpr ") and "±" in line for line in text.splitlines()) == 1


def test_the_heading_names_denominator_interval_and_replications(write):
    text = printed(run_blocks(write()))
    assert "Overhead = (wall - useful) / useful" in text
    assert "95 % interval" in text
    assert "3 replications" in text


def test_parts_that_cost_nothing_anywhere_have_no_column(write):
    text = printed(run_blocks(write()))
    assert "lost" in text
    assert "detect" not in text


def test_what_stands_by_the_job_has_columns_where_there_is_some(write, made):
    beside = ("paid", "extra", "memory")
    assert not any(word in printed(run_blocks(write())) for word in beside)
    log = Logbook(0, {"taxed": made.log(), "full": made.log()})
    shown = {}
    for nodes, memory in ((3.0, 0.5), (3.0, 0.0), (0.0, 0.5)):
        strategies = (
            made.strategy(made.taxed(nodes, memory), [1, 1], [0, 0]),
            made.strategy(made.full, [1, 1], [1, 1]),
        )
        result = write(
            outcome=Outcome(made.useful_h, made.cluster, strategies), logbook=log,
            identity=Identity("taxed", f"nodes: {nodes} {memory}", {}),
        )  # fmt: skip
        text = printed(run_blocks(result))
        shown[nodes, memory] = [word for word in beside if word in text]
        page = [
            b.columns
            for b in document_of_run(result).sections[0].blocks
            if isinstance(b, Table) and "ETTR" in b.caption
        ]
        headings = " ".join(column.heading for column in page[0])
        assert [word for word in beside if word in headings] == shown[nodes, memory]
    assert shown == {
        (3.0, 0.5): ["paid", "extra", "memory"],
        (3.0, 0.0): ["paid", "extra"],
        (0.0, 0.5): ["memory"],
    }
    (taxed, _) = run_as_json(result)["strategies"]
    assert (taxed["extra_nodes"], taxed["extra_memory_fraction"]) == (0.0, 0.5)


def test_a_comparison_shows_the_ettr_of_paid_nodes_where_others_are_paid(write, made):
    spared = Outcome(
        made.useful_h,
        replace(made.cluster, n_spares=2),
        (made.strategy(made.full, [1, 1], [1, 1]),),
    )
    log = Logbook(0, {"full": made.log()})
    b = write(outcome=spared, logbook=log, identity=Identity("spared", "spares: 2", {}))
    a = write()
    assert "paid" in printed([differences_table(compare(a, b))])
    assert "paid" not in printed([differences_table(compare(a, a))])


def test_pls_stands_where_recovery_is_partial(write):
    rows = [line.split() for line in printed(run_blocks(write())).splitlines() if "±" in line]
    assert [row[-3] for row in rows if len(row) < 15] == ["–", "0.1000"]


def test_the_decision_is_explained_with_both_prices():
    decision = Decision("partial", 9.0, 1.25, 0.0131, 0.137, 0.1)
    policy = RecoveryPolicy("cpr", OnFailure.RELOAD, 9.0, "cpr", decision)
    said = explain(policy, 50.0)
    assert said.startswith("chose partial recovery")
    for words in ("every 9 h", "1.31 %", "PLS of 0.1", "every 1.25 h", "13.7 % of useful time"):
        assert words in said
    full = replace(policy, decision=replace(decision, chosen="full"))
    assert explain(full, 50.0).startswith("falls back to full recovery")


def test_a_target_of_zero_is_explained():
    decision = Decision("full", 0.0, 1.25, inf, 0.137, 0.0)
    said = explain(RecoveryPolicy("cpr", OnFailure.ROLL_BACK, 1.25, "young", decision), 50.0)
    assert "no stale shard is allowed" in said
    assert "inf" not in said


def test_only_strategies_that_decide_are_explained(write):
    assert [said.split()[0] for said in decisions(write())] == ["cpr"]


def test_verdicts_say_what_the_numbers_do_not(write, made):
    never = made.strategy(made.none, [1, 1], [0, 0], finished=[False, False])
    partly = made.strategy(made.full, [1, 1], [0, 0], finished=[True, False])
    longer = RecoveryPolicy("lazy", OnFailure.RELOAD, 11.0, "given")
    strategies = (never, partly, made.strategy(longer, [0, 0], [0, 0]))
    said = verdicts(write(outcome=Outcome(made.useful_h, made.cluster, strategies)))
    assert len(said) == 3
    assert said[0].startswith("none never finishes: of 2 replications none was done")
    assert said[1].startswith("full often does not finish: 50.0 % of 2 replications")
    assert said[2] == "lazy never saves: its interval of 11 h is longer than the job."


def test_a_run_without_surprises_has_no_verdict(write):
    assert verdicts(write()) == []


def test_savings_are_against_full_recovery(write):
    (said,) = savings(write())
    assert said.startswith("cpr removes 96.0 % of full's overhead")


def test_without_full_recovery_there_is_nothing_to_save(write, outcome):
    alone = replace(outcome, strategies=outcome.strategies[1:])
    assert savings(write(outcome=alone)) == []


def test_a_full_recovery_that_never_finished_is_no_yardstick(write, made):
    stuck = made.strategy(made.full, [1, 1], [0, 0], finished=[False, False])
    cpr = made.strategy(made.cpr, [0.1, 0.1], [0, 0])
    assert savings(write(outcome=Outcome(made.useful_h, made.cluster, (stuck, cpr)))) == []


def test_json_says_what_the_table_says(write):
    result = write()
    found = run_as_json(result)
    full, cpr = found["strategies"]
    assert full["overhead_fraction"]["mean"] == pytest.approx(0.25)
    assert full["ettr"] == pytest.approx(0.8, abs=0.01)
    assert cpr["pls"] == pytest.approx(0.1)
    assert cpr["intervals"]["pls"]["high"] > 0.1
    assert (cpr["interval_h"], cpr["decision"]) == (8.0, "partial")
    assert found["results"] == str(result.path)


def test_a_comparison_shows_both_means_and_the_difference(write, made):
    cheaper = made.strategy(made.full, [0.5, 0.5, 0.5], [0.5, 1.5, 2.5])
    b = write(
        outcome=Outcome(made.useful_h, made.cluster, (cheaper,)), identity=Identity("b", "b", {})
    )
    text = printed([differences_table(compare(write(), b))])
    row = next(line for line in text.splitlines() if "overhead, %" in line)
    assert row.split("time")[1].split() == ["25.0", "20.0", "-5.00", "-5.00", "to", "-5.00"]
    assert "PLS" not in text  # zero in both


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1e-12, "0"),
        (0.0004, "0.0004"),
        (1.434, "1.43"),
        (9.996, "10.0"),
        (99.96, "100"),
        (-5.0, "-5.00"),
        (1661.1, "1,661"),
        (nan, "–"),
    ],
)
def test_numbers_have_about_three_digits(value, text):
    assert significant(value) == text


def test_intervals_have_the_digits_of_their_value():
    assert with_interval(10.23, 0.613) == "10.2 ± 0.6"
    assert with_interval(6.75, 0.0031) == "6.7500 ± 0.0031"
    assert with_interval(6.75, 0.0045) == "6.750 ± 0.004"
    assert with_interval(1661.1, 1234.5) == "1,661 ± 1,234"
    assert with_interval(5.0, nan) == "5.00"
    assert with_interval(5.0, 0.0) == "5.00 ± 0"


def test_times_have_the_unit_that_suits_them():
    assert [hours(h) for h in (0, 30 / 3600, 0.094, 2.049, 1200, nan)] == [
        "0 h",
        "30 s",
        "5.64 min",
        "2.05 h",
        "1,200 h",
        "–",
    ]


def test_other_words():
    assert percent(0.0849) == "8.49 %"
    assert percent(nan) == "–"
    assert [count(n, "node") for n in (1, 1000)] == ["1 node", "1,000 nodes"]


def test_how_often_a_policy_saves_in_words():
    whole = RecoveryPolicy("partial", OnFailure.RELOAD, 2.05, "given")
    assert saves(whole, 50.0) == "every 2.05 h"
    assert saves(replace(whole, save_interval_h=inf), 50.0) == "no saves"
    assert saves(replace(whole, save_interval_h=60.0), 50.0) == "60 h: no saves"
    assert saves(replace(whole, save_interval_h=50.0), 50.0) == "50 h: no saves"
    by_priority = replace(whole, sub_saves=SubSaves("mfu"))
    assert saves(by_priority, 50.0) == "every 2.05 h"
    lazy = replace(by_priority, save_interval_h=60.0)
    assert saves(lazy, 50.0) == "12.5 % of the rows every 7.5 h"
    assert saves(replace(lazy, save_interval_h=50.0), 50.0).endswith("every 6.25 h")
    assert saves(replace(lazy, save_interval_h=600.0), 50.0) == "600 h: no saves"


@pytest.mark.parametrize("interval_h", [11.0, 10.0, 70.0])
def test_never_saves_does_not_stand_beside_the_cost_of_sub_saves(write, made, interval_h):
    decision = replace(made.cpr.decision, partial_interval_h=interval_h)
    lazy = replace(
        made.cpr,
        name="cpr-mfu",
        save_interval_h=interval_h,
        decision=decision,
        sub_saves=SubSaves("mfu"),
    )
    saving = made.strategy(lazy, [0.4, 0.4], [0, 0])
    outcome = Outcome(made.useful_h, made.cluster, (saving,))
    result = write(outcome=outcome, logbook=Logbook(0, {"cpr-mfu": made.log()}))
    told = [printed(run_blocks(result), width=width) for width in (60, 200)]
    told += [json.dumps(run_as_json(result)), *answer(result), *map(str, plain_texts(result))]
    for text in told:
        assert "never sav" not in text
        assert "no saves" not in text
    every = f"12.5 % of the rows every {hours(interval_h / 8)}"
    assert every in told[1]
    assert verdicts(result)[0].endswith(f"It saves {every}.")
    assert every in decisions(result)[0]


def plain_texts(result):
    """Everything that the page says in words and tables."""
    for section in document_of_run(result).sections:
        for block in section.blocks:
            if isinstance(block, Words | Table):
                yield block


def test_a_precision_that_was_not_reached_is_said(made, write):
    spread = (made.strategy(made.full, [1, 2], [0, 0]),)
    for precision, n_said in ((0.01, 1), (100.0, 0), (None, 0)):
        outcome = Outcome(made.useful_h, made.cluster, spread, precision)
        said = verdicts(write(outcome=outcome, identity=Identity(f"p{precision}", "p", {})))
        assert len(said) == n_said
        assert all("not to the 1.00 % asked for" in line for line in said)
