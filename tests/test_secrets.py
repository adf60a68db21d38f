"""An error tells the value at fault of a file, and nothing else that stands in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cprsim.errors import ScenarioError
from cprsim.scenario.reading import load_scenario
from tests.making import call, small_scenario

SECRET = "hunter2"
LONG = "x" * 70 + SECRET  # a value at fault is cut before its end
KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz{SECRET}\n-----END OPENSSH PRIVATE KEY-----\n"
FOREIGN = {
    "passwd": f"root:x:0:0:{SECRET}:/root:/bin/bash\ndaemon:x:1:1:{SECRET}:/usr:/bin/false\n",
    "key": KEY,
    "netrc": f"machine example.org login me password {SECRET}\n",
    "dotenv": f"PASSWORD={SECRET}\nTOKEN='{SECRET}'\n",
    "settings": f"password: {SECRET}\nnested: {{token: {SECRET}, list: [{SECRET}]}}\n",
    "broken": f"token: '{SECRET}\nother: [{SECRET}, }}\n",
    "tab": f"token: a\n\t{SECRET}: b\n",
    "tagged": f"!{LONG} a\n",
    "anchor": f"a: *{LONG}\n",
    "json": json.dumps({"token": SECRET, "list": [SECRET]}),
    "list": json.dumps([LONG, {"token": SECRET}, SECRET]),
    "cut": f'{{"token": "{SECRET}"',
    "heading": f"user,{SECRET},token\n1,2,3\n",
    "semicolons": f"user;{SECRET};token\n1;2;3\n",
    "ragged": f"{SECRET}\n{SECRET},{SECRET}\n{SECRET}\n",
    "quote": f'a,b\n"{SECRET},c\n{SECRET}\n',
    "cells": f"node,start,end\n1,{LONG},{SECRET}\n",
    "causes": f"node,start,end,cause\n1,2,1,{SECRET}\n",
    "costs": f"kind,start,end\n{LONG},1,{SECRET}\n",
    "points": f"strategy,pls,loss,standard_error\n{LONG},{LONG},{LONG},{LONG}\n",
    "events": json.dumps([{"node_id": SECRET, "event_time": LONG, "event_type": "a"}, SECRET]),
    "event": json.dumps([{"node_id": 1, "event_time": LONG, "event_type": "a", "fault_type": 1}]),
    "curve": json.dumps({"kind": "cprsim staleness curve", "format": LONG, "name": SECRET}),
    "binary": f"\x00\xff{SECRET}\x00",
}
EVERYWHERE = ("passwd", "key", "heading", "list")
ALSO = {  # with what a reader of its kind goes furthest
    "scenario": ("netrc", "dotenv", "settings", "broken", "tab", "tagged", "anchor", "json", "cut",
                 "binary"),
    "fit": ("semicolons", "ragged", "quote", "cells", "causes", "binary"),
    "fit of events": ("json", "cut", "events", "event"),
    "fit with names": ("semicolons",),
    "fit of costs": ("costs",),
    "trace": ("cells",),
    "curve": ("points",),
    "curve to show": ("curve", "cut", "json"),
    "folder": ("cut", "json"),
}  # fmt: skip
READERS = {
    "scenario": ("validate", "{file}"),
    "fit": ("fit", "{file}"),
    "fit of events": ("fit", "{file}", "--format", "infinitehbd"),
    "fit of LANL": ("fit", "{file}", "--system", "2"),
    "fit with names": ("fit", "{file}", "--column", "node=user", "--time-unit", "h"),
    "fit of costs": ("fit", "{file}", "--format", "costs", "--time-unit", "h"),
    "trace": ("run", "small.yaml", "--set", "failures={kind: trace, format: tidy, file: '{file}'}"),
    "curve": ("run", "small.yaml", "--set", "accuracy.curve='{file}'"),
    "curve to show": ("report", "{file}"),
    "folder": ("report", "{folder}"),
    "compare": ("compare", "{folder}", "{folder}"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_foreign_file_is_refused_without_a_word_of_it(tmp_path, monkeypatch, reader) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(small_scenario(), "utf-8")
    for name in (*EVERYWHERE, *ALSO.get(reader, ())):
        path = tmp_path / (name + {"curve": ".csv", "curve to show": ".json"}.get(reader, ""))
        path.write_text(FOREIGN[name], "utf-8")
        folder = tmp_path / f"folder-{name}"
        folder.mkdir()
        (folder / "manifest.json").write_text(FOREIGN[name], "utf-8")
        said = [
            word.replace("{file}", str(path)).replace("{folder}", str(folder))
            for word in READERS[reader]
        ]
        called = call(*said)
        assert called.exit_code == 2, (name, called.output, called.exception)
        assert SECRET not in called.output, (name, called.output)
        assert SECRET not in called.stderr, (name, called.stderr)


# ------------------------------------------------------------------------- variables

TRACE = "failures: {{kind: trace, format: tidy, file: '{file}'}}"


def asking(folder: Path, file: str) -> Path:
    path = folder / "asking.yaml"
    lines = [line for line in small_scenario().splitlines() if not line.startswith("failures")]
    path.write_text("\n".join([*lines, TRACE.format(file=file), ""]), "utf-8")
    return path


@pytest.mark.parametrize(
    "file", ["${SECRET_TOKEN}", "/tmp/${SECRET_TOKEN}/x", "${CPRSIM_DATA}/${SECRET_TOKEN}",
             "${cprsim_token}", "${SECRET_TOKEN:-x}", "${}", "${XCPRSIM_TOKEN}"]
)  # fmt: skip
def test_a_scenario_asks_for_variables_of_ours_only(tmp_path, monkeypatch, file) -> None:
    for name in ("SECRET_TOKEN", "cprsim_token", "XCPRSIM_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    path = asking(tmp_path, file)
    with pytest.raises(ScenarioError) as error:
        load_scenario(path)
    said = str(error.value)
    line = len(path.read_text("utf-8").splitlines())
    assert said.startswith(f"{path}:{line}: failures.file: ")
    assert "begin with CPRSIM_" in said
    assert SECRET not in said
