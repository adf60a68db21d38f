"""Advice on spares: said alike by run, select and fleet."""

from collections.abc import Callable
from math import exp, factorial, nan

import pytest

import cprsim
from cprsim.job.records import Estimate
from cprsim.pages.answer import Answer
from cprsim.pages.recommendation import waits_decide
from cprsim.results.metrics import OVERHEAD, Quantities
from cprsim.results.unknown import in_spares, spares_needed
from cprsim.scenario.reading import load_scenario

TEXT = """\
name: waiting
job: {useful: 300 h}
cluster: {workers: 32, repair: 12 h, spares: 1, state: 10 GB, link: 400 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 12 h, role: worker}
costs: {save: 10 s, load: 1 min, reschedule: 1 min}
prices: {node_hour: 10, currency: USD}
recovery: [{strategy: full, interval: 30 min}, {strategy: full, name: rare, interval: 4 h}]
simulation: {seed: 1, replications: 200}
"""


def share_of_waits(n_spares: int) -> float:
    """As a share of the work: nodes that are away are Poisson's, on average one."""
    return 1 / sum(exp(-1) / factorial(n) for n in range(n_spares + 1)) - 1


ASKED: dict[str, Callable[[], Answer]] = {
    "run": lambda: cprsim.run(TEXT),
    "select": lambda: cprsim.select(TEXT, replications=200),
    "fleet": lambda: cprsim.fleet(TEXT, {}, {"simulation.replications": 50}),
}


@pytest.mark.parametrize("command", [*ASKED])
def test_the_second_line_has_the_spares_that_halve_the_overhead(command: str) -> None:
    found = ASKED[command]()
    table, line = found.document.table, found.document.answer[1]
    place = [*table.headings].index("waiting, %")
    (row,) = [row for row in table.rows if str(row[0]).startswith("full")]
    assert float(str(row[place])) / 100 == pytest.approx(share_of_waits(1), rel=0.2)
    n = int(line.split("with ")[1].split()[0])
    more = f"{n - 1} more node{'s' * (n > 2)}, {100 * (n - 1) / 32:.3g}"
    assert line.startswith(f"More spares pay: with {n} spares ({more}")
    assert f"{(n - 1) * 7305:,.2f} USD per 730.5 h)" in line  # whatever work is done in them
    costs = {m: share_of_waits(m) + (m - 1) / 32 for m in range(1, 9)}
    assert costs[n] <= min(costs.values()) + 0.01
    assert "full costs under half as much: " in line
    shown = float(line.split("under half as much: ")[1].split(" ±")[0]) / 100
    with_more = cprsim.run(TEXT, {"cluster.spares": n}).frames["strategies"]
    assert shown == pytest.approx(with_more["overhead_fraction"][0], rel=0.25)


def test_a_spare_counts_by_its_price() -> None:
    for price, n_nodes in (("10", 32), ("{worker: 10, spare: 2}", 160)):
        priced = load_scenario("w.yaml", [f"prices.node_hour={price}"], text=TEXT)
        assert in_spares(32, priced.scenario) == pytest.approx(n_nodes)


def test_nothing_is_said_where_hardly_any_job_waits() -> None:
    found = cprsim.run(TEXT, {"cluster.spares": 8}, replications=50)
    assert "Waits for spares" not in str(found)
    assert "waiting, %" not in str(found)


def test_the_winner_without_waits_is_named_with_the_fewest_spares_worth_their_nodes() -> None:
    """Each spare halves what `quick` waits; `safe` never waits."""

    def at(names: object, n: int | None) -> dict[str, Quantities]:
        waits = 0.0 if n is None else 0.4 / 2**n
        return {
            "quick": {OVERHEAD: Estimate(0.01 + waits), "wait_fraction": Estimate(waits)},
            "safe": {OVERHEAD: Estimate(0.1, 0.1, 0.1)},
        }

    (need,) = spares_needed(at(None, 1), ["safe"], 1, 1000, at)
    # of 2, 3, 4, 5, 7, 9, 13 and so on, .01 + .4 / 2^n + (n - 1) / 1000 is least at 9
    assert (need.system, need.n_spares, need.n_now, need.is_best) == ("quick", 9, 1, True)
    assert need.pays  # .01 + .4 / 2^9 + 8 / 1000 is less than .1
    need, fewer = spares_needed(at(None, 1), ["safe"], 1, 20, at)
    assert (need.is_best, need.pays) == (True, False)  # .06 + 2 / 20 and more
    assert (fewer.system, fewer.n_spares, fewer.n_now) == ("safe", 0, 1)  # it never waits
    said = [*waits_decide([need, fewer], 20, None)]
    node = "1 fewer node, 5.00 % of the job's nodes"
    costs = "safe costs 10.0 % of useful time (less, counting these nodes)."
    assert said[1] == f"Fewer spares pay: with 0 spares ({node}), {costs}"
    assert spares_needed(at(None, 1), ["safe"], None, 1000, at) == ()
    assert spares_needed({"safe": at(None, 1)["safe"]}, ["safe"], 1, 1000, at) == ()
    now = {"safe": at(None, 1)["safe"], "simple": {OVERHEAD: Estimate(0.12)}}
    assert spares_needed(now, ["simple"], 1, 1000, lambda names, n: now) == ()  # not for spares


def test_what_runs_slower_instead_of_waiting_is_priced_with_spares_too() -> None:
    def at(names: object, n: int | None) -> dict[str, Quantities]:
        slower = 0.0 if n is None else 0.2 / 4**n
        return {"elastic": {OVERHEAD: Estimate(0.02 + slower), "wait_fraction": Estimate(0.0)}}

    (need,) = spares_needed(at(None, 0), ["elastic"], 0, 1000, at)
    # .02 + .2 / 4^n + n / 1000 is least at 3 or 4 of 1, 2, 3, 4, 6
    assert (need.system, need.n_spares, need.pays, need.waits) == ("elastic", 4, True, False)
    assert next(waits_decide([need], 1000, None)).startswith("More spares pay: with 4 spares")
    assert spares_needed(at(None, 4), ["elastic"], 4, 1000, at) == ()
    stuck = [{"full": {OVERHEAD: Estimate(cost)}} for cost in (*[nan] * 6, *[0.1] * 60)]
    (need,) = spares_needed(stuck[1], ["full"], 1, 64, lambda names, n: stuck[n or -1])
    assert (need.n_spares, need.overhead.mean, need.pays) == (7, 0.1, True)
    asked: list[int | None] = []  # where no number of spares lets a job finish, none is tried
    assert spares_needed(stuck[0], [], 1, 64, lambda _, n: asked.append(n) or stuck[0]) == ()
    assert asked == [None]
