"""``cprsim init``: what options say of a job in, a scenario that runs out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cprsim.cli.options import AsJson, Force
from cprsim.cli.saying import complain, say, say_json
from cprsim.errors import one_line

if TYPE_CHECKING:
    from cprsim.scenario.first import Known

FILE = Path("scenario.yaml")
FIT_FIRST = (
    "what `init` has no option for, `cprsim fit` has: `cprsim fit {log} --nodes N --job-nodes {n} "
    "--save failures.yaml`; then name failures.yaml here"
)
N_BOOTSTRAP = 199  # as `cprsim fit` by default
MADE = (".yaml", ".yml")  # a section that `cprsim fit --save` wrote; whatever else is a log


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
            metavar="N|NxGPUS|TRAINERS+SERVERS",
            help="Nodes of the job: 12; 128x8 of 8 GPUs each; of a recommender 8+4.",
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
    from cprsim.files import require_new, write_new, write_over
    from cprsim.scenario.first import Known, first_scenario, n_assumed, nodes_of, quantity, saves_of
    from cprsim.scenario.reading import load_scenario, name_from
    from cprsim.shipping import NAMES_SCHEMA, put_schema_beside
    from cprsim.units import TIME

    if not force:
        require_new(file)
    options = {"--state": state, "--storage": storage, "--length": length}
    sizes = {key: quantity(key, text) for key, text in options.items() if text is not None}
    of_nodes = nodes_of(kind, nodes)
    known = Known(
        kind=kind,
        **of_nodes,
        **_failing(failures, of_nodes["servers"] + of_nodes.get("trainers", 0)),
        **saves_of(saves),
        state_bytes=sizes.get("--state"),
        storage_bytes_per_h=sizes.get("--storage"),
        useful_h=sizes.get("--length"),
    )
    text = f"{NAMES_SCHEMA}\n{first_scenario(known, name_from(file))}"
    scenario = load_scenario(file, text=text).scenario
    (write_over if force else write_new)(file, text)
    schema = put_schema_beside(file)
    commands = _commands(known, file)
    if as_json:
        shown = [{"command": command, "answers": what} for command, what in commands]
        say_json({"scenario": str(file), "assumed": n_assumed(text), "commands": shown})
        return
    say(f"{file}: runs; lines that are marked `assumed`, for you to correct: {n_assumed(text)}")
    guessed = ", ".join(option for option in options if option not in sizes)
    say(
        f"{scenario.cluster.state_said}; {TIME.format(scenario.job.useful_h)} of useful work"
        + (f" (guessed: {guessed})" if guessed else "")
    )
    if schema is not None:
        say(f"{schema}: with it, editors know keys and units")
    for command, what in commands:
        say(f"\n{what}:\n  {command}")


def _failing(text: str, n_nodes: int) -> dict[str, Any]:
    """A rate, or the section that a file holds or its fit makes. Raises ParameterError."""
    from cprsim.errors import CprsimError, ParameterError
    from cprsim.scenario.first import rate_of

    found = Path(text.strip())
    if not found.is_file():
        return rate_of(text)
    written = found.suffix.lower() in MADE
    try:
        section = _section_of(found, n_nodes) if written else _fitted(found, n_nodes)
    except CprsimError as error:
        how = "" if written else f"; {FIT_FIRST.format(log=shlex.quote(str(found)), n=n_nodes)}"
        raise ParameterError(f"--failures: {error}{how}") from None
    said = f"# from {one_line(found.name)}: numbers and intervals are the fit's"
    return {"fitted": f"{said}\n{section}"}


def _section_of(path: Path, n_nodes: int) -> str:
    """The section `failures` that a fit saved, scaled to the job. Raises CprsimError if none."""
    from cprsim.errors import ParameterError
    from cprsim.scenario import dump_plain, read_yaml
    from cprsim.scenario.first import for_nodes
    from cprsim.scenario.reading import read_text

    text = read_text(path)
    found = read_yaml(text, path)[0]
    if not isinstance(found, dict) or list(found) != ["failures"]:
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
    from cprsim.errors import ParameterError
    from cprsim.failures.traces.asked import LogOptions
    from cprsim.fitting.fragments import fragment
    from cprsim.making.fit_log import LogAsked, read_to_fit

    read = read_to_fit(LogAsked(log=log, reader=LogOptions()))
    if n_nodes > read.chosen.n_nodes:
        raise ParameterError(
            f"{log}: names {read.chosen.n_nodes} nodes, the job has {n_nodes}; --nodes says "
            "how many were watched"
        )
    fitted = read.fit(N_BOOTSTRAP, seed=0)
    for note in (*read.chosen.notes, *fitted.warnings):
        complain(f"note: {note}")
    return fragment(fitted, one_line(log.name), n_nodes)


def _commands(known: Known, file: Path) -> list[tuple[str, str]]:
    """Commands on the scenario, and the question that each answers."""
    named = shlex.quote(str(file))
    today = "full" if known.interval_h is None else "today"
    choosing = (
        (f"cprsim compare-systems {named}", "Which recovery system costs least")
        if known.kind == "llm"
        else (
            f"cprsim select {named} --target-pls 0.05",
            "Which strategy and interval, if so many samples may be lost",
        )
    )
    fit = ("cprsim fit LOG --save failures.yaml", "How do the nodes fail, by a log of your own")
    return [
        (f"cprsim run {named}", "What do failures cost, under each strategy"),
        (
            f"cprsim sweep {named} --over recovery.{today}.interval='10 min:8 h:log6'",
            "How does that depend on the interval between saves",
        ),
        choosing,
        *([] if known.fitted else [fit]),
        ("cprsim report RESULT", "One page of a result, of the folder that `run` names"),
    ]
