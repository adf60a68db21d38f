"""Everything that `cprsim run` prints: heading, table, sentences, where the results are."""

from __future__ import annotations

from rich.console import Console

from cprsim.present.terminal import say
from cprsim.report.accuracy_sentences import accuracy_sentences
from cprsim.report.run_table import lines, print_run_table
from cprsim.report.sentences import decisions, savings, verdicts
from cprsim.results import FINISHED, Result
from cprsim.results.words import count, hours
from cprsim.results.worth_seeing import judged_by, worth_seeing


def print_run(console: Console, result: Result, *, found_again: bool = False) -> None:
    """Print what a run found.

    Parameters
    ----------
    console : where to; wraps sentences on a terminal and leaves them whole in a pipe
    result : what was found
    found_again : nothing was simulated, because the finished folder was there already
    """
    n = max(line.summary[FINISHED].n for line in lines(result))
    say(
        console,
        f"{result.name}: {hours(result.useful_h)} of useful work on "
        f"{count(result.n_nodes, 'node')}, {count(n, 'replication')}. " + _meaning(result, n),
    )
    console.print()
    print_run_table(console, result)
    whole = result.replay is None
    paragraphs = (
        [f"Log: {note}." for note in result.log_notes],
        accuracy_sentences(result),
        decisions(result),
        verdicts(result),
        savings(result) if whole else [],
        _courses(result) if whole else [],
    )
    for paragraph in paragraphs:
        if paragraph:
            console.print()
        for sentence in paragraph:
            say(console, sentence)
    console.print()
    print_places(console, result, found_again=found_again)


def _courses(result: Result) -> list[str]:
    """Which replications are worth looking at one by one."""
    numbers = worth_seeing(result)
    if len(set(numbers.values())) < len(numbers):
        return []
    named = ", ".join(f"{number} ({what})" for what, number in numbers.items())
    return [f"Worth a look with --replay N, by the overhead of {judged_by(result)}: {named}."]


def _meaning(result: Result, n: int) -> str:
    overhead = "Overhead = (wall - useful) / useful"
    if result.replay is not None:
        return f"{overhead}; this is replication {result.replay} alone."
    return f"{overhead}; means" + (", ± the half-width of the 95 % interval." if n > 1 else ".")


def print_places(console: Console, result: Result, *, found_again: bool) -> None:
    """Say where the results and the figures are."""
    again = " (found again, nothing was simulated)" if found_again else ""
    say(console, f"results  {result.path}{again}")
    for name in sorted(result.manifest.get("files", {})):
        if name.endswith(".png"):
            say(console, f"figure   {result.path / name}")
        elif name == "events.csv":
            say(console, f"events   {result.path / name}")
