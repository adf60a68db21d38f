"""Prometheus' answer to a range query of ``up``: samples of 0 and 1 for each node (run: 2.42)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import LogFormat, LogOptions
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.json_values import items, require_object
from cprsim.failures.traces.log import BEGIN, END, Log, outages, paired
from cprsim.failures.traces.times import epoch_unit

VALUES = {"0", "1", "NaN"}
LABELS = ("exported_node", "exported_instance", "node", "nodename", "instance", "host")
PORT = re.compile(r"(?!127\.|localhost)(.+):\d+")  # ports of a tunnel's end are different nodes
READY = 'kube_node_status_condition{condition="Ready",status="true"}'


def read_prometheus(path: Path, asked: LogOptions) -> Outages:
    """Outages from the samples of ``up``, or of `READY`: from the first 0 to the next 1.

    Every host of a series is a node that was watched; the window is that of the samples. What is
    shorter than the query's step is not seen, and of holes in the samples nothing is known.
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
    samples = pd.concat(series, ignore_index=True)
    known = samples["up"].notna()
    counted["sample(s) that are no number left out"] = int((~known).sum())
    samples = samples[known].sort_values(["node", "start"], kind="stable")
    samples = _one_of_each(samples, path, counted)
    start_h, node = samples["start"].to_numpy(), samples["node"].cat.codes.to_numpy(np.int64)
    apart_h = np.where(np.diff(node, prepend=-1) == 0, np.diff(start_h, prepend=0), np.nan)
    step_h = float(np.min(apart_h, where=apart_h > 0, initial=np.inf))
    n_holes = int((apart_h > 1.5 * step_h).sum())
    counted["hole(s) in the samples: nothing is known of the node there"] = n_holes
    begins, end_h = paired(node, start_h, np.where(samples["up"] == 0, BEGIN, END))
    if not len(begins):
        raise trace_error(path, None, "no node was down at any sample: nothing can be fitted")
    step_s = round(step_h * 3600) if np.isfinite(step_h) else 0
    counted["s is the query's step: shorter outages are not seen"] = step_s
    rows = samples.iloc[begins].assign(end=end_h, cause="").set_axis([-1] * len(begins))
    watched = (float(start_h.min()), float(start_h.max()))
    nodes = frozenset(samples["node"].cat.categories)
    return outages(path, Log(rows, counted, False, watched=watched, nodes=nodes), asked)


def _one_of_each(samples: pd.DataFrame, path: Path, counted: Counter[str]) -> pd.DataFrame:
    """One sample of a node at an instant. Raises TraceError where its series contradict."""
    samples = samples.assign(node=samples["node"].astype("category"))
    same = (samples[["node", "start"]] == samples[["node", "start"]].shift()).all(axis=1)
    n_other = int((same & (samples["up"] != samples["up"].shift())).sum())
    if n_other:
        at = samples[same & (samples["up"] != samples["up"].shift())].iloc[0]
        when = pd.Timestamp(at["start"], unit="h").round("s").isoformat()
        message = (
            f"series of {one_line(at['node'])} contradict each other at {when}Z (and {n_other - 1} "
            'more times): query one series for each node, such as up{job="node"}'
        )
        raise trace_error(path, None, message, "data.result")
    counted["sample(s) of further series of a host (other ports or jobs), which agree"] = int(
        same.sum()
    )
    return samples[~same]


def _result(answer: Any, path: Path) -> list[Any]:
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


def _samples(one: Any, where: str, path: Path) -> pd.DataFrame:
    """The samples of one series: node, start [h], up (1, 0, or NaN for no number)."""
    if not isinstance(one, dict) or not isinstance(one.get("values"), list):
        raise trace_error(path, None, "is no series with `values`", where)
    labels = one["metric"] if isinstance(one.get("metric"), dict) else {}
    if labels.get("condition", "Ready") != "Ready" or labels.get("status", "true") != "true":
        message = f"is 1 where a node is down, or says something else: query {READY}"
        raise trace_error(path, None, message, f"{where}.metric")
    named = next((str(labels[key]) for key in LABELS if key in labels), None)
    if named is None:
        message = f"the series names no node; known labels are {', '.join(LABELS)}"
        raise trace_error(path, None, message, f"{where}.metric")
    for number, sample in enumerate(one["values"]):
        if not isinstance(sample, list) or len(sample) != 2 or sample[1] not in VALUES:
            message = f'`{one_line(str(sample))}` is no sample of `up` such as [1714570200, "1"]'
            raise trace_error(path, None, message, f"{where}.values[{number}]")
    at, up = zip(*one["values"], strict=True)
    at_s = pd.to_numeric(pd.Series(at), errors="coerce").to_numpy(dtype=float)
    if np.isnan(at_s).any() or epoch_unit(at_s) != "s":
        raise trace_error(path, None, "has instants that are no seconds since 1970", where)
    node = PORT.sub(r"\1", named) if PORT.fullmatch(named) else named
    return pd.DataFrame({"node": node, "start": at_s / 3600, "up": np.array(up, float)})


FORMAT = LogFormat(
    name="prometheus",
    options=frozenset({"--period", "--repair"}),
    looks_like=lambda head: (
        "the answer of Prometheus to a query"
        if re.match(r'\{.*"status".*"(?:resultType|error)"', head.text, re.DOTALL)
        else ""
    ),
    read=read_prometheus,
    order=31,
)
