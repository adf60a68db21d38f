"""Which kinds of results there are; a further kind is a line in `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cprsim.accuracy.curve_file import read_curve
from cprsim.commands.comparison import answer_of_several
from cprsim.commands.fleet.answer import answer_of_fleet
from cprsim.commands.fleet.folder import FLEET_FILE, load_fleet
from cprsim.commands.measure.answer import answer_of_curve, inputs_of_curve
from cprsim.commands.reproduce.answer import answer_of_reproductions, overview_of_reproductions
from cprsim.commands.reproduce.study import SUMMARY, read_reproduced
from cprsim.commands.run.answer import answer_of_run
from cprsim.commands.select.answer import answer_of_select
from cprsim.commands.select.record import SELECTION, load_selection
from cprsim.commands.sweep.answer import answer_of_sweep
from cprsim.commands.sweep.folder import ABOUT as ABOUT_SWEEP
from cprsim.commands.sweep.folder import load_sweep
from cprsim.commands.systems.answer import answer_of_systems
from cprsim.commands.systems.comparison import SYSTEMS_FILE, load_comparison
from cprsim.errors import ParameterError, ResultError
from cprsim.pages.answer import Answer
from cprsim.pages.document import Document
from cprsim.results.folder import MANIFEST, StoredResult, read_manifest, results_in, stored_scenario
from cprsim.results.identity import inputs_of
from cprsim.results.run import JOB_FILE, load_result
from cprsim.training.measuring.measure import WHOSE


def _by_manifest(result: Any) -> dict[str, str]:
    return inputs_of(stored_scenario(result.path), read_manifest(result.path))


class ResultKind(NamedTuple):
    """One kind of result: a folder, or the file of a curve."""

    file: str  # that folders of this kind alone have; empty: it is no folder
    load: Callable[[Path], Any]  # raises ResultError where it is unfinished or damaged
    answer: Callable[..., Answer]
    inputs: Callable[[Any], Mapping[str, str]] = _by_manifest  # what went into one, key by key
    overview: Callable[[Sequence[Any]], Document] | None = None  # of several, in its own words


KINDS = {
    "comparison of systems": ResultKind(SYSTEMS_FILE, load_comparison, answer_of_systems),
    "run": ResultKind(JOB_FILE, load_result, answer_of_run),
    "reproduction": ResultKind(
        SUMMARY,
        read_reproduced,
        lambda made, **about: answer_of_reproductions([made], **about),
        overview=overview_of_reproductions,
    ),
    "selection": ResultKind(SELECTION, load_selection, answer_of_select),
    "sweep": ResultKind(ABOUT_SWEEP, load_sweep, answer_of_sweep),
    "fleet": ResultKind(FLEET_FILE, load_fleet, answer_of_fleet),
    "curve": ResultKind("", read_curve, answer_of_curve, inputs_of_curve),
}


def answer_of(path: Path) -> Answer:
    """The answer that a result holds: a results folder, the folder around it, or a curve's file.

    Raises ResultError: it is no finished result, or is damaged.
    """
    inside = results_in(path)
    if len(inside) == 1 and not (path / MANIFEST).exists():
        path = inside[0]
    if not path.exists():
        raise ResultError(f"{path} is no folder, and no file of a staleness curve")
    if (path / WHOSE).is_file():
        curve = path.name.removesuffix(".runs")
        raise ResultError(f"{path} holds the single runs of a measurement: name its curve, {curve}")
    kinds = (kind for kind in KINDS.values() if kind.file and (path / kind.file).is_file())
    # a folder of no known kind counts as a run, whose reader says what is wrong
    kind = next(kinds, KINDS["run" if path.is_dir() else "curve"])
    stored = StoredResult(kind.load(path), path, path, found_again=True)
    return kind.answer(stored.made, **stored.about())


def compare_results(answers: Sequence[Answer]) -> Answer:
    """One answer for all of them. Raises ParameterError, see `answer_of_several`."""
    if not answers:
        raise ParameterError("results: name at least one")
    if len(answers) == 1:
        return answers[0]
    if strange := [answer.kind for answer in answers if answer.kind not in KINDS]:
        raise ParameterError(f"results: a {strange[0]} has no results folder to compare")
    kinds = [KINDS[answer.kind] for answer in answers]
    results = [answer.stored.made for answer in answers]
    paths = [answer.stored.path for answer in answers]
    inputs = [kind.inputs(result) for kind, result in zip(kinds, results, strict=True)]
    runs = [load_result(path) for path in paths if (path / JOB_FILE).is_file()]
    compared = answer_of_several(answers, inputs, runs if len(runs) == len(paths) else [])
    overview = kinds[0].overview
    if overview is None or any(kind is not kinds[0] for kind in kinds):
        return compared
    return replace(
        compared,
        make_document=lambda: replace(
            overview(results), parts=[answer.document for answer in answers]
        ),
    )
