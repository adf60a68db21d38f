"""``select``: the cheapest strategy and its interval within a limit of accuracy loss."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os.path import relpath
from typing import Annotated, Any

from cprsim.commands import command, options
from cprsim.commands.select.answer import answer_of_select, document_of_select
from cprsim.commands.select.record import Selection, load_selection, write_selection
from cprsim.commands.select.selection import make_selection, prepare
from cprsim.pages.answer import Answer
from cprsim.pages.figures import drawing
from cprsim.results.folder import ResultTarget, load_or_compute

Number = Annotated[float | str | None, options.CliOption(metavar="NUMBER|PERCENT")]


@command("cprsim select criteo-kaggle --max-auc-loss 0.02%")
def select(
    scenario: options.ScenarioLike,
    overrides: options.Overrides = (),
    *,
    max_auc_loss: Number = None,
    max_log_loss: Number = None,
    target_pls: Number = None,
    max_loss: Annotated[
        Mapping[str, float | str] | Sequence[str],
        options.CliOption(metavar="METRIC=LOSS", many=True),
    ] = (),
    confidence: float | None = None,
    risk: Annotated[float | str | None, options.CliOption(metavar="mean|SHARE")] = None,
    curve: Annotated[Any, options.CliOption(metavar="FILE|NAME", complete="curve")] = None,
    seed: options.Seed = None,
    replications: int | None = None,
    folder: options.ResultsFolder = None,
) -> Answer:
    """Choose strategy and interval within a limit of accuracy loss.

    Every candidate is simulated with the scenario's failures. A staleness curve predicts losses of
    accuracy; the loss's upper confidence bound must not exceed the limit. Full recovery is
    compared at its own best interval, and recommended unless a candidate of known loss costs
    significantly less. Recovery systems of the scenario are compared, too; no limit is needed if no
    candidate leaves shards stale. A limit given here replaces all limits of the scenario.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`.
    max_auc_loss : float or str, optional
        Allowed loss of AUC: 0.0002 or 0.02%; default: the limit of the scenario.
    max_log_loss : float or str, optional
        Allowed rise of the log-loss; default: the limit of the scenario.
    target_pls : float or str, optional
        Allowed portion of lost samples, as in CPR: 0.05 or 5%; default: the limit of the scenario.
    max_loss : mapping or sequence of str, optional
        Allowed loss in another metric of the curve, such as ne=0.0005; default: the scenario's.
    confidence : float, optional
        Confidence of the upper bound; default: the scenario's, or 0.95.
    risk : float or str, optional
        Share of jobs whose loss must be within the limit (0.99: all but 1 %), or `mean` for the
        mean loss; default: the scenario's.
    curve : str, Path or Answer, optional
        Staleness curve: a file (.json, .csv) or a shipped one; default: the scenario's.
    seed : int, optional
        Seed of all random numbers; default: the scenario's.
    replications : int, optional
        Replications of each candidate; default: 100 to 4,000, by the number of failures.
    folder : str or Path, optional
        Folder of the results folders. None: nothing is kept.

    Returns
    -------
    Answer
        ``frames["strategies"]``: each strategy at its best interval, whether it is recommended,
        and its entry in a scenario. ``frames["candidates"]``: the candidates of the figure and of
        CPR's formulas.
        ``values["recommendation"]``, ``values["recovery"]`` (the section of a scenario).

    Raises
    ------
    CprsimError
        An input is wrong or missing.

    Examples
    --------
    >>> answer = cprsim.select("criteo-kaggle", max_auc_loss=0.0002, replications=200)
    >>> answer.values["recommendation"]["name"]
    'cpr-ssu'
    """
    source = options.source_of(scenario, overrides)
    if curve is not None:
        curve = str(getattr(curve, "folder", None) or curve)
        if curve.lower().endswith((".json", ".csv")):
            curve = relpath(curve, source.path.parent)
    overridden = options.shortcuts(seed=seed)
    overridden += options.shortcuts("accuracy", confidence=confidence, risk=risk, curve=curve)
    limits = {"max_auc_loss": max_auc_loss, "max_log_loss": max_log_loss, "target_pls": target_pls,
              "max_loss": max_loss or None}  # fmt: skip
    if any(limit is not None for limit in limits.values()):  # they replace those of the scenario
        for key, limit in limits.items():
            option = f"--{key.replace('_', '-')}"
            overridden.append(f"{option} accuracy.{key}={json.dumps(_numbers(option, limit))}")

    loaded, evaluator = prepare(options.source_of(source, overridden).read, replications)

    draw = drawing(folder, lambda made: document_of_select(made).drawings)

    def selected(target: ResultTarget) -> Selection:
        return write_selection(target, make_selection(loaded, evaluator), draw)

    stored = load_or_compute(folder, loaded, load_selection, selected, kind="select")
    return answer_of_select(stored.made, **stored.about())


def _numbers(option: str, value: Any) -> Any:
    """A limit as a number (0.0002, 0.02%), or limits by metric (ne=0.0005, or a mapping)."""
    if isinstance(value, Mapping):
        return {name: _numbers(option, limit) for name, limit in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        pairs = [text.partition("=") for text in value]
        return {name.strip(): _numbers(option, most) for name, _, most in pairs}
    if not isinstance(value, str):
        return value
    like = "ne=0.0005" if option == "--max-loss" else "0.0002 or 0.02%"
    return options.number_of(option, value, like)
