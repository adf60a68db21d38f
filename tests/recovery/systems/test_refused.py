"""What makes no sense of each system, or what it lacks of a job, is one message."""

from dataclasses import replace
from math import inf
from re import escape
from typing import Any

import pytest

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.options import DIVISOR, IN_GROUPS, OF_KIND, UP_TO_ALL, words_of
from cprsim.recovery.systems import SYSTEMS
from tests.recovery.systems.by_hand import OF_LITERATURE, SCOPES, facts, planned

OUTSIDE = {  # by the words of a bound: a value of a job on 8 nodes
    "positive": 0.0, "0 or more": -1.0, "between 0 and 1": 1.5, "above 0 and at most 1": 0.0,
    "above 0 and below 1": 1.0, "between 1 and 32": 64, UP_TO_ALL: 9, IN_GROUPS: 3, DIVISOR: 3,
}  # fmt: skip
INSIDE = {"bandwidth": 8.0, "count": 2, "share": 0.5, "time": 1.0}  # of options that are needed
DECLARED = {name: SYSTEMS[name].options for name in OF_LITERATURE if name != "policy"}
NEEDED: dict[str, dict[str, Any]] = {
    name: {key: INSIDE[option.kind] for key, option in options.items() if option.needed}
    for name, options in DECLARED.items()
}


@pytest.mark.parametrize("system", DECLARED)
def test_an_option_out_of_bounds_is_refused(system: str) -> None:
    for key, option in DECLARED[system].items():
        bound = option.bound or OF_KIND.get(option.kind)
        if bound is None:
            continue
        is_what = bound if isinstance(bound, str | tuple) else words_of(bound)
        value: Any = "random" if isinstance(bound, tuple) else OUTSIDE[is_what]
        shown_value = str(value)
        if isinstance(bound, tuple):
            shown_value, is_what = "`random`", "one of " + ", ".join(f"`{word}`" for word in bound)
        elif option.kind == "times":
            value, shown_value = (1.0, value), str((1.0, value))
        message = escape(f"{system}: `{key}` is {shown_value}; it must be {is_what}")
        with pytest.raises(ParameterError, match=message):
            planned(system, **NEEDED[system] | {key: value})


@pytest.mark.parametrize("system", [name for name, options in NEEDED.items() if options])
def test_an_option_that_is_needed_is_asked_for(system: str) -> None:
    for key in NEEDED[system]:
        rest = {name: value for name, value in NEEDED[system].items() if name != key}
        kind = DECLARED[system][key].kind
        with pytest.raises(ParameterError, match=f"{system}: give `{key}`, a {kind} "):
            planned(system, **rest)


ANNOUNCED = tuple(replace(scope, notice_h=0.5) for scope in SCOPES)
FREE = {"save_stall": Constant(0.0), "save_background": None}
CODE = {"disk": 8.0, "data": 3, "parity": 2}
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [  # of the job, options, message
    ("async", {"save_background": None}, {}, "or `snapshot`"),
    ("async", {"mtbf_h": inf, "step_h": None}, {"persist": 0.0, "snapshot": 0.0},
     "async: saves take no time here: give `every`"),
    ("datastates", {"step_h": None}, {}, r"give `job\.step`"),
    ("check-n-run", {}, {"growth": 0.0}, "no whole save follows 100000 increments"),
    ("scr", {}, {"disk": 8.0, "every": (1.0, 2.0)}, "a positive one for each of its 3 levels"),
    ("fti", {}, CODE, "8 nodes of `worker` make no groups of 5: give `data` and `parity` whose"),
    ("ml-flashpoint", {}, {"copies": 3}, "divisor of the nodes, of which there are 8"),
    ("gemini", {}, {"copies": 3}, "make no groups of 3: give `placement: ring`"),
    ("gemini", {}, {"idle": 0.75}, "at most a step, 0.0625 h"),
    ("gemini", {"step_h": None}, {}, "the time of a training step"),
    ("gemini", {"step_h": None}, {"every": 0.5, "idle": 0.1}, "gemini: `idle` needs"),
    ("gemini", {"state_bytes": None}, {}, "gemini: it needs the state of a node"),
    ("gemini", {"node_bytes_per_h": None}, {}, "gemini: it needs the bandwidth between nodes"),
    ("ecrec", {}, {"data": 3, "rebuild": 1.0, "encoding": 1.0}, "both say how long"),
    ("ecrec", {"state_bytes": None}, {"data": 3}, "without `rebuild` it needs the state of a node"),
    ("hsdp", {"replicas": 2}, {"group": 2}, "2 replicas on 8 nodes of `worker` take 4 nodes each"),
    ("hsdp", {}, {"group": 3}, "8 nodes of `worker` make no replica groups of 3"),
    ("hsdp", {}, {"group": 8}, "leaves two or more"),
    ("hsdp", {}, {"group": 0}, "no replica groups of 0"),
    ("hsdp", {"state_bytes": None}, {}, "hsdp: without `copy` it needs the state of a node"),
    ("moc", {}, {"experts": 4, "saved_each": 5}, "5 of 4 experts"),
    ("moc", {}, {"experts": 4, "snapshot": 0.0, "persist": 0.0}, "give `every`"),
    *(
        ("oobleck", {}, {"throughput": table}, "oobleck: `throughput` is .* give 1 to 9 numbers")
        for table in ((1.0,) * 10, (), (0.0, 0.0), (1.0, inf), (inf, 1.0), (1.0, 2.0), (1.0, -1.0))
    ),
    ("oobleck", {"step_h": None}, {}, r"job\.step"),
    ("varuna", {"step_h": None}, {}, r"job\.step"),
    ("varuna", {}, {"restart": 1.0, "restarts": (1.0,)}, "both give its time: write one"),
    ("on-notice", {}, {}, "no failure is announced"),
    ("on-notice", {"scopes": ANNOUNCED, **FREE}, {}, "give `every`"),
    ("parcae", {"scopes": ANNOUNCED}, {"migrate": 0.75}, "is announced as long before"),
    ("parcae", {}, {}, "give `notice` to one of `scopes`"),
    ("prm", {}, {"rebuild": 1.0}, "no other role of the job is called `reader`"),
    ("ecrec", {"mtbf_h": 10.0, "replicas": 1, **FREE}, {"data": 3}, "give `backstop`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "options", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(
    name: str, changes: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        planned(name, facts(**changes), **options)


NEED_REPLICAS = (
    "adacheck", "flashrecovery", "hsdp", "just-in-time", "oobleck", "recycle", "spare",
    "swift-undo", "torchft",
)  # fmt: skip


@pytest.mark.parametrize("name", [*NEED_REPLICAS, "bamboo", "lazarus"])
def test_shards_of_embedding_servers_or_of_a_state_over_all_nodes_exist_once(name: str) -> None:
    with pytest.raises(ParameterError, match="needs replicas; shards of embedding servers exist"):
        planned(name, facts(is_emb_ps=True, replicas=1), **NEEDED[name])
    if name in NEED_REPLICAS:
        with pytest.raises(ParameterError, match="the 8 nodes of `worker` hold the state once"):
            planned(name, facts(replicas=1))
