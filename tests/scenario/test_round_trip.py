"""What a scenario writes about itself reads back to an equal scenario."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cprsim.scenario import Scenario, dump_scenario
from cprsim.scenario.yaml_text import read_document
from tests.scenario.writing import scenario

Section = dict[str, Any]


def quantity(low: float, high: float, *units: str) -> st.SearchStrategy[str]:
    """Quantities between `low` and `high` of each of the units."""
    return st.builds("{!r} {}".format, st.floats(low, high), st.sampled_from(units))


def section(optional: dict[str, st.SearchStrategy[Any]], **keys: Any) -> st.SearchStrategy[Section]:
    return st.fixed_dictionaries(keys, optional=optional)


costs_time = quantity(0, 100, "h", "min", "s", "ms")
spreads = st.one_of(
    section({}, family=st.just("exponential")),
    section({}, family=st.sampled_from(["gamma", "weibull"]), shape=st.floats(0.1, 100)),
    section({}, family=st.just("lognormal"), sigma=st.floats(0.01, 3.7)),
)
distributions = st.one_of(
    st.builds(lambda spread, mean: {**spread, "mean": mean}, spreads, quantity(0.1, 9, "h", "s")),
    st.just({"family": "lognormal", "mean": "5.9 h", "median": "1 h"}),
)
durations = st.one_of(costs_time, distributions)
costs = st.one_of(durations, st.just("transfer"))
lifetimes = st.one_of(
    st.builds(lambda spread, mtbf: {**spread, "mtbf": mtbf}, spreads, quantity(5, 500, "h", "d")),
    section(
        {},
        family=st.just("piecewise"),
        ages=st.builds(lambda age: ["0 h", age], quantity(0.1, 9, "h", "d")),
        hazards=st.lists(quantity(1e-3, 0.1, "failures/h", "failures/d"), min_size=2, max_size=2),
    ),
)
clocks = st.sampled_from(["progress", "uptime", "wall"])
starts = st.sampled_from(["fresh", "stationary"])
roles = st.sampled_from(["emb_ps", "trainer", "any", "reader"])
together = st.integers(1, 3)

failures = st.one_of(
    st.builds(
        lambda lifetime, more: {"kind": "job", **lifetime, **more},
        lifetimes,
        section({"role": roles, "together": together, "start": starts, "clock": clocks}),
    ),
    section(
        {"start": starts, "clock": clocks},
        kind=st.just("node"),
        roles=st.dictionaries(
            st.sampled_from(["emb_ps", "trainer", "reader"]), lifetimes, min_size=1
        ),
    ),
    section(
        {
            "frailty": section({}, shape=st.floats(0.01, 100)),
            "lemons": section({}, share=quantity(0.1, 99, "%"), factor=st.floats(0.1, 100)),
            "shocks": section(
                {},
                every=quantity(5, 500, "h", "d"),
                sizes=st.dictionaries(st.integers(1, 40), st.floats(0.01, 99), min_size=1),
                nodes=st.integers(40, 900),
            ),
            "start": starts,
            "watched": quantity(0, 900, "h", "d"),
            "clock": clocks,
        },
        kind=st.just("correlated"),
        mtbf=quantity(5, 500, "h", "d"),
        shape=st.floats(0.1, 100),
    ),
    section(
        {"role": roles, "together": together, "clock": clocks},
        kind=st.just("injected"),
        count=st.integers(1, 99),
    ),
    section(
        {},
        kind=st.just("injected"),
        at=st.lists(quantity(0, 0.4, "h", "d"), min_size=1, max_size=5, unique_by=lambda t: t),
        servers=st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True),
    ),
    section(
        {"clock": clocks},
        kind=st.just("injected"),
        at=st.just(["3 h", "0.5 h"]),
        servers=st.just([[0], [2, 1]]),
    ),
    section(
        {"period": st.just({"from": "2000-01-01", "to": "2006-01-01"}), "nodes": st.just(5000)},
        kind=st.just("trace"),
        format=st.just("lanl"),
        system=st.integers(1, 24),
        file=st.sampled_from(["${CPRSIM_DATA}/a b.csv", "no", "4e9", "a: #b", " x", "é\t'\""]),
    ),
    section(
        {"columns": st.just({"node": "yes", "end": "12"}), "time_unit": st.sampled_from("hsd")},
        kind=st.just("trace"),
        format=st.just("tidy"),
        file=st.just("t.csv"),
    ),
)
intervals = st.one_of(quantity(0.01, 90, "h", "d"), st.sampled_from(["young", "daly"]))
target = st.floats(0, 1)
own_costs = st.one_of(
    section({"detect": durations, "load": costs}, save=section({"background": costs}, stall=costs)),
    section({"save": costs}, reschedule=durations),
)
recovery = st.lists(
    st.one_of(
        section({}, strategy=st.just("none")),
        section(
            {"interval": intervals, "costs": own_costs},
            strategy=st.sampled_from(["full", "partial"]),
        ),
        section({"interval": intervals}, strategy=st.just("cpr"), target_pls=target),
        section(
            {},
            strategy=st.sampled_from(["partial", "cpr"]),
            interval=st.sampled_from(["cpr", "cpr-undivided"]),
            target_pls=target,
        ),
    ),
    min_size=1,
    max_size=4,
).map(lambda entries: [{**entry, "name": f"s{i}.{i}"} for i, entry in enumerate(entries)])
tables = st.one_of(
    st.sampled_from(["criteo-kaggle", "criteo-terabyte"]),
    st.lists(
        section({"bytes_per_value": st.just(2)}, rows=st.integers(1, 10**9), dimension=st.just(64)),
        min_size=1,
        max_size=3,
    ),
)
cluster = st.builds(
    lambda size, spares: {"trainers": 7, "emb_ps": 8, "others": {"reader": 3}, **size, **spares},
    st.one_of(section({}, tables=tables), section({}, shard_size=quantity(1, 999, "GB", "MiB"))),
    st.one_of(st.just({}), section({}, spares=st.integers(0, 9), repair=durations)),
)
jobs = st.one_of(
    section({}, useful=quantity(10, 9e3, "h")),
    section({}, samples=st.floats(1e12, 1e13), throughput=quantity(1e6, 1e7, "samples/s")),
)
simulations = st.one_of(
    section({"replications": st.integers(1, 10**6)}, seed=st.integers(0, 2**63 - 1)),
    section({"at_most": st.integers(100, 10**6)}, precision=quantity(0.02, 40, "%")),
)
storages = section(
    {"per_server": quantity(1, 100, "Gbit/s", "MB/s")}, bandwidth=quantity(1, 900, "Gbit/s", "GB/s")
)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    said: Section = {
        "name": draw(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)),
        "job": draw(jobs),
        "cluster": draw(cluster),
        "failures": draw(failures),
        "storage": draw(storages),
        "costs": {
            "save": draw(st.one_of(costs, section({"background": costs}, stall=costs))),
            "load": draw(costs),
            "detect": draw(durations),
            "reschedule": draw(durations),
        },
        "recovery": draw(recovery),
        "simulation": draw(simulations),
    }
    if said["failures"]["kind"] == "trace":
        said["cluster"].pop("repair", None)
    instants = said["failures"].get("at")
    if instants is not None and len({_hours(t) for t in instants}) < len(instants):
        said["failures"]["at"] = instants[:1]
    return Scenario.model_validate(said)


def _hours(instant: str) -> float:
    number, unit = instant.split()
    return float(number) * (24 if unit == "d" else 1)


def read_back(text: str) -> Scenario:
    document = read_document(text, "dumped")
    assert document.problems == []
    return Scenario.model_validate(document.data)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_a_scenario_reads_back_from_what_it_writes(written: Scenario) -> None:
    text = dump_scenario(written)
    assert read_back(text) == written
    assert dump_scenario(read_back(text)) == text


def test_what_it_writes_has_short_keys_and_units() -> None:
    text = dump_scenario(scenario())
    for line in (
        "  useful: 50 h",
        "  shard_size: 50 GB",
        "  bandwidth: 25 Gbit/s",
        "  load: 3 min",
    ):
        assert line in text.splitlines()
    assert "_h:" not in text
    assert "null" not in text


def test_a_text_that_looks_like_a_number_stays_text() -> None:
    for name in ("4e9", "12", "1.5", "no", "null", "true", "2000-01-01", "0x1F", "1_000"):
        assert read_back(dump_scenario(scenario(name=name))).name == name
