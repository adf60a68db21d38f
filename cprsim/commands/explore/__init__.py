"""``explore``: a page in the browser, on which the answer moves with the numbers of a scenario."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge, Le

from cprsim.commands import command, options
from cprsim.errors import ParameterError
from cprsim.pages.answer import Answer


@command("cprsim explore quickstart --set failures.mtbf='20 h'")
def explore(
    scenario: options.ScenarioLike,
    overrides: options.Overrides = (),
    *,
    port: Annotated[int, Ge(0), Le(65535), options.CliOption(metavar="N")] = 0,
) -> Answer:
    """Move the numbers of a scenario on a page, and see its answer move.

    The page has a slider for each number, compares with today, the scenario as in its file, and
    saves what is set as a scenario. Only this machine reaches it, at the address that is printed.

    Parameters
    ----------
    scenario, overrides
        See `cprsim.load`. The overrides are set at first; today is without them.
    port : int, default 0
        Port of the page's address; 0: a free one.

    Returns
    -------
    Answer
        That of `cprsim.run` for what is set when the page's button ends it.

    Raises
    ------
    CprsimError
        The scenario is wrong, the port is in use, or Tornado is not installed.
    """
    try:
        from cprsim.commands.explore.server import serve
    except ImportError:
        message = "Tornado is not installed: pip install 'cprsim[explore]'"
        raise ParameterError(message) from None
    from cprsim.commands.explore.page import Explored
    from cprsim.scenario.reading import read_text

    source, sets = options.source_of(scenario), options.assignments(overrides)
    name = str(source.path)
    if source.written is None:  # a file, which is read once: today stays what it is
        name = str(scenario)
        source = options.Scenario(source.path, read_text(source.path), source.overrides)
    explored = Explored(source, name)
    explored.loaded(sets)  # reports wrong input before all else
    return serve(explored, sets, port)
