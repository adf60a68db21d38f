"""Input made to break the readers gets an answer or one error, soon and in little memory.

Scenarios, tables of failures and logs of jobs are mutated: values of every kind in every place,
lines a thousandfold, aliases of aliases, cells and digits without end, files cut and packed.
"""

from __future__ import annotations

import gzip
import json
import resource
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cprsim
from cprsim.files import shipped_scenarios

MOST_S, MOST_KB = 10.0, 1_000_000
BOMB = "[&a [x,x,x,x], &b [*a,*a,*a,*a], " + ", ".join(
    f"&{chr(97 + k)}{k} [{', '.join([f'*{chr(96 + k)}' + (str(k - 1) if k > 2 else '')] * 9)}]"
    for k in range(2, 12)
)
NASTY = st.one_of(
    st.sampled_from([
        "", "~", "nan", "-1", "0", "1e400", "9" * 5000, "0" * 4500 + "1", "[" * 900, "{" * 900, "'",
        '"', "&a [*a]", BOMB + "]", "!!python/object:os.system x", "n[0-99999]r[0-99999]",
        "n[1-" + "9" * 60 + "]", "n[" + "1-90000," * 200 + "1]", "x" * 140_000, "a\x00b", "\ud7ff",
        "\u202e", "${HOME}", "=1+1", "1970-01-01", "2262-04-12", "9999-12-31T23:59:59Z", "12:61",
        "1 parsec", "-5 h", "3 %", "[1, 2]", "{a: 1}", "../../../etc/passwd", "|", ",", ";;;",
    ]),
    st.text(max_size=30),
    st.integers(-(10**30), 10**30).map(str),
    st.floats().map(str),
)  # fmt: skip
FAILURES = "node,start,end,cause\na,10,11,disk\nb,30,,gpu\na,45,46,disk\nb,60,61,disk\nc,70,72,x\n"
ATTEMPTS = "start,end,last_step,last_saved_step,cause\n0,10,900,800,node\n11,30,2700,2600,\n"
SAVES = "kind,start,end,bytes\nsave,0,40,5 GB\nload,9,9.5,5 GB\nsave,80,150,\nsave,360,363,5 GB\n"
EVENTS = "".join(
    json.dumps({"time_unix_nano": (1_750_000_000 + at) * 10**9, "event": event, **more}) + "\n"
    for at, event, more in (
        (0, "job.start", {"attempt": 0}), (5, "train.resume", {"step": 0}),
        (900, "progress", {"step": 90}), (901, "save.commit", {"step": 90}),
        (1500, "failure", {"node": "n1"}), (1560, "failure.detected", {}),
        (1700, "train.resume", {"step": 90}), (9000, "job.end", {"step": 700}),
    )
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, texts: list[str], marks: str) -> bytes:
    """One of the texts, after some mutations of what stands between marks, and of its lines."""
    lines = draw(st.sampled_from(texts)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        how = draw(st.sampled_from(("value", "value", "value", "drop", "many", "swap", "insert")))
        if how == "value":
            ends = [k for k, sign in enumerate(lines[at]) if sign in marks] or [0]
            first = draw(st.sampled_from(ends))
            last = min((k for k in ends if k > first), default=len(lines[at]) - 1)
            lines[at] = f"{lines[at][: first + 1]} {draw(NASTY)}{lines[at][last:]}"
        elif how == "drop" and len(lines) > 1:
            del lines[at]
        elif how == "many":
            lines[at : at + 1] = [
                lines[at].replace(":", f"{k}:", 1) for k in range(draw(st.integers(2, 3000)))
            ]
        elif how == "swap":
            lines.insert(draw(st.integers(0, len(lines))), lines.pop(at))
        else:
            lines.insert(at, draw(NASTY) + "\n")
    text = "".join(lines).encode("utf-8", "surrogatepass")
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


SCENARIOS = mutated([path.read_text("utf-8") for path in shipped_scenarios().values()], ":,{[")
TABLES = mutated([FAILURES, FAILURES.replace(",", "|"), ATTEMPTS], ",|")
LOGS = mutated([EVENTS, ATTEMPTS, SAVES], ":,")


def answers(read: Callable[[Path], object], text: bytes, name: str) -> None:
    """An answer, or an error of ours; in at most 10 s of CPU, and 1 GB more than before."""
    began, before_kb = process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
        with suppress(cprsim.CprsimError):
            read(path)
    assert process_time() - began < MOST_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < MOST_KB


def attack(n: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=n, deadline=None, derandomize=True, suppress_health_check=slow)


def of_each(scenario: bytes, table: bytes, log: bytes, packed: bool) -> None:
    """Read one of each kind."""
    answers(cprsim.validate, scenario, "scenario.yaml")
    suffix = ".csv.gz" if packed else ".csv"
    answers(
        lambda path: cprsim.fit(path, nodes=20, time_unit="h", bootstrap=0), table, "f" + suffix
    )
    answers(lambda path: cprsim.ledger(path, time_unit="h"), log, "j" + suffix)
    answers(lambda path: cprsim.calibrate(path, time_unit="h"), log, "c" + suffix)
    answers(lambda path: cprsim.fit(path, format="costs", bootstrap=0), log, "s" + suffix)


@attack(25)
@given(SCENARIOS, TABLES, LOGS, st.booleans())
def test_an_attack_gets_an_answer_or_one_error(scenario, table, log, packed) -> None:
    of_each(scenario, table, log, packed)


@pytest.mark.long
@attack(700)  # of three inputs each, two of the logs twice more
@given(SCENARIOS, TABLES, LOGS, st.booleans())
def test_2100_attacks_get_an_answer_or_one_error(scenario, table, log, packed) -> None:
    of_each(scenario, table, log, packed)
