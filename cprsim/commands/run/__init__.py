"""``run``: the cost of failures to a job under several recovery strategies."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Annotated, Any

from cprsim.commands import command, options
from cprsim.commands.run.answer import answer_of_run, drawings_of_run
from cprsim.commands.run.sentences import resources_of
from cprsim.errors import ParameterError, one_line, watch
from cprsim.pages.answer import Answer
from cprsim.pages.figures import drawing
from cprsim.results import pipeline
from cprsim.results.folder import ResultTarget, StoredResult, load_or_compute
from cprsim.results.limit import held_limits
from cprsim.results.metrics import FINISHED, summarise
from cprsim.results.run import (
    SHARES,
    Result,
    cheapest_of,
    load_result,
    why_not,
    worth_seeing,
    write_run,
)
from cprsim.results.unknown import WAITS_FROM, decisive_assumption, spares_of
from cprsim.scenario.assemble import assemble

TOO_MUCH = 4  # the exit code
MOST_REPLAYED = 10**9  # no simulation has as many replications


@command("cprsim run quickstart --set failures.mtbf='20 h'")
def run(
    scenario: options.ScenarioLike,
    overrides: options.Overrides = (),
    *,
    seed: options.Seed = None,
    replications: int | None = None,
    replay: Annotated[int | str | None, options.CliOption(metavar="N|median|p95|worst")] = None,
    fail_above: Annotated[float | str | None, options.CliOption(metavar="PERCENT")] = None,
    folder: options.ResultsFolder = None,
) -> Answer:
    """Simulate a job under several recovery strategies.

    The answer is the cost of failures under each.
    The results are stored in a separate folder; the same command finds it again.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`.
    seed : int, optional
        Seed of all random numbers; default: the scenario's.
    replications : int, optional
        Number of replications; default: the scenario's.
    replay : int or str, optional
        Run one replication alone: by number, or by the rank of its overhead.
    fail_above : float or str, optional
        Such as 10%: exit code 4 if the least overhead exceeds it, or no job finishes.
    folder : str or Path, optional
        Folder of the results folders. None: nothing is kept.

    Returns
    -------
    Answer
        ``frames["strategies"]``: a row per strategy, with the quantities of docs/concepts.md.
        ``rows["replications"]``, ``rows["events"]`` (of the replication that the timeline shows).

    Raises
    ------
    CprsimError
        An input is wrong: file, line, key and value of the scenario.

    Examples
    --------
    >>> answer = cprsim.run("quickstart", {"failures.mtbf": "20 h"}, replications=200)
    >>> costs = answer.frames["strategies"].set_index("strategy")
    >>> costs["overhead_fraction"].round(3).to_dict()
    {'none': 0.397, 'full': 0.066, 'partial': 0.032, 'cpr': 0.007}
    """
    most = None if fail_above is None else _share("--fail-above", fail_above)
    loaded = options.source_of(scenario, overrides).read(
        options.shortcuts(seed=seed, replications=replications)
    )

    experiment = assemble(loaded)  # reports wrong input before all else loads

    def simulated(target: ResultTarget) -> Result:
        draw = drawing(folder, drawings_of_run)
        if (number := target.identity.replay) is not None:
            outcome = pipeline.outcome_of_one(experiment, number)
            limits = held_limits(loaded, outcome)
            return write_run(
                target, loaded, experiment, outcome, draw, replication=number, limits=limits
            )
        with watch.progress("simulating") as on_progress:
            outcome = pipeline.simulate(experiment, on_progress=on_progress)
        summary, limits = summarise(outcome), held_limits(loaded, outcome)
        choice = cheapest_of(experiment.policies, summary, experiment.useful_h, limits)
        able = {
            policy.name: of
            for policy, costs in ((each.policy, each.costs) for each in outcome.strategies)
            if (of := summary[policy.name])[FINISHED].mean == 1
            or (choice is None and costs.hours_of("wait").sum() > WAITS_FROM * costs.wall_h.sum())
            if policy is choice or not why_not(policy, summary, limits)
        }
        picks = [] if choice is None else [choice.name]
        # contents that are all bad may be why none finishes
        resources = resources_of(experiment.policies if choice is None else [choice], experiment)
        spares = spares_of(experiment, able, picks)
        decisive: dict[str, Any] = {"limits": limits, "spares": spares, "resources": resources}
        if choice is not None:
            shown = {choice.name: able[choice.name]["overhead_fraction"].mean}
            decisive["assumption"] = decisive_assumption(loaded, {choice.name: able}, shown)
        return write_run(target, loaded, experiment, outcome, draw, **decisive)

    def stored_run(number: int | None) -> StoredResult[Result]:
        return load_or_compute(folder, loaded, load_result, simulated, replay=number)

    stored = stored_run(replay_number(replay, lambda: stored_run(None).made))
    answer = answer_of_run(stored.made, **stored.about())
    return answer if most is None else _judged(answer, most)


def _share(option: str, value: float | str) -> float:
    """Parse a share of useful time. Raises ParameterError for another value."""
    share = options.number_of(option, value, "10% or 0.1")
    if not (0 <= share < 1 or (share >= 1 and str(value).strip().endswith("%"))):
        rule = "a number without % is a share of useful time, from 0 to below 1"
        raise ParameterError(f"{value}: {rule}; write 10% or 0.1, and 100% for all", option)
    return share


def _judged(answer: Answer, most: float) -> Answer:
    """The answer with the exit code for the least overhead; its reason is printed on stderr."""
    chosen = answer.values["recommendation"]
    overhead = inf if chosen is None else chosen["overhead"]["mean"]
    if overhead <= most:
        return answer
    least = "no strategy finishes every job" if chosen is None else (
        f"the least overhead, of {chosen['name']}, is {100 * overhead:.3g} %"
    )  # fmt: skip
    watch.warn(f"--fail-above: {least}, over {100 * most:.3g} %")
    return replace(answer, exit_code=TOO_MUCH)


def replay_number(replay: int | str | None, all_replications: Callable[[], Result]) -> int | None:
    """The replication that ``--replay`` names; None where it was not given.

    Raises ParameterError: it is neither a number nor a name, or no replication finished.
    """
    if replay is None:
        return None

    text = str(replay).lower()
    if text in SHARES:
        numbers = worth_seeing(all_replications())
        if not numbers:
            message = f"`{replay}` needs finished replications, and there are none: name a number"
            raise ParameterError(message, option="--replay")
        return numbers[text]
    if re.fullmatch(r"\+?\d{1,20}", text, re.ASCII) is None or int(text) > MOST_REPLAYED:
        right = f"a number from 0 to {MOST_REPLAYED:,} nor one of {', '.join(SHARES)}"
        raise ParameterError(f"{one_line(text)!r} is neither {right}", option="--replay")
    return int(text)
