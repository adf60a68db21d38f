"""Which kinds of results there are pages of; a further kind is a line in `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cprsim.curves import read_curve
from cprsim.errors import ParameterError, ResultError
from cprsim.measuring.measure import WHOSE
from cprsim.page.comparison import LETTERS, overview_of_runs
from cprsim.page.content import Chapter, Page
from cprsim.page.curve import chapter_of_curve, is_curve
from cprsim.page.reproduction import chapter_of_reproduction, overview_of_reproductions
from cprsim.page.run import chapter_of_run
from cprsim.page.selection import chapter_of_selection, load_selected
from cprsim.page.sweep import chapter_of_sweep
from cprsim.reproduce.runner import SUMMARY, read_reproduced
from cprsim.results import load_result
from cprsim.results.words import count
from cprsim.selector.folder import SELECTION
from cprsim.sweeps import is_sweep, load_sweep


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of result: a folder, or the file of a curve.

    Parameters
    ----------
    holds : whether a path is of this kind, by the files that it has
    load : reads it; raises ResultError where it is unfinished or damaged
    chapter : what there is to say about one
    overview : what there is to say about several, before the chapters
    """

    holds: Callable[[Path], bool]
    load: Callable[[Path], Any]
    chapter: Callable[[Any], Chapter]
    overview: Callable[[Sequence[Any]], Chapter] | None = None


KINDS: dict[str, Kind] = {
    "run": Kind(
        holds=lambda folder: (folder / "job.json").is_file(),
        load=load_result,
        chapter=chapter_of_run,
        overview=overview_of_runs,
    ),
    "reproduction": Kind(
        holds=lambda folder: (folder / SUMMARY).is_file(),
        load=read_reproduced,
        chapter=chapter_of_reproduction,
        overview=overview_of_reproductions,
    ),
    "selection": Kind(
        holds=lambda folder: (folder / SELECTION).is_file(),
        load=load_selected,
        chapter=chapter_of_selection,
    ),
    "sweep": Kind(holds=is_sweep, load=load_sweep, chapter=chapter_of_sweep),
    "curve": Kind(holds=is_curve, load=read_curve, chapter=chapter_of_curve),
}


def page_of(folders: Sequence[Path], title: str | None = None) -> Page:
    """What there is to show of results folders.

    Parameters
    ----------
    folders : at least one, or files of curves; chapters come in this order
    title : of the page, in place of its own

    Raises
    ------
    ResultError : a folder is no finished result, or is damaged
    ParameterError : more folders than letters
    """
    if len(folders) > len(LETTERS):
        raise ParameterError(f"a report shows at most {len(LETTERS)} results")
    loaded = [(kind, kind.load(folder)) for folder in folders for kind in [kind_of(folder)]]
    chapters = [kind.chapter(result) for kind, result in loaded]
    if len(chapters) > 1:
        chapters = [
            replace(chapter, title=f"{letter}: {chapter.title}")
            for letter, chapter in zip(LETTERS, chapters, strict=False)
        ]
    overview = _overview(loaded, chapters)
    first = overview or chapters[0]
    return Page(title or first.title, overview, chapters)


def _overview(loaded: Sequence[tuple[Kind, Any]], chapters: Sequence[Chapter]) -> Chapter | None:
    """What compares several results; where nothing does, the answer of each; None for one."""
    kind = loaded[0][0]
    if len(loaded) == 1:
        return None
    if kind.overview is not None and all(other is kind for other, _ in loaded):
        return kind.overview([result for _, result in loaded])
    return Chapter(
        title=count(len(loaded), "result"),
        question="What do these results say?",
        answer=[
            f"{letter}: {chapter.answer[0]}"
            for letter, chapter in zip(LETTERS, chapters, strict=False)
        ],
        sections=[],
    )


def kind_of(path: Path) -> Kind:
    """The kind of a result; a run's where nothing says otherwise.

    A folder of no kind is left to the reader of runs, which says what is wrong with it. Raises
    ResultError where there is nothing, and for the runs of a measurement.
    """
    if not path.exists():
        raise ResultError(f"{path} is no folder, and no file of a staleness curve")
    if (path / WHOSE).is_file():
        curve = path.name.removesuffix(".runs")
        raise ResultError(f"{path} holds the single runs of a measurement: name its curve, {curve}")
    return next((kind for kind in KINDS.values() if kind.holds(path)), KINDS["run"])
