"""``cprsim select``: which strategy, at which interval, within the accuracy that may be lost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from cprsim.cli.options import RESULTS, AsJson, OutFolder, Overrides, ScenarioFile
from cprsim.cli.saying import show
from cprsim.errors import ParameterError

NUMBER = "NUMBER|PERCENT"


def _number(text: str) -> float:
    """``0.0002``, or the same as ``0.02%``. Raises BadParameter for anything else."""
    said = text.strip()
    try:
        return float(f"{said[:-1].strip()}e-2" if said.endswith("%") else said)
    except ValueError:
        raise typer.BadParameter(f"{said[:80]!r} is no number, such as 0.0002 or 0.02%") from None


def select(
    scenario: ScenarioFile,
    overrides: Overrides = [],  # noqa: B006
    max_auc_loss: Annotated[
        float | None,
        typer.Option(
            parser=_number,
            metavar=NUMBER,
            help="AUC that may be lost: 0.0002 or 0.02%.",
            show_default=False,
        ),
    ] = None,
    max_log_loss: Annotated[
        float | None,
        typer.Option(
            parser=_number,
            metavar=NUMBER,
            help="By what the log-loss may rise.",
            show_default=False,
        ),
    ] = None,
    target_pls: Annotated[
        float | None,
        typer.Option(
            parser=_number,
            metavar=NUMBER,
            help="Portion of samples that may be lost, as in CPR: 0.05 or 5%.",
            show_default=False,
        ),
    ] = None,
    max_loss: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC=LOSS",
            help="What may be lost in another metric of the curve, such as ne=0.0005.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="The limit holds at this upper bound; default 0.95.", show_default=False),
    ] = None,
    risk: Annotated[
        str | None,
        typer.Option(
            metavar="mean|SHARE",
            help="What keeps the limit: the mean over jobs, or this share of single jobs.",
            show_default=False,
        ),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="The staleness curve: a file (.json, .csv), or the name of a shipped one.",
            show_default=False,
        ),
    ] = None,
    replications: Annotated[
        int | None,
        typer.Option(
            help="Replications of each candidate; default as many as tell candidates apart.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    out: OutFolder = RESULTS,
) -> None:
    """Choose strategy and interval so that the accuracy lost stays within a limit.

    Every candidate is simulated with the scenario's failures; its loss is that of the staleness
    curve, held to the limit at an upper confidence bound. Full recovery is compared at its own
    best interval, and is recommended where nothing surely costs less. Recovery systems that the
    scenario lists are compared at their best intervals, too; where nothing compared loses samples,
    no limit is needed.
    """
    started = datetime.now(UTC)
    limits = {
        "max_auc_loss": max_auc_loss,
        "max_log_loss": max_log_loss,
        "target_pls": target_pls,
        "max_loss": _limit_by_name(max_loss),
    }
    from cprsim.cli.finished import target_of
    from cprsim.cli.watching import ON_STDERR
    from cprsim.making import selecting
    from cprsim.present.selection import selection_as_json, selection_blocks
    from cprsim.scenario import load_scenario

    all_overrides = [*overrides, *selecting.said_of_limits(limits, confidence, risk)]
    all_overrides += selecting.said_of_curve(curve, scenario)
    asked = selecting.asked(
        lambda more: load_scenario(scenario, [*all_overrides, *more]), replications
    )
    target = target_of(out, asked.loaded, started, "select")
    made, there = selecting.select_into(target, asked, ON_STDERR)
    show(
        lambda: selection_as_json(made),
        lambda: selection_blocks(made, asked.experiment.cluster.n_nodes, found_again=there),
        as_json=as_json,
    )


def _limit_by_name(text: str | None) -> dict[str, float] | None:
    """What ``ne=0.0005`` limits. Raises ParameterError for anything else."""
    if text is None:
        return None
    from cprsim.staleness import Metric

    name, _, most = text.partition("=")
    try:
        return {Metric(name.strip()).value: _number(most)}
    except (ParameterError, typer.BadParameter):
        message = f"--max-loss: {text[:80]!r} is no METRIC=LOSS, such as ne=0.0005"
        raise ParameterError(message) from None
