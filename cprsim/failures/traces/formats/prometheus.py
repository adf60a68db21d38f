"""Prometheus' answer to a range query of ``up``: samples of 0 and 1 for each node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.json_values import values
from cprsim.failures.traces.reading import trace_error
from cprsim.failures.traces.spells import Spell, Watched, outages_of_spells
from cprsim.failures.traces.times import epoch_unit
from cprsim.foreign import one_line
from cprsim.records import Floats

LABELS = ("node", "nodename", "instance", "host", "exported_instance")


class _Series(NamedTuple):
    node: str
    at_h: Floats  # (n,) increasing
    up: Floats  # (n,) 1 or 0


def read_prometheus(path: Path, asked: LogOptions) -> Outages:
    """Outages from the samples of ``up``: from the first 0 to the next 1.

    Every series is a node that was watched, also those that were never down; the window is that of
    the samples. Instants are as exact as the query's step: what is shorter is not seen. Where
    samples are missing for more than a step nothing is known; they are counted, and an outage that
    was under way goes on.

    Raises
    ------
    TraceError
        with file and line, or the number of the series and of the sample.
    """
    counted = Counter[str]()
    series = [one for _, answer in values(path) for one in _series(answer, path, counted)]
    if not series:
        raise trace_error(
            path, None, "the query's answer has no series with a sample", "data.result"
        )
    step_h = _step_h(series)
    spells = [spell for one in series for spell in _spells(one, step_h, counted)]
    if not spells:
        raise trace_error(path, None, "no node was down at any sample: nothing can be fitted")
    counted["s is the query's step: shorter outages are not seen"] = round(step_h * 3600)
    watched = Watched(
        float(min(one.at_h[0] for one in series)),
        float(max(one.at_h[-1] for one in series)),
        frozenset(one.node for one in series),
    )
    return outages_of_spells(path, spells, asked, points=False, counted=counted, watched=watched)


def _series(answer: Any, path: Path, counted: Counter[str]) -> Iterator[_Series]:
    if not isinstance(answer, dict) or answer.get("status") != "success":
        reason = answer.get("error", "no status") if isinstance(answer, dict) else "no object"
        message = f"is no successful answer of Prometheus: {one_line(str(reason))}"
        raise trace_error(path, 1, message, "status")
    data = answer.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "matrix":
        message = "is no range query's (resultType matrix): ask /api/v1/query_range"
        raise trace_error(path, 1, message, "data.resultType")
    result = data.get("result")
    for number, one in enumerate(result if isinstance(result, list) else []):
        where = f"data.result[{number}]"
        if not isinstance(one, dict) or not isinstance(one.get("values"), list):
            raise trace_error(path, None, "is no series with `values`", where)
        if one["values"]:
            found = _one_series(one, where, path, counted)
            if len(found.at_h):
                yield found


def _one_series(one: dict[str, Any], where: str, path: Path, counted: Counter[str]) -> _Series:
    labels = one.get("metric")
    named = [labels[key] for key in LABELS if key in labels] if isinstance(labels, dict) else []
    if not named or not isinstance(named[0], str):
        message = f"the series names no node; known labels are {', '.join(LABELS)}"
        raise trace_error(path, None, message, f"{where}.metric")
    pairs = [
        _sample(sample, f"{where}.values[{n}]", path) for n, sample in enumerate(one["values"])
    ]
    at_s, up = np.array(pairs, dtype=np.float64).T
    known = ~np.isnan(up)
    counted["sample(s) that are no number left out"] += int((~known).sum())
    at_s, up = at_s[known], up[known]
    order = np.argsort(at_s, kind="stable")
    if len(at_s) and epoch_unit(at_s) != "s":
        raise trace_error(path, None, "has instants that are no seconds since 1970", where)
    return _Series(named[0], at_s[order] / 3600, up[order])


def _sample(sample: Any, where: str, path: Path) -> tuple[float, float]:
    try:
        at_s, value = sample
        instant, up = float(at_s), float(value)
        if not isfinite(instant) or not (up in (0.0, 1.0) or isnan(up)):
            raise ValueError
    except (TypeError, ValueError):
        message = f'`{one_line(str(sample))}` is no sample of `up` such as [1714570200, "1"]'
        raise trace_error(path, None, message, where) from None
    return instant, up


def _step_h(series: list[_Series]) -> float:
    """The query's step [h]: the shortest time between two samples."""
    steps = [step for one in series if len(one.at_h) > 1 for step in [np.diff(one.at_h)]]
    apart = np.concatenate(steps) if steps else np.zeros(0)
    return float(apart[apart > 0].min(initial=np.inf)) if (apart > 0).any() else 0.0


def _spells(one: _Series, step_h: float, counted: Counter[str]) -> Iterator[Spell]:
    holes = np.diff(one.at_h) > 1.5 * step_h
    counted["hole(s) in the samples: nothing is known of the node there"] += int(holes.sum())
    down = one.up == 0
    begins = np.flatnonzero(down & ~np.append(False, down[:-1]))
    ups = np.flatnonzero(~down)
    for first in begins.tolist():
        after = np.searchsorted(ups, first)
        end_h = float(one.at_h[ups[after]]) if after < len(ups) else nan
        yield Spell(one.node, float(one.at_h[first]), end_h, "", 1)


def _looks_like(head: Head) -> str:
    text = head.text.lstrip("\ufeff \t\r\n")
    if text.startswith("{") and '"status"' in text and re.search('"(resultType|error)"', text):
        return "the answer of Prometheus to a query"
    return ""


FORMAT = LogFormat(
    name="prometheus",
    what="Prometheus: the answer to a range query of `up`, as JSON",
    commands=(
        "curl -G http://HOST:9090/api/v1/query_range --data-urlencode 'query=up{job=\"node\"}' "
        "-d start=2024-05-01T00:00:00Z -d end=2024-05-08T00:00:00Z -d step=60",
    ),
    provenance="run here: Prometheus 2.42 of Debian 12",
    options=frozenset({"--from and --to", "--repair"}),
    looks_like=_looks_like,
    read=read_prometheus,
    order=31,
)
