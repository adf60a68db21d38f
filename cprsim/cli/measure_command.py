"""``cprsim measure``: train the stand-in with controlled failures, and write a staleness curve."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cprsim.cli.options import (
    Address,
    AllowCode,
    AsJson,
    Backend,
    BackendName,
    NumberOfWorkers,
    Overrides,
    ScenarioFile,
    settled,
)
from cprsim.cli.pulse import pulse
from cprsim.cli.saying import say, say_json, show
from cprsim.making.options import MEASURED_SEEDS

if TYPE_CHECKING:
    from cprsim.curves import CurveFile
    from cprsim.measuring.design import Design
    from cprsim.measuring.expectation import Expected
    from cprsim.measuring.measure import Measured, MeasureRequest
    from cprsim.scenario import LoadedScenario
    from cprsim.staleness import Metric

FOLDER = Path("results") / "curves"
WHERE_IT_RAN = ("--workers", "--backend", "--address")


def measure(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The curve to write; its runs are kept beside it, in FILE.runs.",
            show_default=f"{FOLDER}/NAME.json",
            callback=settled,
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="Stop when the standard error of every slope is this share of partial's slope.",
        ),
    ] = "20 %",
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Stop after this time; the same command goes on.")
    ] = "10 min",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=MEASURED_SEEDS["ge"],
            max=MEASURED_SEEDS["le"],
            help="Run so many seeds, whatever precision and time.",
            metavar="N",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Further metrics that the curve holds, such as ne,calibration; of a trainer of "
            "your own default all.",
            show_default=False,
        ),
    ] = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Strategies that are measured, partial among them, such as partial,mfu.",
            show_default="all",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the runs to do, for runs made elsewhere, and measure nothing.",
            show_default=False,
            callback=settled,
        ),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Fit the curve to runs made elsewhere.", show_default=False
        ),
    ] = None,
    shorter: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Curve of the same model and seeds at a shorter length, twice: whether their law "
            "predicts this one decides if it serves longer jobs.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    limit: Annotated[
        float | None,
        typer.Option(
            help="Say how many seeds tell a loss of this size from nothing, and measure nothing.",
            show_default=False,
        ),
    ] = None,
    power: Annotated[
        float, typer.Option(help="Probability with which --limit is to be told.")
    ] = 0.9,
    pilot: Annotated[
        str,
        typer.Option(
            metavar="FILE|NAME", help="The curve whose scatter --limit goes by: your pilot's."
        ),
    ] = "criteo-kaggle-linear",
    workers: NumberOfWorkers = None,
    backend: BackendName = Backend.local,
    address: Address = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Measure what stale shards cost in accuracy, and write a staleness curve.

    The scenario's section `kernel` is trained many times with controlled failures, each run beside
    its twin without any. What can be expected is said first, from one run and its baselines. Every
    finished run is kept: the same command goes on where it was stopped.
    Workers of a cluster write there too: they need the same file system.
    A trainer of your own takes the place of the built-in model where `kernel.trainer` names one.
    """
    from cprsim.scenario import load_scenario
    from cprsim.workers import Workers

    by = Workers(workers, backend.value, address)

    from cprsim.measuring.design import design_of

    loaded = load_scenario(scenario, overrides)
    design = design_of(strategies)
    if plan is not None:
        _write_plan(plan, design, loaded, seeds)
        return
    if limit is not None:
        _say_seeds(loaded, design, (limit, power), pilot, _named(metrics), as_json)
        return
    from cprsim.measuring.lengths import read_shorter
    from cprsim.measuring.measure import MeasureRequest
    from cprsim.measuring.measure import measure as run
    from cprsim.measuring.own_code import require_allowed

    if runs is None:
        require_allowed(loaded, allow_code, Path.cwd())
    from cprsim.results.folder import require_writable
    from cprsim.units import SHARE, TIME

    path = out or FOLDER / f"{loaded.scenario.name}.json"
    require_writable(path.parent)
    request = MeasureRequest(
        loaded=loaded,
        folder=path.with_name(f"{path.name}.runs").absolute(),  # for workers that are elsewhere
        precision=_positive("--precision", precision, SHARE.parse),
        budget_s=_positive("--budget", budget, TIME.parse) * 3600,
        n_seeds=seeds,
        workers=by,
        design=design,
        metrics=_named(metrics),
    )
    if runs is not None:
        measured, request = _made_elsewhere(runs, request)
        _show(measured, request, read_shorter(shorter, request), path, as_json)
        return
    from cprsim.cli.unforeseen import telling_what_is_kept
    from cprsim.measuring.runs import n_finished

    pulse.doing("training once, to say what can be expected")
    request, expected = _expected(request, as_json)
    others = read_shorter(shorter, request)
    with telling_what_is_kept() as kept:
        kept.say = lambda: (
            f"{n_finished(request.folder):,} finished training runs are kept in {request.folder}; "
            f"{path} is not written yet"
        )
        with _progress(request) as on_seed:
            measured = replace(run(request, on_seed), expected=expected)
        _show(measured, request, others, path, as_json)


def _named(metrics: str | None) -> tuple[Metric, ...] | None:
    """Names with commas between them; None: as the model has it."""
    from cprsim.staleness import Metric

    if metrics is None:
        return None
    return tuple(Metric(name.strip()) for name in metrics.split(",") if name.strip())


def _write_plan(path: Path, design: Design, loaded: LoadedScenario, seeds: int | None) -> None:
    from cprsim.measuring.elsewhere import plan, write_plan
    from cprsim.staleness import FEWEST_SEEDS_TO_USE

    first = 1 if loaded.scenario.kernel is None else loaded.scenario.kernel.seed
    numbers = range(first, first + (seeds or FEWEST_SEEDS_TO_USE))
    planned = plan(design, numbers, loaded.scenario.cluster.emb_ps)
    write_plan(path, planned)
    say(path)


def _say_seeds(
    loaded: LoadedScenario,
    design: Design,
    asked: tuple[float, float],
    pilot: str,
    metrics: tuple[Metric, ...] | None,
    as_json: bool,
) -> None:
    """What the measurement takes, by the scatter of a pilot's curve."""
    from dataclasses import asdict

    from cprsim.cli.terminal import Terminal
    from cprsim.curves import read_curve, shipped_names
    from cprsim.curves.choosing import shipped_path
    from cprsim.measuring.power import planned
    from cprsim.present.measure import seeds_to_run
    from cprsim.present.terminal import say
    from cprsim.staleness import Metric

    path = shipped_path(pilot) if pilot in shipped_names() else Path(pilot)
    metric = metrics[0] if metrics else Metric.AUC
    found = planned(read_curve(path), metric, *asked, design, loaded.scenario.cluster.emb_ps)
    if as_json:
        say_json({"metric": metric.value, "limit": asked[0], **asdict(found)})
    else:
        say(Terminal(), seeds_to_run(found, metric, asked[0], path.stem))


def _made_elsewhere(runs: Path, request: MeasureRequest) -> tuple[Measured, MeasureRequest]:
    """The measurement that a table of runs is, and what it was asked for."""
    from cprsim.cli.terminal import Terminal
    from cprsim.measuring.elsewhere import read_runs
    from cprsim.measuring.measure import fitted_to, with_further
    from cprsim.present.terminal import say
    from cprsim.results.identity import file_digest

    read = read_runs(runs)
    if read.n_unfinished:
        rows = f"{read.n_unfinished:,} of {read.n_unfinished + len(read.runs):,} rows"
        say(Terminal(stderr=True), f"Warning: {rows} of {runs} have no result and are left out.")
    elsewhere = {"runs": runs.name, "sha256": file_digest(runs)}
    request = replace(request, elsewhere=elsewhere)
    return with_further(fitted_to(read.results(), read.observed()), request), request


def _expected(request: MeasureRequest, as_json: bool) -> tuple[MeasureRequest, Expected]:
    """What one run without failures tells, said; the request knows who trains."""
    from cprsim.cli.terminal import Terminal
    from cprsim.making.measuring import prepared
    from cprsim.measuring.measure import MemoryOfForks
    from cprsim.present.measure import forks, noise_warning
    from cprsim.present.terminal import say

    def say_forks(memory: MemoryOfForks) -> None:
        if not as_json:
            say(Terminal(), forks(memory))

    request, expected, tried = prepared(request, say_forks)
    _say_what_to_expect(expected if tried is None else tried.expected, request, as_json)
    for sentence in [] if tried is None else noise_warning(tried, request.precision):
        say(Terminal(stderr=True), sentence)
    return request, expected


def _say_what_to_expect(expected: Expected, request: MeasureRequest, as_json: bool) -> None:
    """Before anything is measured, so that one may stop; warnings alone where stdout is JSON."""
    from cprsim.cli.terminal import Terminal
    from cprsim.present.measure import expectation, expectation_warnings
    from cprsim.present.terminal import say

    if not as_json:
        for sentence in expectation(expected, request.n_seeds, request.precision):
            say(Terminal(), sentence)
    for sentence in expectation_warnings(expected):
        say(Terminal(stderr=True), sentence)


def _positive(option: str, text: str, parse: Callable[[str], float]) -> float:
    from cprsim.errors import ParameterError

    try:
        value = parse(text)
    except ParameterError as error:
        raise ParameterError(f"{option}: {text!r} {error}") from None
    if not value > 0:
        raise ParameterError(f"{option}: must be positive, not {text!r}")
    return value


def _show(
    measured: Measured,
    request: MeasureRequest,
    shorter: Sequence[CurveFile],
    path: Path,
    as_json: bool,
) -> None:
    from cprsim.curves import write_curve
    from cprsim.curves.curve_file import as_json as file_as_json
    from cprsim.measuring.curve import curve_file
    from cprsim.measuring.lengths import sentences_of_lengths, with_lengths
    from cprsim.plots.save import save_figure
    from cprsim.plots.staleness import staleness_figure
    from cprsim.present.measure import measured_blocks

    curve = curve_file(measured, request, path.stem, command_of(sys.argv[1:]))
    curve = with_lengths(curve, shorter)
    write_curve(path, curve)
    figures = save_figure(
        staleness_figure(measured, request.loaded.scenario.name), path.with_suffix("")
    )
    show(
        lambda: file_as_json(curve),
        lambda: measured_blocks(measured, sentences_of_lengths(curve)),
        as_json=as_json,
        files=(path, *figures),
    )


def command_of(arguments: Sequence[str]) -> str:
    """The command that makes the same file again: without where it ran, which changes no number."""
    words = iter(arguments)
    kept = ["cprsim"]
    for word in words:
        option, given, _ = word.partition("=")
        if option not in WHERE_IT_RAN:
            kept.append(word)
        elif not given:
            next(words, None)
    return shlex.join(kept)


def how_far(n_runs: int, there: int, total: int | None, spent_min: float) -> str:
    """Finished runs, `there` of them from before, of how many, and the minutes spent and left."""
    if total is None:
        return f"{n_runs:,} runs, {spent_min:.1f} min"
    left = ""
    if n_runs > there:
        left = f", about {spent_min / (n_runs - there) * max(total - n_runs, 0):.1f} min left"
    return f"{n_runs:,} of {total:,} runs, {spent_min:.1f} min{left}"


@contextmanager
def _progress(request: MeasureRequest) -> Iterator[Callable[[int, Measured | None], None]]:
    """What is finished and how well slopes are known, on stderr; nothing where that is no terminal.

    It is drawn from the journals, which workers write, once a second.
    """
    from time import monotonic

    from rich.live import Live
    from rich.text import Text

    from cprsim.cli.terminal import Terminal
    from cprsim.measuring.runs import n_finished

    console, began = Terminal(stderr=True), monotonic()
    reached = "no slope yet: three seeds are the least"
    if request.n_seeds is not None:
        reached = f"0 of {request.n_seeds} seeds"
    there = n_finished(request.folder)
    of_seed = 1 + len(request.design.trials(request.kernel.seed, request.n_servers))
    total = None if request.n_seeds is None else request.n_seeds * of_seed

    def line() -> Text:
        n_runs, spent = n_finished(request.folder), (monotonic() - began) / 60
        return Text(f"measuring: {how_far(n_runs, there, total, spent)}; {reached}")

    def on_seed(n_complete: int, known: Measured | None) -> None:
        nonlocal reached
        if request.n_seeds is not None:
            reached = f"{n_complete} of {request.n_seeds} seeds"
        elif known is not None:
            reached = (
                f"{n_complete} seeds, slopes known to {known.widest:.0%} of partial's "
                f"(asked: {request.precision:.0%})"
            )

    pulse.doing("measuring:", lambda: line().plain.removeprefix("measuring: "))
    if not console.is_terminal or pulse.quiet:
        yield on_seed
        return
    with (
        pulse.behind_a_bar(),
        Live(get_renderable=line, console=console, refresh_per_second=1, transient=True),
    ):
        yield on_seed
