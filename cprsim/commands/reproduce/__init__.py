"""``reproduce``: results of papers, ours compared with the published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cprsim.commands import command
from cprsim.commands.options import CliOption, FileName, Workers
from cprsim.commands.reproduce.answer import answer_of_list, answer_of_reproductions
from cprsim.commands.reproduce.study import STUDIES, Summary, Work, record
from cprsim.commands.reproduce.study import reproduce as reproduce_study
from cprsim.errors import ParameterError, choices, watch
from cprsim.files import SHIPPED
from cprsim.pages.answer import Answer
from cprsim.workers import Workers as Pool

KEPT = Path("results/reproduction")


@command("cprsim reproduce fig-overheads --effort quick")
def reproduce(
    *names: Annotated[str, CliOption(metavar="NAME", complete="study", default=[])],
    listed: Annotated[bool, CliOption("--list")] = False,
    effort: Literal["quick", "full", "large"] = "full",
    clicks: FileName = None,
    keep: bool = False,
    workers: Workers = None,
    folder: Annotated[str | Path, CliOption("--out", "DIR")] = "results/reproduce",
) -> Answer:
    """Reproduce published results, and compare ours with them.

    Finished results are found again; an interrupted run continues where it was.

    Parameters
    ----------
    *names : str
        Results to make (see --list); default: all.
    listed : bool, default False
        List the results.
    effort : {"quick", "full", "large"}, default "full"
        All within 5 minutes on 2 cores, within an hour, or more of everything.
    clicks : str or Path, optional
        A click log in Criteo's format, to train on instead of generated clicks.
    keep : bool, default False
        Also keep them in results/reproduction, from which the documents are made.
    workers : int, optional
        Processes on this machine; default: one per core.
    folder : str or Path, default "results/reproduce"
        Folder of the results folders and of finished parts.

    Returns
    -------
    Answer
        ``frames["claims"]``: a row per number of a paper, with ours and the verdict.
        Listed: ``["studies"]``.

    Raises
    ------
    ParameterError
        There is no such result, or options exclude each other.

    Examples
    --------
    >>> "fig-overheads" in cprsim.reproduce(listed=True).frames["studies"]["name"].tolist()
    True
    """
    for unknown in names:
        if unknown not in STUDIES:
            raise ParameterError(f"{unknown!r} is no result: {choices(unknown, STUDIES)}")
    if keep and (effort != "full" or clicks):
        message = "keeps full runs on generated clicks: with no other effort or clicks"
        raise ParameterError(message, option="--keep")
    if clicks is not None and not Path(clicks).is_file():
        raise ParameterError(f"{clicks} is no file", option="--clicks")
    if listed:
        return answer_of_list(STUDIES.values())
    out, log = Path(folder), None if clicks is None else Path(clicks)
    chosen = [STUDIES[name] for name in names or STUDIES]
    results: list[Summary] = []

    def finished() -> str:
        parts = f"the finished parts of {chosen[len(results)].name}"
        return (
            f"{len(results)} of {len(chosen)} results are finished and kept in {out}, and {parts}"
        )

    watch.keeps(finished)
    for number, study in enumerate(chosen, 1):
        watch.doing(f"{study.name}, {number} of {len(chosen)}")
        of_clicks = log if study.trains else None
        work = Work(study, effort, SHIPPED, out, Pool(workers), of_clicks)
        results.append(reproduce_study(work))
        if keep:
            record(results[-1], KEPT)
    if len(results) == 1:
        return answer_of_reproductions(results, folder=results[0].path)
    return answer_of_reproductions(results, files=[result.path for result in results])
