"""An error tells the value at fault of a file, and nothing else that stands in it."""

import json
import re
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
TRACE = "failures={{kind: trace, format: tidy, file: '{file}'}}"
READERS = {
    "scenario": ("validate", "{file}"),
    "fit": ("fit", "{file}"),
    "fit of events": ("fit", "{file}", "--format", "infinitehbd"),
    "fit of LANL": ("fit", "{file}", "--system", "2"),
    "fit with names": ("fit", "{file}", "--column", "node=user", "--time-unit", "h"),
    "fit of costs": ("fit", "{file}", "--format", "costs", "--time-unit", "h"),
    "trace": ("run", "small.yaml", "--set", TRACE),
    "curve": ("run", "small.yaml", "--set", "accuracy.curve='{file}'"),
    "curve to show": ("report", "{file}"),
    "folder": ("report", "{folder}"),
    "compare": ("compare", "{folder}", "{folder}"),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_word_of_a_foreign_file_is_said(tmp_path, monkeypatch, reader) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(small_scenario(), "utf-8")
    for name, text in FOREIGN.items():
        path = Path(name + {"curve": ".csv", "curve to show": ".json"}.get(reader, ""))
        path.write_text(text, "utf-8")
        folder = Path(f"folder-{name}")
        folder.mkdir()
        (folder / "manifest.json").write_text(text, "utf-8")
        called = call(*(word.format(file=path, folder=folder) for word in READERS[reader]))
        assert called.exit_code == 2, (name, called.output, called.exception)
        assert SECRET not in called.output + called.stderr, (name, called.output)


# ------------------------------------------------------------------------- variables


@pytest.mark.parametrize(
    "file", ["${SECRET_TOKEN}", "/tmp/${SECRET_TOKEN}/x", "${CPRSIM_DATA}/${SECRET_TOKEN}",
             "${cprsim_token}", "${SECRET_TOKEN:-x}", "${}", "${XCPRSIM_TOKEN}"]
)  # fmt: skip
def test_a_scenario_asks_for_variables_of_ours_only(tmp_path, monkeypatch, file) -> None:
    for name in ("SECRET_TOKEN", "cprsim_token", "XCPRSIM_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    path = tmp_path / "asking.yaml"
    trace = f"failures: {{kind: trace, format: tidy, file: '{file}'}}"
    path.write_text(re.sub("failures: .*", trace, small_scenario()), "utf-8")
    with pytest.raises(ScenarioError) as error:
        load_scenario(path)
    said = str(error.value)
    assert said.startswith(f"{path}:4: failures.file: ")
    assert "begin with CPRSIM_" in said
    assert SECRET not in said
