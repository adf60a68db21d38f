"""``cprsim init``: answers about a job in, a scenario that runs out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli import completing
from cprsim.cli.options import AsJson, Force
from cprsim.cli.saying import T, ask, complain, say, say_json
from cprsim.foreign import one_line

if TYPE_CHECKING:
    from cprsim.scenario import Scenario
    from cprsim.scenario.answers import Answers, FailuresSection, Nodes, Rate

FILE = Path("scenario.yaml")
FIT_FIRST = (
    "what `init` has no option for, `cprsim fit` has: `cprsim fit {log} --nodes N --job-nodes {n} "
    "--save failures.yaml`; then name failures.yaml here"
)
N_BOOTSTRAP = 199  # as `cprsim fit` by default
MADE = (".yaml", ".yml")  # a section that `cprsim fit --save` wrote; whatever else is a log


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The scenario to write.")] = FILE,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="recommender|llm",
            help="What trains: a recommendation model on embedding servers, or a language model "
            "on workers.",
            show_default=False,
            autocompletion=completing.kinds,
        ),
    ] = None,
    nodes: Annotated[
        str | None,
        typer.Option(
            metavar="N|NxGPUS|TRAINERS+SERVERS",
            help="Nodes of the job: 12; 128x8 of 8 GPUs each; of a recommender 8+4.",
            show_default=False,
        ),
    ] = None,
    failures: Annotated[
        str | None,
        typer.Option(
            metavar="MTBF|FILE|unknown",
            help="Mean time between failures: '28 h' of the job, '1000 d per node'; a log, which "
            "is fitted; or what `cprsim fit --save` wrote.",
            show_default=False,
        ),
    ] = None,
    saves: Annotated[
        str | None,
        typer.Option(
            metavar="INTERVAL,COST|unknown",
            help="How it saves today: '30 min, 2 min' is every 30 min, for 2 min.",
            show_default=False,
        ),
    ] = None,
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
    """Write a first scenario of your job: asks four questions, or takes the answers as options.

    What you do not know is assumed, and marked so in the file. At a terminal kind, nodes, failures
    and saves are asked for where no option says them.
    """
    from cprsim.scenario.first import n_assumed
    from cprsim.shipping import put_schema_beside
    from cprsim.units import TIME
    from cprsim.whole_file import require_new, write_new, write_over

    if not force:
        require_new(file)
    options = {"--state": state, "--storage": storage, "--length": length}
    sizes = _sizes(options)
    answers = replace(
        _answers(kind, nodes, failures, saves),
        state_bytes=sizes.get("--state"),
        storage_bytes_per_h=sizes.get("--storage"),
        useful_h=sizes.get("--length"),
    )
    text, scenario = _checked(answers, file)
    (write_over if force else write_new)(file, text)
    schema = put_schema_beside(file)
    commands = _commands(answers, file)
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


# ------------------------------------------------------------------------------------ the answers


def _answers(
    kind: str | None, nodes: str | None, failures: str | None, saves: str | None
) -> Answers:
    """What options say, and at a terminal the user. Raises ParameterError."""
    from cprsim.errors import ParameterError
    from cprsim.scenario.answers import Answers, read_kind, read_nodes, read_saves

    given = {"--kind": kind, "--nodes": nodes, "--failures": failures, "--saves": saves}
    missing = [option for option, text in given.items() if text is None]
    if missing and not at_terminal():
        raise ParameterError(
            f"{', '.join(missing)}: missing, and there is no terminal to ask at: say all four, "
            "for example --kind recommender --nodes 8+4 --failures '28 h' --saves '30 min, 2 min' "
            "(--failures and --saves may be unknown)"
        )
    what = _asked_or(kind, "--kind", "What trains: recommender or llm?", read_kind)
    question = "How many nodes?"
    if what.value == "recommender":
        question = "How many nodes, in all (12) or trainers + embedding servers (8+4)?"
    n_nodes = _asked_or(nodes, "--nodes", question, lambda text: read_nodes(text, what))
    failing = _asked_or(
        failures,
        "--failures",
        "How often does it fail: '28 h' (MTBF of the job), '1000 d per node', or a failure log?",
        lambda text: _rate_or_fit(text, n_nodes),
        "unknown",
    )
    saving = _asked_or(
        saves,
        "--saves",
        "How does it save today: interval, and what a save takes, such as '30 min, 2 min'?",
        read_saves,
        "unknown",
    )
    return Answers(what, n_nodes, failing, saving)


def _sizes(options: dict[str, str | None]) -> dict[str, float]:
    """What options say of sizes, those that were given. Raises ParameterError."""
    from cprsim.scenario.answers import SIZES, read

    given = {option: text for option, text in options.items() if text is not None}
    return {
        option: _asked_or(text, option, "", partial(read, SIZES[option]))
        for option, text in given.items()
    }


def at_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _asked_or(
    text: str | None,
    option: str,
    question: str,
    read: Callable[[str], T],
    default: str | None = None,
) -> T:
    """An answer: that of the option, or the user's. Raises ParameterError for a wrong option."""
    from cprsim.errors import ParameterError

    if text is None:
        return ask(question, read, default)
    try:
        return read(text)
    except ParameterError as error:
        raise ParameterError(f"{option}: {error}") from None


def _rate_or_fit(text: str, nodes: Nodes) -> Rate | FailuresSection | None:
    """A rate, or the section of failures that a file holds or its fit makes; None: unknown."""
    from cprsim.errors import CprsimError, ParameterError
    from cprsim.scenario.answers import FailuresSection, read_failures

    found = read_failures(text)
    if not isinstance(found, Path):
        return found
    origin = one_line(found.name)
    written = found.suffix.lower() in MADE
    try:
        text = _section_of(found, nodes) if written else _fitted(found, nodes)
        return FailuresSection(text, origin)
    except CprsimError as error:
        more = (
            "" if written else f"; {FIT_FIRST.format(log=shlex.quote(str(found)), n=nodes.total)}"
        )
        raise ParameterError(f"{error}{more}") from None


def _section_of(path: Path, nodes: Nodes) -> str:
    """The section `failures` that a fit saved, scaled to the job. Raises CprsimError if none."""
    from cprsim.errors import ParameterError
    from cprsim.scenario.answers import for_nodes
    from cprsim.scenario.loading import read_text
    from cprsim.scenario.yaml_text import dump_plain, read_document

    text = read_text(path)
    found = read_document(text, path).data
    if not isinstance(found, dict) or list(found) != ["failures"]:
        raise ParameterError(
            f"{path}: is no section `failures` alone, as `cprsim fit LOG --save FILE` writes it"
        )
    section = found["failures"]
    scaled, how = for_nodes(section if isinstance(section, dict) else {}, nodes.total)
    if not how:
        return text
    complain(f"note: {path}: {how}")
    return f"# {how}\n{dump_plain({'failures': scaled})}"


def _fitted(log: Path, nodes: Nodes) -> str:
    """The section that ``cprsim fit`` writes for a job on so many of the log's nodes.

    Raises CprsimError for a log that can't be read, or too few failures for a fit.
    """
    from cprsim.errors import ParameterError
    from cprsim.failures.traces.asked import LogOptions
    from cprsim.fitting.fragments import fragment
    from cprsim.making.fit_log import LogAsked, read_to_fit

    read = read_to_fit(LogAsked(log=log, reader=LogOptions()))
    if nodes.total > read.chosen.n_nodes:
        raise ParameterError(
            f"{log}: names {read.chosen.n_nodes} nodes, the job has {nodes.total}; --nodes says "
            "how many were watched"
        )
    fitted = read.fit(N_BOOTSTRAP, seed=0)
    for note in (*read.chosen.notes, *fitted.warnings):
        complain(f"note: {note}")
    return fragment(fitted, one_line(log.name), nodes.total)


# ----------------------------------------------------------------------------------- the scenario


def _checked(answers: Answers, file: Path) -> tuple[str, Scenario]:
    """The text to write, which every command takes, and what it says.

    Raises ScenarioError where answers clash.
    """
    from cprsim.scenario.first import first_scenario
    from cprsim.scenario.loading import load_scenario, name_from
    from cprsim.shipping import NAMES_SCHEMA

    text = f"{NAMES_SCHEMA}\n{first_scenario(answers, name_from(file))}"
    return text, load_scenario(file, text=text).scenario


def _commands(answers: Answers, file: Path) -> list[tuple[str, str]]:
    """Commands on the scenario, and the question that each answers."""
    from cprsim.scenario.answers import FailuresSection

    named = shlex.quote(str(file))
    today = "full" if answers.saves.interval_h is None else "today"
    choosing = (
        (f"cprsim compare-systems {named}", "Which recovery system costs least")
        if answers.kind.value == "llm"
        else (
            f"cprsim select {named} --target-pls 0.05",
            "Which strategy and interval, if so many samples may be lost",
        )
    )
    fitted = isinstance(answers.failures, FailuresSection)
    fit = ("cprsim fit LOG --save failures.yaml", "How do the nodes fail, by a log of your own")
    return [
        (f"cprsim run {named}", "What do failures cost, under each strategy"),
        (
            f"cprsim sweep {named} --over recovery.{today}.interval='10 min:8 h:log6'",
            "How does that depend on the interval between saves",
        ),
        choosing,
        *([] if fitted else [fit]),
        ("cprsim report RESULT", "One page of a result, of the folder that `run` names"),
    ]
