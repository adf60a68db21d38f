"""What a scenario asks of a selection: the limit, the curve, what is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cprsim.curves.choosing import chosen_curve, shipped_names, stand_ins
from cprsim.errors import ParameterError, Problem, ScenarioError, watch
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.recovery.losses import Metric
from cprsim.recovery.paper import STRATEGIES
from cprsim.results.money import cheapest_of, prices_of
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.yaml_text import dump_plain
from cprsim.selector.choice import Selection
from cprsim.selector.limit import NO_LIMIT, PLS, Limit
from cprsim.selector.option import Option, options_of
from cprsim.selector.parameters import variants
from cprsim.selector.pricing import affordable
from cprsim.selector.selecting import select
from cprsim.selector.unknown import sensitivity_of

LIMITS = {
    "max_auc_loss": Metric.AUC,
    "max_log_loss": Metric.LOG_LOSS,
    "target_pls": PLS,
}
HOW = "--max-auc-loss, --max-log-loss, --max-loss METRIC=LOSS or --target-pls"
Load = Callable[[Sequence[str]], LoadedScenario]  # the scenario with further overrides


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that decides a selection."""

    loaded: LoadedScenario
    experiment: Experiment
    limit: Limit
    options: Mapping[str, Option]


def question_of(load: Load, replications: int | None) -> Question:
    """Check all that a selection needs. Raises CprsimError for what is wrong."""
    loaded = load([])
    experiment, limit = assemble(loaded, with_policies=False), limit_of(loaded, priced=False)
    for number, entry in enumerate(loaded.scenario.recovery):
        if entry.costs is not None and entry.strategy in STRATEGIES:
            message = (
                f"a selection prices `{entry.strategy}` at the section `costs`: put these there; "
                "recovery systems may have their own"
            )
            raise _wrong(loaded, f"recovery.{number}.costs", message)
    options, limited = _options(loaded, experiment)
    if limited and limit is None:
        message = f"there is no limit; say what may be lost with one of {HOW}"
        raise _wrong(loaded, "accuracy", message)
    limit = limit_of(loaded, priced=limited) or NO_LIMIT
    n = replications
    if n is None:
        n = affordable(experiment, tail=limit.risk is not None)
    loaded = load([f"--replications simulation.replications={n}"])
    experiment = assemble(loaded, with_policies=False)
    return Question(loaded, experiment, limit, options)


def _options(loaded: LoadedScenario, experiment: Experiment) -> tuple[dict[str, Option], bool]:
    """What is compared with full recovery, and whether any of it loses samples.

    Raises ScenarioError where a system does not fit.
    """
    try:
        options = options_of(experiment)
    except ParameterError as error:
        raise _wrong(loaded, "recovery", str(error)) from None
    limited, problems = False, []
    names = [entry.name for entry in loaded.scenario.recovery]
    for name, option in options.items():
        try:
            limited |= option.loses(experiment)
        except ParameterError as error:
            key = f"recovery.{names.index(name)}"
            problems.append(Problem(loaded.place(key), key, str(error)))
    if problems:
        raise ScenarioError(problems)
    return options, limited


def limit_of(loaded: LoadedScenario, *, priced: bool = True) -> Limit | None:
    """The limit that the section `accuracy` names; None where it names none.

    Raises ScenarioError where it names several, or, if it has to be priced, one that no curve does.
    """
    section = loaded.scenario.accuracy
    if section is None:
        return None
    known = {quantity: getattr(section, key) for key, quantity in LIMITS.items()}
    named = {Metric(name): most for name, most in (section.max_loss or {}).items()}
    found = [(what, most) for what, most in (known | named).items() if most is not None]
    if len(found) > 1:
        raise _wrong(loaded, "accuracy", f"there are {len(found)} limits: keep one of {HOW}")
    if not found:
        return None
    if priced and found[0][0] != PLS and chosen_curve(loaded) is None:
        message = (
            "no staleness curve applies, so that an accuracy limit means nothing: name one with "
            f"--curve (shipped: {', '.join(shipped_names()) or 'none'}; or a CSV of your own, see "
            f"docs/staleness.md), or measure one: cprsim measure {loaded.path}"
        )
        raise ScenarioError.at(loaded.place("accuracy"), message, key="accuracy.curve")
    risk = None if section.risk == "mean" else float(section.risk)
    return Limit(*found[0], section.confidence, risk)


def _wrong(loaded: LoadedScenario, key: str, message: str) -> ScenarioError:
    return ScenarioError.at(loaded.place(key), message, key=key)


def answered(asked: Question) -> Selection:
    """The selection, with what would make another candidate the cheapest."""
    loaded, experiment, limit = asked.loaded, asked.experiment, asked.limit
    others = stand_ins(loaded) if limit.metric else ()
    varied = variants(loaded, experiment.simulation.replications or 0)
    with watch.progress("selecting") as on_progress:
        selection = select(
            experiment, limit, asked.options, on_progress, draws=varied, stand_ins=others
        )
    bills = selection.bills(prices_of(loaded.scenario))
    best = cheapest_of(bills) if bills else selection.chosen.strategy
    costs = {name: one.overhead.mean for name, one in selection.finishing.items()}
    if bills:
        costs = {name: float(one.month.total_cents) for name, one in bills.items()}
    unsure, accuracy = sensitivity_of(loaded, selection.entries, costs, best), ""
    if selection.limited and loaded.scenario.accuracy is not None:
        plain = loaded.scenario.accuracy.model_dump(mode="json", exclude_defaults=True)
        accuracy = f"accuracy: {dump_plain(plain, on_one_line=True).strip()}"
    return replace(selection, accuracy=accuracy, sensitivity=unsure)
