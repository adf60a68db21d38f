"""Prometheus' answer to a range query of ``up``: samples of 0 and 1 for each node (run: 2.42)."""

from __future__ import annotations

import re
from collections import Counter
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.json_values import items, require_object
from cprsim.failures.traces.log import BEGIN, END, Log, paired
from cprsim.failures.traces.spec import Head, LogFormat, LogSpec
from cprsim.failures.traces.times import epoch_unit

VALUES = ("0", "1", "NaN")
LABELS = ("node", "nodename", "instance", "host", "exported_instance")


def read_prometheus(path: PathLike[str], asked: LogSpec) -> Log:
    """Outages from the samples of ``up``: from the first 0 to the next 1.

    Every series is a node that was watched, also those that were never down; the window is that of
    the samples. Instants are as exact as the query's step: what is shorter is not seen. Where
    samples are missing for more than a step nothing is known; they are counted, and an outage that
    was under way goes on.

    Raises TraceError with file and line, or the number of the series and of the sample.
    """
    counted = Counter[str]()
    series = [
        _samples(one, f"data.result[{number}]", path)
        for _, answer in items(path)
        for number, one in enumerate(_result(answer, path))
        if not isinstance(one, dict) or one.get("values") != []
    ]
    if not series:
        message = "the query's answer has no series with a sample"
        raise trace_error(path, None, message, "data.result")
    samples = pd.concat(series, keys=range(len(series)), names=["series"]).reset_index("series")
    known = samples["up"].notna()
    counted["sample(s) that are no number left out"] = int((~known).sum())
    samples = samples[known].sort_values(["series", "start"], kind="stable")
    apart_h = samples.groupby("series")["start"].diff().to_numpy()
    step_h = float(np.min(apart_h, where=apart_h > 0, initial=np.inf))
    n_holes = int((apart_h > 1.5 * step_h).sum())
    counted["hole(s) in the samples: nothing is known of the node there"] = n_holes
    state = np.where(samples["up"] == 0, BEGIN, END)
    start_h = samples["start"].to_numpy()
    begins, end_h = paired(samples["series"].to_numpy(), start_h, state)
    if not len(begins):
        raise trace_error(path, None, "no node was down at any sample: nothing can be fitted")
    step_s = round(step_h * 3600) if np.isfinite(step_h) else 0
    counted["s is the query's step: shorter outages are not seen"] = step_s
    rows = samples.iloc[begins].assign(end=end_h, cause="").set_axis([-1] * len(begins))
    watched = (float(start_h.min()), float(start_h.max()))
    nodes = frozenset(samples["node"])
    says = {
        "n_nodes": "a series for each node", "begins": "the first sample", "ends": "the last sample"
    }  # fmt: skip
    return Log(rows, counted, points=False, watched=watched, nodes=nodes, known=says)


def _result(answer: Any, path: PathLike[str]) -> list[Any]:
    """The series of an answer."""
    answer = require_object(answer, 1, path, "the answer of /api/v1/query_range")
    if answer.get("status") != "success":
        reason = one_line(str(answer.get("error", "no status")))
        raise trace_error(path, 1, f"is no successful answer of Prometheus: {reason}", "status")
    data = answer.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "matrix":
        message = "is no range query's (resultType matrix): ask /api/v1/query_range"
        raise trace_error(path, 1, message, "data.resultType")
    result = data.get("result")
    return result if isinstance(result, list) else []


def _samples(one: Any, where: str, path: PathLike[str]) -> pd.DataFrame:
    """The samples of one series: node, start [h], up (1, 0, or NaN for no number)."""
    if not isinstance(one, dict) or not isinstance(one.get("values"), list):
        raise trace_error(path, None, "is no series with `values`", where)
    labels = one.get("metric")
    named = [labels[key] for key in LABELS if key in labels] if isinstance(labels, dict) else []
    if not named:
        message = f"the series names no node; known labels are {', '.join(LABELS)}"
        raise trace_error(path, None, message, f"{where}.metric")
    for number, sample in enumerate(one["values"]):
        if not isinstance(sample, list) or len(sample) != 2 or str(sample[1]) not in VALUES:
            message = f'`{one_line(str(sample))}` is no sample of `up` such as [1714570200, "1"]'
            raise trace_error(path, None, message, f"{where}.values[{number}]")
    at, up = zip(*one["values"], strict=True)
    at_s = pd.to_numeric(pd.Series(at), errors="coerce").to_numpy(dtype=float)
    if np.isnan(at_s).any() or epoch_unit(at_s) != "s":
        raise trace_error(path, None, "has instants that are no seconds since 1970", where)
    return pd.DataFrame({"node": str(named[0]), "start": at_s / 3600, "up": np.array(up, float)})


def _looks_like(head: Head) -> str:
    if head.text.startswith("{") and re.search(
        r'"status".*"(?:resultType|error)"', head.text, re.S
    ):
        return "the answer of Prometheus to a query"
    return ""


FORMAT = LogFormat(
    options=frozenset({"--period", "--repair"}),
    looks_like=_looks_like,
    read=read_prometheus,
    order=31,
)
