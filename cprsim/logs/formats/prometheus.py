"""Prometheus' answer to a range query of ``up``: samples of 0 and 1 for each node (run: 2.42)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import Counted
from cprsim.logs.files import trace_error
from cprsim.logs.formats.jsonl import items
from cprsim.logs.log import Log, LogFormat
from cprsim.logs.spec import LogSpec
from cprsim.logs.states import BEGIN, END, outages_of_states, watch
from cprsim.logs.times import EARLIEST_S, LATEST_S, Times

NODE_LABEL = re.compile(r"(exported_)?(?:kubernetes_)?(?:(node|host)|instance)_?(?:name|id)?", re.I)
PORT = re.compile(r"(?!127\.|localhost)([^:]+|\[.+\]):\d+")  # a tunnel's ports are many nodes
SAMPLE_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
CONDITION = "kube_node_status_condition"
READY = f'{CONDITION}{{condition="Ready",status="true"}}'
NOT_NUMERIC = "sample(s) that are no number left out"
GOOD = re.compile(f"(?:.*[_:])?up|{CONDITION}|probe_success")  # 1 is good
ASK = "--down 1 says that 1 is bad, --down 0 that 0 is"


def read_prometheus(log: PathLike[str], spec: LogSpec) -> Log:
    """Outages from the samples of ``up``, or of `READY`: from the first 0 to the next 1.

    Of another metric, ``--down`` names the values that are bad.

    Every host of a series is a node, watched from its first sample to its last. Outages shorter
    than the query's step are not seen, and the state in gaps between samples is unknown.
    """
    counted = Counted()
    if wrong := [word for word in spec.down_words if not SAMPLE_NUMBER.fullmatch(word)]:
        raise trace_error(log, None, f"{wrong[0]!r} is no value of a metric", "down")
    series = [
        _samples(entry, f"data.result[{number}]", log, spec.down_words)
        for _, answer in items(log)
        for number, entry in enumerate(_result(answer, log))
    ]
    samples = pd.concat(series) if series else pd.DataFrame()
    if samples.empty:
        message = "the query's answer has no series with a sample"
        raise trace_error(log, None, message, "data.result")
    n_read, samples = len(samples), samples.dropna(subset="up")
    counted["dropped", NOT_NUMERIC] = n_read - len(samples)
    state = np.where(samples["up"] == 0, BEGIN, END)
    samples = samples.assign(state=state, end=np.nan, cause="").drop(columns="up")
    n_all, samples = len(samples), samples.drop_duplicates(["node", "start", "state"])
    if len(odd := samples[samples.duplicated(["node", "start"])]):
        when = pd.Timestamp(odd["start"].iloc[0], unit="h").round("s").isoformat()
        message = (
            f"series of {one_line(odd['node'].iloc[0])} contradict each other at {when}Z (and at "
            f'{len(odd) - 1} more samples): query one for each node, such as up{{job="node"}}'
        )
        raise trace_error(log, None, message, "data.result")
    note = "sample(s) of further series of a host (other ports or jobs), which agree"
    counted["merged", note] = n_all - len(samples)
    looks = watch(samples, are_looks=True)
    if not (samples["state"] == END).any():
        message = "no sample is good, so that nothing ends an outage: query `up` of the nodes"
        raise trace_error(log, None, message, "data.result")
    rows = outages_of_states(samples, counted, are_looks=True)
    step_s = round(looks["step_h"] * 3600) if looks["step_h"] > 0 else 0
    counted["assumed", "s is the query's step: shorter outages are not seen"] = step_s
    rows = rows.set_axis([-1] * len(rows))
    times = Times(np.zeros(0), zone=UTC)
    return Log(rows, counted, points=False, times=times, n_read=n_read, **looks)


def _result(answer: Any, log: PathLike[str]) -> list[Any]:
    """The series of an answer."""
    match answer:
        case {"status": "success", "data": {"resultType": "matrix", "result": list(result)}}:
            return result
        case {"error": error}:
            message = f"is no successful answer of Prometheus: {one_line(str(error))}"
        case _:
            message = "is no range query's (resultType matrix): ask /api/v1/query_range"
    raise trace_error(log, 1, message, "data.resultType")


def _samples(entry: Any, where: str, log: PathLike[str], down: Sequence[str]) -> pd.DataFrame:
    """The samples of one series: node, start [h], up (1, 0, or NaN for no number)."""
    match entry:
        case {"metric": dict(labels), "values": list(values)}:
            pass
        case _:
            raise trace_error(log, None, "is no series with `metric` and `values`", where)
    metric = str(labels.get("__name__", CONDITION if "condition" in labels else ""))
    state = labels.get("condition", "Ready"), labels.get("status", "true")
    if not (down or (GOOD.fullmatch(metric) and state == ("Ready", "true"))):
        of = f"`{one_line(metric)}`" if metric else "a metric without a name"
        message = f"it is not known which values of {of} are bad: {ASK}; or query `up` or {READY}"
        raise trace_error(log, None, message, f"{where}.metric")
    found = [match for match in map(NODE_LABEL.fullmatch, labels) if match]
    if not found:
        message = "no label is called node, host or instance: label_replace adds one to the query"
        raise trace_error(log, None, message, f"{where}.metric")
    label = str(labels[max(found, key=lambda of: (bool(of[1]), of[2] or "", of[0]))[0]])
    for number, sample in enumerate(values):
        match sample:
            case [int() | float() as at_s, str() as value] if EARLIEST_S <= at_s <= LATEST_S and (
                value in ("0", "1", "NaN") or (down and SAMPLE_NUMBER.fullmatch(value))
            ):
                continue
        message = f'`{one_line(str(sample))}` is no sample such as [1714570200, "1"]; see --down'
        raise trace_error(log, None, message, f"{where}.values[{number}]")
    node = PORT.sub(r"\1", label) if PORT.fullmatch(label) else label
    samples = pd.DataFrame(values, columns=["start", "up"])
    up = samples["up"].astype(float)
    if down:
        up = (~up.isin([float(word) for word in down])).astype(float).where(up.notna())
    return samples.assign(node=node, start=samples["start"] / 3600, up=up)


FORMAT = LogFormat(
    options=frozenset({"--period", "--repair", "--down"}),
    looks_like=lambda head: (
        "the answer of Prometheus to a query"
        if re.match(r'\{.*"status".*"(?:resultType|error)"', head, re.DOTALL)
        else ""
    ),
    read=read_prometheus,
    order=31,
)
