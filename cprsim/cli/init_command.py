"""``cprsim init``: what options say of a job in, a scenario that runs out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cprsim.cli.options import AsJson, Force
from cprsim.cli.saying import complain, say, say_json
from cprsim.errors import CprsimError, ParameterError, one_line

if TYPE_CHECKING:
    from cprsim.scenario.first import Known

FILE = Path("scenario.yaml")
FIT_FIRST = (
    "what `init` has no option for, `cprsim fit` has: `cprsim fit {log} --nodes N --job-nodes {n} "
    "--save failures.yaml`; then name failures.yaml here"
)
MADE = (".yaml", ".yml")  # a section that `cprsim fit --save` wrote; whatever else is a log
NEXT = {
    "What do failures cost, under each strategy": "cprsim run {file}",
    "How does that depend on the interval between saves": (
        "cprsim sweep {file} --over recovery.{today}.interval='10 min:8 h:log6'"
    ),
    "Which recovery system costs least": "cprsim systems {file}",
    "Which strategy and interval, if so many samples may be lost": (
        "cprsim select {file} --target-pls 0.05"
    ),
    "How do the nodes fail, by a log of your own": "cprsim fit LOG --save failures.yaml",
    "One page of a result, of the folder that `run` names": "cprsim report RESULT",
}


def init(
    kind: Annotated[
        Literal["recommender", "llm"],
        typer.Option(
            "--kind",
            help="What trains: a recommendation model on embedding servers, or a language model "
            "on workers.",
        ),
    ],
    nodes: Annotated[
        str,
        typer.Option(
            metavar="N|TRAINERS+SERVERS", help="Nodes of the job: 12; of a recommender 8+4."
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The scenario to write.")] = FILE,
    failures: Annotated[
        str,
        typer.Option(
            metavar="MTBF|FILE|unknown",
            help="Mean time between failures: '28 h' of the job, '1000 d per node'; a log, which "
            "is fitted; or what `cprsim fit --save` wrote.",
        ),
    ] = "unknown",
    saves: Annotated[
        str,
        typer.Option(
            metavar="INTERVAL,COST|unknown",
            help="How it saves today: '30 min, 2 min' is every 30 min, for 2 min.",
        ),
    ] = "unknown",
    state: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="The model's state in all, such as '6 TB': parameters and optimizer, or tables.",
            show_default=False,
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="BANDWIDTH",
            help="Of the storage, shared by all nodes: '800 Gbit/s'.",
            show_default=False,
        ),
    ] = None,
    length: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Useful work of the job at full speed: '7 d'.", show_default=False
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a first scenario of your job.

    What you do not say is assumed, and marked so in the file.
    """
    from cprsim.files import NAMES_SCHEMA, put_schema_beside, require_new, write_new, write_over
    from cprsim.scenario import first
    from cprsim.scenario.reading import load_scenario, name_from
    from cprsim.units import TIME

    if not force:
        require_new(file)
    split = first.nodes_of(kind, nodes)
    known = first.Known(
        kind,
        **split,
        **_failing(failures.strip(), split["servers"] + split["trainers"]),
        **first.saves_of(saves.strip()),
        state_bytes=first.quantity("--state", state, first.STATE),
        storage_bytes_per_h=first.quantity("--storage", storage, first.STORAGE),
        length_h=first.quantity("--length", length, first.LENGTH),
    )
    written = f"{NAMES_SCHEMA}\n{first.first_scenario(known, name_from(file))}"
    scenario = load_scenario(file, text=written).scenario
    (write_over if force else write_new)(file, written)
    schema = put_schema_beside(file)
    commands, n_assumed = _commands(known, file), first.n_assumed(written)
    if as_json:
        shown = [{"command": command, "answers": what} for what, command in commands.items()]
        say_json({"scenario": str(file), "assumed": n_assumed, "commands": shown})
        return
    say(f"{file}: runs; lines that are marked `assumed`, for you to correct: {n_assumed}")
    options = {"--state": state, "--storage": storage, "--length": length}
    guessed = ", ".join(option for option, text in options.items() if text is None)
    say(
        f"{scenario.cluster.state_said}; {TIME.format(scenario.job.useful_h)} of useful work"
        + (f" (guessed: {guessed})" if guessed else "")
    )
    if schema is not None:
        say(f"{schema}: with it, editors know keys and units")
    for what, command in commands.items():
        say(f"\n{what}:\n  {command}")


def _failing(text: str, n_nodes: int) -> dict[str, Any]:
    """A rate, or the section that a file holds or its fit makes. Raises ParameterError."""
    from cprsim.scenario.first import rate_of

    path = Path(text)
    if not path.is_file():
        return rate_of(text)
    is_made = path.suffix.lower() in MADE
    try:
        section = _section_of(path, n_nodes) if is_made else _fitted(path, n_nodes)
    except CprsimError as error:
        how = "" if is_made else f"; {FIT_FIRST.format(log=shlex.quote(text), n=n_nodes)}"
        raise ParameterError(f"--failures: {error}{how}") from None
    said = f"# from {one_line(path.name)}: numbers and intervals are the fit's"
    return {"fitted": f"{said}\n{section}"}


def _section_of(path: Path, n_nodes: int) -> str:
    """The section `failures` that a fit saved, scaled to the job. Raises CprsimError if none."""
    from cprsim.scenario.first import for_nodes
    from cprsim.scenario.reading import read_text
    from cprsim.scenario.yaml_text import dump_plain, read_yaml

    text = read_text(path)
    found = read_yaml(text, path)[0]
    if not (isinstance(found, dict) and list(found) == ["failures"]):
        raise ParameterError(
            f"{path}: is no section `failures` alone, as `cprsim fit LOG --save FILE` writes it"
        )
    section = found["failures"]
    scaled, how = for_nodes(section if isinstance(section, dict) else {}, n_nodes)
    if not how:
        return text
    complain(f"note: {path}: {how}")
    return f"# {how}\n{dump_plain({'failures': scaled})}"


def _fitted(log: Path, n_nodes: int) -> str:
    """The section that ``cprsim fit`` writes for a job on so many of the log's nodes.

    Raises CprsimError for a log that can't be read, or too few failures for a fit.
    """
    from cprsim.api.fit import fitted_fragment

    text, warnings = fitted_fragment(log, n_nodes)
    for warning in warnings:
        complain(f"note: {warning}")
    return text


def _commands(known: Known, file: Path) -> dict[str, str]:
    """Questions, and the command on the scenario that answers each."""
    left_out = {
        "select" if known.kind == "llm" else "systems",
        "fit" if known.fitted else "",
    }
    names = {"file": shlex.quote(str(file)), "today": "today" if known.interval_h else "full"}
    found = {question: command.format(**names) for question, command in NEXT.items()}
    return {one: command for one, command in found.items() if command.split()[1] not in left_out}
