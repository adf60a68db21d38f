"""Which kinds of results there are pages of; a further kind is a line in `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cprsim.curves import read_curve
from cprsim.errors import ParameterError, ResultError
from cprsim.fleets.folder import ABOUT as ABOUT_FLEET
from cprsim.fleets.folder import load_fleet
from cprsim.measuring.measure import WHOSE
from cprsim.plots.fleet import fleet_figures
from cprsim.plots.run import run_figures
from cprsim.plots.save import Draw
from cprsim.plots.selection import selection_figures
from cprsim.plots.sweep import sweep_figures
from cprsim.present.answer import Answer
from cprsim.present.comparison import LETTERS, different_inputs, overview_of_runs
from cprsim.present.curve import document_of_curve, inputs_of_curve
from cprsim.present.document import Document, ResultsPage
from cprsim.present.fleet import document_of_fleet
from cprsim.present.reproduction import document_of_reproduction, overview_of_reproductions
from cprsim.present.run import answer_of_run, document_of_run
from cprsim.present.selection import document_of_selection
from cprsim.present.sweep import document_of_sweep
from cprsim.present.systems import answer_of_systems, document_of_systems
from cprsim.reproduce.runner import SUMMARY, read_reproduced
from cprsim.results.compare import inputs_of
from cprsim.results.manifest import read_manifest
from cprsim.results.run import JOB, load_result
from cprsim.results.words import count
from cprsim.selector.folder import SELECTION, Selected, load_selected
from cprsim.sweeps.folder import ABOUT as ABOUT_SWEEP
from cprsim.sweeps.folder import load_sweep
from cprsim.systems_compared.comparison import ABOUT as ABOUT_COMPARISON
from cprsim.systems_compared.comparison import load_comparison


def _by_manifest(result: Any) -> dict[str, str]:
    return inputs_of(result.path, read_manifest(result.path))


@dataclass(frozen=True, slots=True)
class ResultKind:
    """One kind of result: a folder, or the file of a curve.

    Parameters
    ----------
    file : that folders of this kind alone have; empty: it is no folder
    load : reads it; raises ResultError where it is unfinished or damaged
    document : what there is to say about one
    figures : by the names of their files; None: it has none besides those of its document
    overview : what there is to say about several, before the documents
    inputs : what went into one, key by key
    answer : the answer that one holds; None: not yet
    """

    file: str
    load: Callable[[Path], Any]
    document: Callable[[Any], Document]
    figures: Callable[[Any], Mapping[str, Draw]] | None = None
    overview: Callable[[Sequence[Any]], Document] | None = None
    inputs: Callable[[Any], Mapping[str, str]] = _by_manifest
    answer: Callable[..., Answer] | None = None

    def holds(self, path: Path) -> bool:
        """Whether a path is of this kind; reading it says what is wrong where it is damaged."""
        return (path / self.file).is_file()


def _figures_of_selection(made: Selected) -> dict[str, Draw]:
    return selection_figures(made.selection, made.name)


KINDS: dict[str, ResultKind] = {
    "comparison of systems": ResultKind(
        ABOUT_COMPARISON, load_comparison, document_of_systems, answer=answer_of_systems
    ),
    "run": ResultKind(
        JOB, load_result, document_of_run, run_figures, overview_of_runs, answer=answer_of_run
    ),
    "reproduction": ResultKind(
        SUMMARY, read_reproduced, document_of_reproduction, None, overview_of_reproductions
    ),
    "selection": ResultKind(SELECTION, load_selected, document_of_selection, _figures_of_selection),
    "sweep": ResultKind(ABOUT_SWEEP, load_sweep, document_of_sweep, sweep_figures),
    "fleet": ResultKind(ABOUT_FLEET, load_fleet, document_of_fleet, fleet_figures),
    "curve": ResultKind("", read_curve, document_of_curve, inputs=inputs_of_curve),
}


def page_of(folders: Sequence[Path], title: str | None = None) -> ResultsPage:
    """What there is to show of results folders.

    Raises ResultError: a folder is no finished result, or is damaged; ParameterError: more folders
    than letters.
    """
    if len(folders) > len(LETTERS):
        raise ParameterError(f"a report shows at most {len(LETTERS)} results")
    loaded = [(kind, kind.load(folder)) for folder in folders for kind in [kind_of(folder)]]
    documents = [kind.document(result) for kind, result in loaded]
    if len(documents) > 1:
        documents = [
            replace(document, title=f"{letter}: {document.title}")
            for letter, document in zip(LETTERS, documents, strict=False)
        ]
    overview = _overview(loaded, documents)
    first = overview or documents[0]
    return ResultsPage(title or first.title, overview, documents)


def _overview(
    loaded: Sequence[tuple[ResultKind, Any]], documents: Sequence[Document]
) -> Document | None:
    """What compares several results; where nothing does, the answer of each; None for one."""
    kind = loaded[0][0]
    if len(loaded) == 1:
        return None
    differ = different_inputs([kind.inputs(result) for kind, result in loaded])
    if kind.overview is not None and all(other is kind for other, _ in loaded):
        overview = kind.overview([result for _, result in loaded])
        return replace(overview, sections=[*overview.sections, differ])
    return Document(
        title=count(len(loaded), "result"),
        question="What do these results say?",
        answer=[
            f"{letter}: {document.answer[0]}"
            for letter, document in zip(LETTERS, documents, strict=False)
        ],
        sections=[differ],
    )


def kind_of(path: Path) -> ResultKind:
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
