"""``init``: a first scenario of a job, or a copy of one that is shipped."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cprsim.commands import command
from cprsim.commands.fit import fitted_fragment
from cprsim.commands.init import first
from cprsim.commands.init.answer import answer_of_first, answer_of_list, answer_of_written
from cprsim.commands.init.first import for_nodes, rate_of
from cprsim.commands.options import CliOption, FileName
from cprsim.errors import CprsimError, InputError, ParameterError, choices, one_line
from cprsim.files import (
    NAMES_SCHEMA,
    put_schema_beside,
    require_new,
    shipped_scenarios,
    write_new,
    write_whole,
    writes,
)
from cprsim.pages.answer import Answer
from cprsim.scenario.reading import load_scenario, name_from, read_text
from cprsim.scenario.yaml_text import dump_plain, read_yaml


@command("cprsim init job.yaml --kind llm --nodes 64 --failures '28 h'")
def init(
    file: FileName = None,
    *,
    kind: Literal["recommender", "llm"] | None = None,
    nodes: Annotated[int | str | None, CliOption(metavar="N|TRAINERS+SERVERS")] = None,
    failures: Annotated[
        str, CliOption(metavar="MTBF|FILE|RATE|unknown", complete="rate")
    ] = "unknown",
    saves: Annotated[str, CliOption(metavar="INTERVAL,COST|unknown")] = "unknown",
    state: Annotated[str | None, CliOption(metavar="SIZE")] = None,
    storage: Annotated[str | None, CliOption(metavar="BANDWIDTH")] = None,
    length: Annotated[str | None, CliOption(metavar="TIME")] = None,
    copy: Annotated[str | None, CliOption("--from", "NAME", complete="shipped")] = None,
    listed: Annotated[bool, CliOption("--list")] = False,
    force: bool = False,
) -> Answer:
    """Write a first scenario of your job, or copy a shipped one.

    Values that you do not give are assumed, and marked so in the file.

    Parameters
    ----------
    file : str or Path, optional
        The scenario to write; default: scenario.yaml, or the name of the copied one.
    kind : str, optional
        Kind of job: a recommendation model on embedding servers, or a language model on workers.
    nodes : int or str, optional
        Nodes of the job: 12; of a recommender 8+4.
    failures : str, default "unknown"
        Mean time between failures: '28 h' of the job, '1000 d per node'; a log, which is fitted;
        the file of 'cprsim fit --save'; or a published rate of --list, such as llama3.
    saves : str, default "unknown"
        How it saves today: '30 min, 2 min' is every 30 min, for 2 min.
    state : str, optional
        Parameters and optimizer, or tables, such as '6 TB'; default: assumed.
    storage : str, optional
        Bandwidth of the storage for all nodes: '800 Gbit/s'; default: assumed.
    length : str, optional
        Useful work of the job at full speed: '7 d'; default: assumed.
    copy : str, optional
        Copy the shipped scenario of this name, to change it.
    listed : bool, default False
        List the scenarios that come with cprsim, and published rates of failures.
    force : bool, default False
        Replace an existing file.

    Returns
    -------
    Answer
        ``frames["commands"]`` to run next; listed: ``["scenarios"]``, ``["presets"]`` of rates.

    Raises
    ------
    CprsimError
        An option makes no sense, a log can't be read, or the file exists already.

    Examples
    --------
    >>> _ = cprsim.init("job.yaml", kind="llm", nodes=64, failures="28 h", state="2 TB")
    >>> cprsim.validate("job.yaml").values["valid"]
    True
    """
    shipped = shipped_scenarios()
    if listed:
        return answer_of_list(shipped)
    if copy is not None and copy not in shipped:
        raise ParameterError(
            f"{one_line(copy)!r} is no shipped one: {choices(copy, shipped)}", option="--from"
        )
    path = Path(file or ("scenario.yaml" if copy is None else f"{copy}.yaml"))
    if not force:
        require_new(path)
    if copy is not None:
        files = _written(path, shipped[copy].read_text("utf-8"), force)
        return answer_of_written(copy, f"{path} is a copy of {copy}, for you to change.", files)
    if kind is None or nodes is None:
        raise ParameterError("name a kind and nodes, or a scenario to copy, or ask for the list")

    split = first.nodes_of(kind, str(nodes))
    rate, notes = _failing(failures.strip(), split["servers"] + split["trainers"])
    facts = first.Known(
        kind,
        **split,
        **rate,
        **first.saves_of(saves.strip()),
        state_bytes=first.quantity("--state", state, first.STATE_SIZE),
        storage_bytes_per_h=first.quantity("--storage", storage, first.STORAGE),
        length_h=first.quantity("--length", length, first.USEFUL_TIME),
    )
    text = f"{NAMES_SCHEMA}\n{first.first_scenario(facts, name_from(path))}"
    scenario = load_scenario(path, text=text).scenario
    return answer_of_first(facts, scenario, text, notes, _written(path, text, force))


def _written(path: Path, text: str, force: bool) -> list[Path]:
    """Write the scenario, and the schema into its folder if that has none."""
    with writes(path):
        (write_whole if force else write_new)(path, text)
    schema = put_schema_beside(path)
    return [path] if schema is None else [path, schema]


def _failing(text: str, n_nodes: int) -> tuple[dict[str, Any], Sequence[str]]:
    """A rate, or the section that a file holds or its fit makes; notes. Raises ParameterError."""
    path = Path(text)
    if not path.is_file():
        return rate_of(text), []
    is_log = path.suffix.lower() not in (".yaml", ".yml")
    try:
        section, notes = (fitted_fragment if is_log else _section_of)(path, n_nodes)
    except CprsimError as error:
        fit_it = f"cprsim fit {shlex.quote(text)} --save failures.yaml"
        how = f"; '{fit_it}' has more options: name failures.yaml here" if is_log else ""
        option = "" if isinstance(error, InputError) else "--failures"  # else file and line
        raise ParameterError(f"{error}{how}", option) from None
    comment = f"# from {one_line(path.name)}: numbers and intervals are the fit's"
    return {"fitted": f"{comment}\n{section}"}, notes


def _section_of(path: Path, n_nodes: int) -> tuple[str, Sequence[str]]:
    """The section `failures` that a fit saved, scaled to the job. Raises CprsimError if none."""
    text = read_text(path)
    data = read_yaml(text, path)[0]
    section = data.get("failures") if isinstance(data, dict) and len(data) == 1 else None
    if not isinstance(section, dict):
        raise ParameterError(
            f"{path} is no section 'failures' alone, as cprsim fit LOG --save FILE writes it"
        )
    scaled, how = for_nodes(section, n_nodes)
    if not how:
        return text, []
    return f"# {how}\n{dump_plain({'failures': scaled})}", [f"{path}: {how}"]
