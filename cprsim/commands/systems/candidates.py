"""Candidates of a comparison: the scenario's entries and all other systems that can run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from cprsim.commands.select.decision import decide
from cprsim.commands.select.evaluation import (
    FULL,
    RELOADING,
    entry_at,
    evaluator_of,
    with_kept_saves,
)
from cprsim.commands.select.retention import fewest_kept_saves, with_fewest_kept_saves
from cprsim.errors import MissingKeyError, ParameterError, choices
from cprsim.job.policy import Policy
from cprsim.recovery.paper import NEVER, STRATEGIES
from cprsim.recovery.system import Family
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.limit import NO_LIMIT, Limit
from cprsim.results.words import hours
from cprsim.scenario.assemble import Experiment, policies_of, policy_of
from cprsim.scenario.failures import EMB_PS
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.recovery import NEEDS_TARGET, RecoverySection
from cprsim.scenario.schema import dump_entry

FOUND, LISTED, DEFAULT = "found", "listed", "default"  # origins of an interval
WITHOUT_SHARDS = ("none", "full")  # strategies that need no embedding servers
NO_SERVERS = "no embedding tables, whose rows or shards it saves: `cluster.emb_ps`"
PAPER_ONLY = "no maintained implementation (`--available`)"
TODAY = "today"  # name of the entry for the present recovery
NONE_KEEPS = "no interval is within the limit unless its saves cost too much"
NOT_KNOWN = "the staleness curve does not predict its loss"
NO_TARGET = "needs `target_pls`, the accepted portion of lost samples: add its entry to `recovery`"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why a system is not compared."""

    words: str
    key: str = ""  # the key that the scenario lacks


@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy or a system that can run the job."""

    entry: RecoverySection
    policy: Policy  # at its interval
    how: str  # origin of its interval
    is_today: bool = False  # whether it is the job's present recovery

    @property
    def name(self) -> str:
        return self.entry.name

    def text(self, useful_h: float) -> str:
        """Its entry under `recovery`, at the interval at which it is compared."""
        if self.how != FOUND:
            return dump_entry(self.entry)
        return entry_at(self.entry, self.policy.interval_h, useful_h)


def candidates_of(
    loaded: LoadedScenario,
    experiment: Experiment,
    limit: Limit | None = None,
    *,
    only: Sequence[str] = (),
    available: bool = False,
    fixed: bool = False,
) -> tuple[list[Candidate], dict[str, LeftOut]]:
    """Candidates that can run the job, and the reason for each that is left out, by name.

    Unless intervals are fixed, the present recovery (`today`, else the first entry) is compared
    at its own and at its best interval. `only`: these names; `available`: with maintained software.
    """

    def candidate_of(entry: RecoverySection, how: str, *, is_today: bool = False) -> Candidate:
        return Candidate(entry, policy_of(entry, experiment), how, is_today)

    policies_of(loaded, experiment)  # raises, with the line of an entry that can't run the job
    listed = list(loaded.scenario.recovery)
    first = next((entry for entry in listed if entry.name == TODAY), listed[0])
    candidates = [
        candidate_of(entry, LISTED, is_today=fixed and entry is first) for entry in listed
    ]
    if not fixed:
        now = candidate_of(first.model_copy(update={"name": TODAY}), LISTED, is_today=True)
        candidates = [now, *(candidate for candidate in candidates if candidate.name != TODAY)]
        if first.name == TODAY and all(
            candidate.name != first.strategy for candidate in candidates
        ):
            at_best = first.model_copy(update={"name": first.strategy})
            candidates.insert(1, candidate_of(at_best, LISTED))
    names, left_out = {candidate.name for candidate in candidates}, dict[str, LeftOut]()
    has_servers = any(role.name == EMB_PS for role in experiment.cluster.roles)
    others = SYSTEMS.keys() - {entry.strategy for entry in listed}
    for name in sorted(others, key=lambda name: (_rank(name), name)):
        searched = name in RELOADING and has_servers and limit is not None and not fixed
        fields = {"strategy": name} | ({"interval": NEVER} if searched else {})
        try:
            _require_able(name, names, has_servers=has_servers, searched=searched)
            candidates.append(candidate_of(RecoverySection.model_validate(fields), DEFAULT))
        except ParameterError as error:
            words = str(error).removeprefix(name).lstrip(": ")
            left_out[name] = LeftOut(words, MissingKeyError.key_of(error))
    if only:
        _require_known(only, {candidate.name for candidate in candidates}, left_out)
        left_out = {}
        asked_for = {*only, TODAY} if first.name in only else set(only)
        candidates = [candidate for candidate in candidates if candidate.name in asked_for]
    if available:
        on_paper = [
            candidate.name
            for candidate in candidates
            if not (candidate.is_today or candidate.entry.system.runs_as)
        ]
        candidates = [candidate for candidate in candidates if candidate.name not in on_paper]
        on_paper += [name for name in left_out if not SYSTEMS[name].runs_as]
        left_out |= dict.fromkeys(on_paper, LeftOut(PAPER_ONLY))
    return sorted(candidates, key=lambda candidate: _rank(candidate.entry.strategy)), left_out


def _require_able(name: str, names: set[str], *, has_servers: bool, searched: bool) -> None:
    """Raise ParameterError for a strategy that, without options, can't run the job."""
    if name in names:
        raise ParameterError("another entry of the scenario has its name")
    if name in WITHOUT_SHARDS:
        return
    if not has_servers and (name in STRATEGIES or SYSTEMS[name].family is Family.DELTAS):
        raise ParameterError(NO_SERVERS)
    if not searched and SYSTEMS[name].default("interval") in NEEDS_TARGET:
        raise ParameterError(NO_TARGET)


def _require_known(
    only: Sequence[str], comparable: set[str], left_out: Mapping[str, LeftOut]
) -> None:
    for name in only:
        if name in left_out:
            message = f"`{name}` can't run this job: {left_out[name].words}"
            raise ParameterError(message, option="--only")
        if name not in comparable:
            names = [*sorted(comparable), *sorted(left_out)]
            raise ParameterError(f"there is no `{name}`; {choices(name, names)}", "--only")


def _rank(name: str) -> int:
    """The paper's strategies in their order; all systems after them, with one rank."""
    return (*STRATEGIES, name).index(name)


# --------------------------------------------------------------------------- each at its best


def at_their_best(
    candidates: Sequence[Candidate],
    experiment: Experiment,
    limit: Limit | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Candidate], dict[str, LeftOut]]:
    """Candidates at their best intervals, and the reason for each that is left out, by name.

    Systems that leave shards stale are cheapest if they never save; without an accuracy limit they
    therefore keep the interval of their entry. CPR keeps the interval of its formula.
    """
    searched = [candidate for candidate in candidates if _is_searched(candidate, limit)]
    options = {candidate.name: candidate.entry for candidate in searched}
    named_full = options.get(FULL)
    if named_full is not None and named_full.strategy != FULL:
        raise ParameterError("a recovery system has the name `full`: give it another `name`")
    evaluator = evaluator_of(experiment, limit or NO_LIMIT, options)
    steps = count(1)
    decided = decide(evaluator, lambda: on_progress(next(steps), len(evaluator.options)))
    evaluator, decided = with_fewest_kept_saves(evaluator, decided)
    at_best, left_out = list[Candidate](), dict[str, LeftOut]()
    for candidate in candidates:
        if candidate.name not in options:
            at_best.append(_keeping_enough(candidate, experiment))
        elif (evaluated := decided.at_best.get(candidate.name)) is not None:
            entry = evaluator.options[candidate.name]
            if entry.system.interval is not None:
                policy = policy_of(entry, experiment, evaluated.policy.interval_h)
                candidate = replace(candidate, entry=entry, policy=policy, how=FOUND)
            at_best.append(candidate)
        else:
            left_out[candidate.name] = LeftOut(
                NONE_KEEPS if candidate.name in decided.best else NOT_KNOWN
            )
    return at_best, left_out


def _keeping_enough(candidate: Candidate, experiment: Experiment) -> Candidate:
    """A candidate at its own interval, with as many retained saves as silent errors need."""
    if candidate.is_today or experiment.scenario.silent is None:
        return candidate
    n = fewest_kept_saves(candidate.policy, experiment, 0.0)
    entry = with_kept_saves(candidate.entry, n, experiment)
    return replace(candidate, entry=entry, policy=policy_of(entry, experiment))


def _is_searched(candidate: Candidate, limit: Limit | None) -> bool:
    """Whether the best interval of a candidate is searched."""
    if candidate.is_today:
        return False
    if candidate.entry.strategy == FULL:
        return True
    if candidate.entry.strategy not in STRATEGIES:
        return limit is not None or not candidate.policy.leaves_stale
    return (
        candidate.entry.strategy in RELOADING
        and limit is not None
        and candidate.entry.costs is None
    )


# --------------------------------------------------------------------------- missing values


def missing_sentence(left_out: Mapping[str, LeftOut], n_systems: int) -> str:
    """The number of systems left out because the scenario lacks a key, by key; else empty."""
    n_of = Counter(why.key for why in left_out.values() if why.key)
    if not n_of:
        return ""
    keys = ", ".join(f"`{key}` ({n})" for key, n in n_of.most_common())
    return f"{n_of.total()} of {n_systems} systems are not compared, as the scenario lacks {keys}."


def split_save(experiment: Experiment) -> Iterator[str]:
    """How a save given as one time is divided for systems that save in the background."""
    job = experiment.facts
    if job.save_background is None and job.write_h and job.node_bytes_per_h:
        yield (
            f"Systems that save in the background divide `costs.save`: {hours(job.snapshot_h)} "
            f"to copy to host memory, {hours(job.persist_h)} to write (by state, storage and link)."
        )
