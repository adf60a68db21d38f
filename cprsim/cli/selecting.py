"""What ``cprsim select`` does between the scenario and the table; heavy to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cprsim.cli.progress import counting
from cprsim.cli.pulse import pulse
from cprsim.curves import chosen_curve, shipped_names
from cprsim.errors import ParameterError, ScenarioError
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.records import SubSaves
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.folder import ResultTarget
from cprsim.scenario import LoadedScenario, load_scenario
from cprsim.selector import (
    NO_LIMIT,
    WAYS,
    Limit,
    LimitedQuantity,
    Selection,
    loses,
    select,
    ways_of,
)
from cprsim.selector.folder import write_selection
from cprsim.selector.parameters import variants
from cprsim.selector.pricing import Way, affordable
from cprsim.staleness import StalenessCurve

LIMITS = {
    "max_auc_loss": LimitedQuantity.AUC,
    "max_log_loss": LimitedQuantity.LOG_LOSS,
    "target_pls": LimitedQuantity.PLS,
}
HOW = "--max-auc-loss, --max-log-loss, --max-loss METRIC=LOSS or --target-pls"


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


def asked(scenario: Path, overrides: list[str], replications: int | None) -> SelectRequest:
    """Read and check all that a selection needs. Raises CprsimError for what is wrong."""
    loaded = load_scenario(scenario, overrides)
    experiment = assemble(loaded, with_policies=False)
    _require_selectable(loaded)
    ways = _ways(loaded, experiment)
    limited = any(loses(name, way, experiment) for name, way in ways.items())
    limit = limit_of(loaded) if limited or _limits(loaded) else NO_LIMIT
    n = replications
    if n is None:
        n = affordable(experiment, tail=limit.risk is not None)
    loaded = load_scenario(scenario, [*overrides, f"simulation.replications={n}"])
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
    for number, entry in enumerate(loaded.scenario.recovery):
        if entry.name not in ways or isinstance(ways[entry.name], SubSaves | None):
            continue
        try:
            loses(entry.name, ways[entry.name], experiment)
        except ParameterError as error:
            key = f"recovery.{number}"
            raise ScenarioError.at(loaded.place(key), str(error), key=key) from error
    return ways


def _require_selectable(loaded: LoadedScenario) -> None:
    """Raise ScenarioError for what no selection can take into account."""
    for number, entry in enumerate(loaded.scenario.recovery):
        if entry.costs is not None and entry.strategy not in SYSTEMS:
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


def select_into(target: ResultTarget, wanted: SelectRequest) -> Selection:
    """Select, and write the results folder.

    Raises CprsimError for whatever goes wrong; nothing is written then.
    """
    experiment = wanted.experiment
    draws = variants(wanted.loaded, experiment.n_replications or 0)
    with counting("candidates simulated") as on_priced:
        selection = select(
            experiment, wanted.curve, wanted.limit, wanted.ways, on_priced, draws=draws
        )

    def draw(folder: Path) -> None:
        pulse.doing("drawing figures")
        from cprsim.plots.save import save_figure
        from cprsim.plots.selection import selection_figure

        save_figure(selection_figure(selection, wanted.name), folder / "pareto")

    return write_selection(target, selection, draw)
