"""A selection between the scenario and its results folder; heavy to import."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import relpath
from pathlib import Path

from cprsim.curves import chosen_curve, shipped_names, stand_ins
from cprsim.errors import ParameterError, Problem, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.making.deciding import sensitivity_of
from cprsim.making.options import shortcuts
from cprsim.making.watch import Watch
from cprsim.records import SubSaves
from cprsim.recovery.paper import STRATEGIES
from cprsim.results.folder import ResultTarget, finished_or_make
from cprsim.results.money import cheapest_of, prices_of
from cprsim.results.sensitivity import Sensitivity
from cprsim.scenario import LoadedScenario, dump_plain
from cprsim.selector.bills import bills_of_selection
from cprsim.selector.choice import Selection
from cprsim.selector.deciding import WAYS, loses, ways_of
from cprsim.selector.folder import Selected, load_selected, write_selection
from cprsim.selector.limit import NO_LIMIT, Limit, LimitedQuantity
from cprsim.selector.parameters import variants
from cprsim.selector.pricing import Way, affordable
from cprsim.selector.selecting import select
from cprsim.selector.words import entries
from cprsim.staleness import StalenessCurve

LIMITS = {
    "max_auc_loss": LimitedQuantity.AUC,
    "max_log_loss": LimitedQuantity.LOG_LOSS,
    "target_pls": LimitedQuantity.PLS,
}
Load = Callable[[Sequence[str]], LoadedScenario]  # the scenario with further overrides
HOW = "--max-auc-loss, --max-log-loss, --max-loss METRIC=LOSS or --target-pls"


def said_of_limits(
    limits: Mapping[str, float | Mapping[str, float] | None],
    confidence: float | None,
    risk: str | float | None,
) -> list[str]:
    """What a limit means as overrides of the scenario; it takes the file's away."""
    overrides = []
    if any(limit is not None for limit in limits.values()):
        overrides += [
            f"--{key.replace('_', '-')} accuracy.{key}={json.dumps(limit, default=dict)}"
            for key, limit in limits.items()
        ]
    if confidence is not None:
        overrides.append(f"--confidence accuracy.confidence={confidence}")
    if risk is not None:
        overrides.append(f"--risk accuracy.risk={risk}")
    return overrides


def said_of_curve(curve: str | None, scenario: Path) -> list[str]:
    """A curve's file is named relative to where the user is, in a scenario relative to that."""
    if curve is None:
        return []
    is_file = curve.lower().endswith((".json", ".csv"))
    named = relpath(curve, scenario.parent) if is_file else curve
    return [f"--curve accuracy.curve={named}"]


@dataclass(frozen=True, slots=True)
class SelectRequest:
    """Everything that decides a selection."""

    loaded: LoadedScenario
    experiment: Experiment
    limit: Limit
    curve: StalenessCurve | None
    ways: Mapping[str, Way]

    @property
    def name(self) -> str:
        return self.loaded.scenario.name


def asked(load: Load, replications: int | None) -> SelectRequest:
    """Check all that a selection needs. Raises CprsimError for what is wrong."""
    loaded = load([])
    experiment = assemble(loaded, with_policies=False)
    _require_selectable(loaded)
    ways = _ways(loaded, experiment)
    limited = any(loses(name, way, experiment) for name, way in ways.items())
    limit = limit_of(loaded) if limited or _limits(loaded) else NO_LIMIT
    n = replications
    if n is None:
        n = affordable(experiment, tail=limit.risk is not None)
    loaded = load(shortcuts(None, n))
    curve = chosen_curve(loaded)
    if limited and curve is None and limit.quantity != LimitedQuantity.PLS:
        raise _no_curve(loaded)
    experiment = assemble(loaded, with_policies=False)
    return SelectRequest(loaded, experiment, limit, curve, _ways(loaded, experiment))


def _ways(loaded: LoadedScenario, experiment: Experiment) -> dict[str, Way]:
    """What is compared with full recovery. Raises ScenarioError where a system does not fit."""
    try:
        ways = ways_of(experiment, {**WAYS, **loaded.scenario.sub_saves_of})
    except ParameterError as error:
        raise ScenarioError.at(loaded.place("recovery"), str(error), key="recovery") from None
    problems = []
    for number, entry in enumerate(loaded.scenario.recovery):
        if entry.name not in ways or isinstance(ways[entry.name], SubSaves | None):
            continue
        try:
            loses(entry.name, ways[entry.name], experiment)
        except ParameterError as error:
            key = f"recovery.{number}"
            problems.append(Problem(loaded.place(key), key, str(error)))
    if problems:
        raise ScenarioError(problems)
    return ways


def _require_selectable(loaded: LoadedScenario) -> None:
    """Raise ScenarioError for what no selection can take into account."""
    for number, entry in enumerate(loaded.scenario.recovery):
        if entry.costs is not None and entry.strategy in STRATEGIES:
            key = f"recovery.{number}.costs"
            message = (
                f"a selection prices `{entry.strategy}` at the section `costs`: put these there; "
                "recovery systems may have their own"
            )
            raise ScenarioError.at(loaded.place(key), message, key=key)


def _limits(loaded: LoadedScenario) -> dict[LimitedQuantity, float]:
    """The limits that the section `accuracy` names."""
    section = loaded.scenario.accuracy
    if section is None:
        return {}
    known = {quantity: getattr(section, key) for key, quantity in LIMITS.items()}
    named = {LimitedQuantity(name): most for name, most in (section.max_loss or {}).items()}
    return {quantity: most for quantity, most in (known | named).items() if most is not None}


def limit_if_any(loaded: LoadedScenario) -> Limit | None:
    """The limit that the section `accuracy` names; None where it names none.

    Raises ScenarioError where it names several, or one of accuracy that no curve prices.
    """
    if not _limits(loaded):
        return None
    limit = limit_of(loaded)
    if limit.quantity != LimitedQuantity.PLS and chosen_curve(loaded) is None:
        raise _no_curve(loaded)
    return limit


def limit_of(loaded: LoadedScenario) -> Limit:
    """The one limit that the section `accuracy` names.

    Raises ScenarioError where it names none, or several.
    """
    section, named = loaded.scenario.accuracy, _limits(loaded)
    if len(named) != 1 or section is None:
        wrong = f"there are {len(named)} limits: keep one" if named else "there is no limit"
        message = f"{wrong}; say what may be lost with one of {HOW}"
        raise ScenarioError.at(loaded.place("accuracy"), message, key="accuracy")
    ((quantity, most),) = named.items()
    risk = None if section.risk == "mean" else float(section.risk)
    return Limit(quantity, most, section.confidence, risk)


def _no_curve(loaded: LoadedScenario) -> ScenarioError:
    message = (
        "no staleness curve applies, so that an accuracy limit means nothing: name one with "
        f"--curve (shipped: {', '.join(shipped_names()) or 'none'}; or a CSV of your own, see "
        f"docs/staleness.md), or measure one: cprsim measure {loaded.path}"
    )
    return ScenarioError.at(loaded.place("accuracy"), message, key="accuracy.curve")


def select_into(
    target: ResultTarget, wanted: SelectRequest, watch: Watch, *, draws: bool = True
) -> tuple[Selected, bool]:
    """Select and write the results folder, or find it there.

    Raises CprsimError: of whatever goes wrong; nothing is written then.
    """

    def draw(selection: Selection, folder: Path) -> None:
        from cprsim.plots.save import save_figures
        from cprsim.plots.selection import selection_figures

        if draws:
            watch.doing("drawing figures")
            save_figures(selection_figures(selection, wanted.name), folder)

    def make() -> Selected:
        return write_selection(target, _selection(wanted, watch), draw)

    return finished_or_make(target.folder, load_selected, make, warn=watch.warn)


def _selection(wanted: SelectRequest, watch: Watch) -> Selection:
    experiment = wanted.experiment
    varied = variants(wanted.loaded, experiment.simulation.replications or 0)
    with watch.counting("candidates simulated") as on_priced:
        selection = select(
            experiment, wanted.curve, wanted.limit, wanted.ways, on_priced, draws=varied,
            stand_ins=stand_ins(wanted.loaded) if wanted.limit.quantity.metric else (),
        )  # fmt: skip
        return replace(
            selection,
            accuracy=_accuracy(wanted.loaded) if selection.limited else "",
            sensitivity=_sensitivity(wanted, selection, on_priced),
        )


def _accuracy(loaded: LoadedScenario) -> str:
    """The section `accuracy`, what options say in it, as a scenario says it."""
    assert loaded.scenario.accuracy is not None, "it has the limit"
    plain = loaded.scenario.accuracy.model_dump(mode="json", exclude_defaults=True)
    return f"accuracy: {dump_plain(plain, on_one_line=True).strip()}"


def _sensitivity(
    wanted: SelectRequest, selection: Selection, on_priced: Callable[[], None]
) -> Sensitivity | None:
    """What would make another candidate the cheapest of those that keep the limit."""
    bills = bills_of_selection(selection, prices_of(wanted.loaded.scenario))
    found = entries(selection)
    if bills:
        costs = {name: float(one.month.total_cents) for name, one in bills.items()}
        return sensitivity_of(wanted.loaded, found, costs, cheapest_of(bills), on_priced)
    shown = [selection.full, *(one for one in selection.best.values() if one is not None)]
    costs = {one.strategy: one.overhead.mean for one in shown if one.finished_fraction == 1}
    return sensitivity_of(wanted.loaded, found, costs, selection.chosen.strategy, on_priced)
