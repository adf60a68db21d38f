"""What tests of several rooms share: a small scenario, experiments of one, the program called."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from math import inf
from pathlib import Path

import pytest
import typer.testing
from markupsafe import Markup
from typer.testing import CliRunner, Result

from cprsim.cli.app import app
from cprsim.job.distributions import Constant
from cprsim.job.policy import Policy
from cprsim.job.records import Cluster, Costs, Decision, Holds, Role, SubSaves
from cprsim.recovery.paper import strategy
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.reading import load_scenario
from cprsim.workers import Workers

SCENARIOS = Path(__file__).parents[1] / "scenarios"  # those that ship
PATIENCE_S = 600  # with a process: a busy machine is slow, not wrong
PROGRAM = [sys.executable, "-m", "cprsim"]
WITHOUT_FIGURES = "from cprsim.pages import figures; figures.save_figures = lambda *_, **__: []"

SERVERS = Cluster((Role("emb_ps", 4, Holds.SHARD),))
FREE = Costs(*[Constant(0.0)] * 4)
Make = Callable[..., Experiment]
PRICES = """\
prices:
  node_hour: {trainer: 2.57 USD, any: 0.83 USD}
  storage_month: 0.023
  storage_written: 0.0057
  watts: {trainer: 713, any: 351}
  kwh: 0.117
  carbon_kg_per_kwh: 0.4
"""


def paper_policy(
    name: str, on_failure: str, interval_h: float = inf, interval_rule: str = "given",
    decision: Decision | None = None, sub_saves: SubSaves | None = None,
    costs: Costs = FREE, cluster: Cluster = SERVERS,
) -> Policy:  # fmt: skip
    """A strategy of the paper."""
    return strategy(
        name, on_failure, costs, cluster, interval_h, interval_rule, decision=decision,
        sub_saves=sub_saves,
    )  # fmt: skip


@contextmanager
def small_cluster() -> Iterator[Workers]:
    """Two worker processes behind dask's scheduler, as on several machines.

    Each cluster takes a free port for its pages, so that two test processes may have one each.
    """
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield Workers(backend="dask", address=cluster.scheduler_address)


@contextmanager
def undrawing() -> Iterator[None]:
    """Results and pages without the seconds that their figures take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cprsim.pages.figures.save_figures", lambda *_, **__: [])
        patch.setattr("cprsim.pages.figures.save_figure", lambda *_, **__: [])
        patch.setattr("cprsim.pages.html.inline", lambda *_: Markup("<svg></svg>"))
        yield


def small_scenario(
    recovery: str = "full, {strategy: partial, interval: young}, {strategy: cpr, target_pls: 0.1}",
    *,
    mtbf: str = "10 h",
    replications: int = 20,
) -> str:
    """The text of a scenario of a few lines, which runs in no time."""
    return f"""\
name: small
job: {{useful: 20 h}}
cluster: {{trainers: 2, emb_ps: 4}}
failures: {{kind: job, family: exponential, mtbf: {mtbf}}}
costs: {{save: 5 min, load: 3 min, detect: 30 s, reschedule: 2 min}}
recovery: [{recovery}]
simulation: {{seed: 1, replications: {replications}}}
"""


def maker(folder: Path, text: str) -> Make:
    """Makes experiments of a scenario's text, with overrides."""
    path = folder / "scenario.yaml"
    path.write_text(text, "utf-8")
    return lambda *overrides: assemble(load_scenario(path, list(overrides)))


# Made once: typer makes all commands anew for each call, which takes longer than most of them run.
typer.testing._get_command = cache(typer.testing._get_command)


def call(*arguments: object) -> Result:
    """Call the program in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
