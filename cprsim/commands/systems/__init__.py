"""``systems``: list the recovery systems, or find the cheapest for a job."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from cprsim.commands import command, options
from cprsim.commands.run.sentences import resources_of
from cprsim.commands.select.evaluation import choose_replications
from cprsim.commands.systems.answer import answer_of_systems, document_of_systems
from cprsim.commands.systems.candidates import LeftOut, at_their_best, candidates_of, split_save
from cprsim.commands.systems.comparison import (
    SYSTEMS_FILE,
    Comparison,
    assumptions,
    facts_of_system,
    load_comparison,
)
from cprsim.commands.systems.listing import (
    answer_of_explanation,
    answer_of_listing,
    made_up_job,
    scenario_job,
)
from cprsim.errors import ParameterError, watch
from cprsim.pages.answer import Answer
from cprsim.pages.figures import save_figures
from cprsim.results import pipeline
from cprsim.results.folder import ResultTarget, load_or_compute, write_record
from cprsim.results.limit import held_limits, limit_of
from cprsim.results.run import Result, write_run
from cprsim.results.unknown import break_evens_of, decisive_assumption, spares_of
from cprsim.scenario.assemble import assemble


@command("cprsim systems llm --only full --only gemini")
def systems(
    scenario: options.ScenarioLike | None = None,
    overrides: options.Overrides = (),
    *,
    explain: Annotated[str | None, options.CliOption(metavar="NAME", complete="system")] = None,
    listed: Annotated[bool, options.CliOption("--list")] = False,
    only: Annotated[
        Sequence[str], options.CliOption(metavar="NAME", many=True, complete="system")
    ] = (),
    available: bool = False,
    fixed: bool = False,
    seed: options.Seed = None,
    replications: int | None = None,
    folder: options.ResultsFolder = None,
) -> Answer:
    """Compare the recovery systems that a job can run, or list all.

    Without a scenario all are listed. With one, those that its job can run are simulated on the
    same failures, each at its best interval, and compared with the cheapest that loses no accuracy.
    Systems have the options in the scenario, else their defaults.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`. None: systems are listed and explained for a made-up job.
    explain : str, optional
        Explain one system: copies, saves, rules, options, assumptions.
    listed : bool, default False
        List the systems for the scenario's job, without a simulation.
    only : sequence of str, optional
        Compare only this system; repeat the option for several.
    available : bool, default False
        Compare only systems with maintained software.
    fixed : bool, default False
        Keep each system at the scenario's interval, or at its default.
    seed : int, optional
        Seed of all random numbers; default: the scenario's.
    replications : int, optional
        Replications of each system; default: enough to distinguish intervals.
    folder : str or Path, optional
        Folder of the results folders. None: nothing is kept.

    Returns
    -------
    Answer
        ``frames["systems"]``: a row per system. Of a comparison, the cheapest first, with its
        difference to the best and the quantities of docs/concepts.md; ``frames["after"]``: the loss
        by each kind of failure. Of a list, also ``frames["options"]``.

    Raises
    ------
    CprsimError
        The scenario is wrong, or a system is unknown or can't run the job.

    Examples
    --------
    >>> answer = cprsim.systems("llm", only=["full", "gemini"], replications=100)
    >>> answer.values["best"]
    'gemini'
    """
    if scenario is None and (overrides or only):
        option = "--set" if overrides else "--only"
        raise ParameterError("applies to a job: name a scenario", option)
    source = None if scenario is None else options.source_of(scenario, overrides)
    if source is None or listed or explain is not None:
        job = made_up_job() if source is None else scenario_job(source.read())
        return answer_of_listing(job) if explain is None else answer_of_explanation(explain, job)

    loaded = source.read(options.shortcuts(seed=seed, replications=replications))
    limit, experiment = limit_of(loaded), assemble(loaded, with_policies=False)
    if replications is None:
        tail = limit is not None and limit.risk is not None
        enough = choose_replications(experiment, tail=tail)
        loaded = source.read(options.shortcuts(seed=seed, replications=enough))
        experiment = assemble(loaded, with_policies=False)
    candidates, left_out = candidates_of(
        loaded, experiment, limit, only=only, available=available, fixed=fixed
    )

    chosen = hashlib.sha256(" ".join(sorted(only)).encode()).hexdigest()[:6]
    kind = "systems", f"of-{chosen}" * bool(only), "available" * available, "fixed" * fixed

    def compared(target: ResultTarget) -> Comparison:
        at_best, dropped = candidates, dict[str, LeftOut]()
        if not fixed:
            with watch.progress("best interval of systems") as on_progress:
                at_best, dropped = at_their_best(candidates, experiment, limit, on_progress)
        run = replace(experiment, policies=tuple(candidate.policy for candidate in at_best))
        with watch.progress("simulating") as on_progress:
            outcome = pipeline.simulate(run, on_progress=on_progress)

        def finish(result: Result) -> None:
            facts = {candidate.name: facts_of_system(candidate, run) for candidate in at_best}
            comparison = Comparison(
                name=loaded.scenario.name,
                fixed=fixed,
                limit={"quantity": limit.quantity.value, "most": limit.most} if limit else None,
                facts=facts,
                left_out={**left_out, **dropped},
                assumed=(*assumptions(loaded.scenario), *split_save(experiment)),
                result=result,
                today=next((candidate.name for candidate in at_best if candidate.is_today), ""),
            )
            costs, best = comparison.costs_that_count()
            if best is not None:
                shown = {system.name: system.overhead.mean for system in comparison.ranked_systems}
                entries = {name: known.text for name, known in facts.items()}
                choices = {best: [*costs]}
                if (runs := comparison.cheapest_that_runs) is not None and runs.name != best:
                    choices[runs.name] = [name for name in costs if facts[name].runs_anywhere]
                comparison = replace(
                    comparison,
                    break_evens=break_evens_of(loaded, entries, costs, best),
                    assumption=decisive_assumption(loaded, choices, shown, entries),
                )
            watch.doing("simulating numbers of spares")
            able = comparison.able or filter(None, [comparison.now])
            by_name = {system.name: system.summary for system in able}
            spares = spares_of(run, by_name, [system.name for system in comparison.picks])
            resources = resources_of([system.policy for system in comparison.picks], run)
            comparison = replace(comparison, spares=spares, resources=resources)
            write_record(result.path / SYSTEMS_FILE, comparison)
            if folder is not None:
                save_figures(document_of_systems(comparison).drawings, result.path)

        limits = held_limits(loaded, outcome)
        written = write_run(target, loaded, run, outcome, finish, replication=None, limits=limits)
        return load_comparison(written.path)

    stored = load_or_compute(
        folder, loaded, load_comparison, compared, kind="-".join(filter(None, kind))
    )
    return answer_of_systems(stored.made, **stored.about())
