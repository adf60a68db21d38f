"""``report``: finished results again, on the terminal, as a page, as figures; and `read`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cprsim.commands import command, public
from cprsim.commands.kinds import answer_of, compare_results
from cprsim.commands.options import CliOption
from cprsim.errors import watch
from cprsim.files import writes
from cprsim.pages.answer import Answer
from cprsim.pages.figures import save_figures
from cprsim.pages.markdown import write_page


@command("cprsim report results/quickstart-* --out page.html")
def report(
    *results: Annotated[Any, CliOption(metavar="RESULT")],
    out: Annotated[str | Path | None, CliOption(metavar="FILE", default="report.html")] = None,
    title: str | None = None,
    figures: Annotated[str | Path | None, CliOption(metavar="DIR")] = None,
    formats: Annotated[
        Sequence[Literal["png", "svg", "pdf"]], CliOption("--format", "png|svg|pdf", many=True)
    ] = ("png", "svg"),
) -> Answer:
    """Show results again, side by side, as a page or figures.

    A page has answer, tables, figures, scenario and provenance; in HTML it is one file that needs
    no network. Several results are compared, each with the first: replications are paired where
    both met the same failures, otherwise they count as independent samples (Welch). Inputs that
    differ are listed.

    Parameters
    ----------
    *results : str, Path or Answer
        Results folders; files of staleness curves.
    out : str or Path, optional
        The page: Markdown where its name ends in .md, HTML where in .html.
    title : str, optional
        Title of the page; default: that of the result.
    figures : str or Path, optional
        Draw the figures of the results in this folder, instead of the page.
    formats : sequence of str, default ("png", "svg")
        Of the figures; may be repeated.

    Returns
    -------
    Answer
        Of several results: ``frames["differences"]`` from the first, ``["inputs"]`` that differ.

    Raises
    ------
    ResultError
        One is no finished result, or is damaged; a file can't be written.
    ParameterError
        Two runs have no strategy in common.

    Examples
    --------
    >>> result = cprsim.run("quickstart", replications=100, folder="results")
    >>> _ = cprsim.report(result, out="page.html", title="First job")
    """
    answers = [result if hasattr(result, "document") else read(result) for result in results]
    answer = compare_results(answers)
    if figures is not None:
        folder, drawn = Path(figures), list[Path]()
        with writes(f"to {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            for source in answers:
                named = {
                    f"{source.stored.path.resolve().stem}-{name}": draw
                    for name, draw in source.document.drawings.items()
                }
                drawn += save_figures(named, folder, formats or ("png", "svg"))
        return answer.with_files(drawn)
    if out is None:
        return answer
    watch.doing("making the page")
    return answer.with_files(write_page(answer.document, Path(out), title))


@public
def read(result: str | Path) -> Answer:
    """Read a finished result: a results folder, or a curve's file.

    Parameters
    ----------
    result : str or Path
        Of any kind that `report` shows, or the folder that holds it alone.

    Returns
    -------
    Answer
        As the function that made it returned it.

    Raises
    ------
    ResultError
        It is no finished result, or is damaged.

    Examples
    --------
    >>> result = cprsim.run("quickstart", replications=100, folder="results")
    >>> cprsim.read(result.folder).frames["strategies"].equals(result.frames["strategies"])
    True
    """
    return answer_of(Path(result))
