"""``cprsim.fit``: distributions from a log of failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cprsim.api import public
from cprsim.api.answer import Answer, Draw, table_of
from cprsim.fitting.report import FitReport
from cprsim.making.fit_log import log_asked, read_to_fit
from cprsim.making.options import BOOTSTRAP, JOB_NODES, SEED
from cprsim.plots.fit import fit_figures
from cprsim.present.document import Document
from cprsim.present.fit import document_of_fit
from cprsim.present.fit_json import causes_as_json
from cprsim.scenario import read_yaml

if TYPE_CHECKING:
    import pandas as pd

    from cprsim.fitting.trace_fit import Subject
    from cprsim.records import Estimate


class Fit(Answer):
    """What a log of failures says: how often a job fails, and by which distribution."""

    def __init__(self, report: FitReport) -> None:
        self._report = report

    @property
    def name(self) -> str:
        return self._report.origin

    @property
    def mtbf_h(self) -> Estimate:
        """Mean time between failures of the job [h]: mean, low, high."""
        return self._report.verdict.mtbf_h

    @property
    def table(self) -> pd.DataFrame:
        """A row per kind of times (gaps, uptimes, repairs), family and parameter.

        Columns: times, family, parameter (``mean`` for the mean), value, low, high (95 %), aic, ks,
        p. Families come in the order of their AIC.
        """
        return table_of([row for one in self._report.fitted.subjects for row in _rows(one)])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful with."""
        return tuple(self._report.fitted.warnings)

    @property
    def fragment(self) -> str:
        """The section `failures` of a scenario as YAML, each number with its interval.

        By cause a source for each.
        """
        return self._report.to_save or self._report.text

    @property
    def apart(self) -> pd.DataFrame:
        """A row per cause; empty where not asked for.

        Columns: those of ``cprsim fit --json``, ``_estimate``, ``_low`` and ``_high`` behind a
        number's name.
        """
        import pandas as pd

        found = self._report.by_cause
        return pd.json_normalize([] if found is None else causes_as_json(found), sep="_")

    @property
    def simpler(self) -> str | None:
        """The same without groups and lemons; None where `fragment` has none."""
        return self._report.simpler

    @property
    def failures(self) -> dict[str, Any]:
        """The section `failures`, for ``cprsim.run(scenario, {"failures": fit.failures})``.

        By cause that of the first one alone: see `scopes`.
        """
        return _sections(self.fragment).get("failures") or {}

    @property
    def scopes(self) -> list[dict[str, Any]]:
        """The section `scopes` beside it: by cause, else empty."""
        return _sections(self.fragment).get("scopes") or []

    @property
    def job_failures(self) -> dict[str, Any]:
        """The same without groups and lemons: the gaps between failures of the job as a whole."""
        return _sections(self.simpler or self._report.text).get("failures") or {}

    @property
    def circle(self) -> pd.DataFrame:
        """The log's statistics beside those of logs simulated from its fit, where asked for.

        Columns: statistic, log, mean, low, high (95 % of the simulated ones), inside.
        """
        return table_of(
            [
                {"statistic": one.name, "log": one.trace, **one.simulated.by_name,
                 "inside": one.inside}
                for one in self._report.circle
            ]
        )  # fmt: skip

    def _document(self) -> Document:
        return document_of_fit(self._report)

    def _drawings(self) -> Mapping[str, Draw]:
        return fit_figures(self._report.fitted)


def _sections(fragment: str) -> dict[str, Any]:
    data = read_yaml(fragment, "fragment")[0]
    return dict(data) if isinstance(data, dict) else {}


def _rows(subject: Subject) -> Iterator[dict[str, object]]:
    for judged in [] if subject.ranking is None else subject.ranking.judged:
        fit = judged.fit
        for one, name in [*((one, one.name) for one in fit.parameters), (fit.mean, "mean")]:
            yield {
                "times": subject.name, "family": fit.family, "parameter": name, "value": one.mean,
                "low": one.low, "high": one.high, "aic": fit.aic, "ks": judged.ks,
                "p": judged.p_value,
            }  # fmt: skip


@public
def fit(
    log: str | Path,
    *,
    format: str | None = None,
    nodes: int | str | Path | None = None,
    node_dates: bool = False,
    system: int | None = None,
    period: tuple[str | None, str | None] = (None, None),
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    date_format: str | None = None,
    tz: str | None = None,
    repair: str | None = None,
    coalesce: str | None = None,
    together: str | None = None,
    by: Literal["cause"] | None = None,
    reach: Mapping[str, str] | None = None,
    cause: str | None = None,
    node: str | None = None,
    age: Literal["new", "unknown"] | None = None,
    job_nodes: Annotated[int, Field(**JOB_NODES)] | None = None,
    bootstrap: Annotated[int, Field(**BOOTSTRAP)] = 199,
    seed: Annotated[int, Field(**SEED)] = 0,
    circle: bool = False,
) -> Fit:
    """Fit distributions to a log of failures, as ``cprsim fit`` does.

    Parameters
    ----------
    log : the file; `format` says how it is written, None: guessed (docs/fitting.md)
    nodes : nodes observed, with those that never failed, or a table of their dates
    node_dates : of tables and lanl: nodes are there between the dates that the log names
    system : of lanl
    period : begin and end of the observation, as the log writes times
    columns : what columns of a table are called, ``{"start": "begin"}``
    time_unit, date_format, tz : how a table writes times
    repair : how long outages last of which the log names no end
    coalesce : failures of one node within so long of each other are one, ``"10 min"``
    together : failures of nodes within so long of the one before are one event, ``"1 min"``
    by : ``"cause"``: a fit for each
    reach : by cause: what each kills, ``{"power": "rack"}``; default: a node
    cause, node : these alone
    age : of the nodes when the log begins
    job_nodes : nodes of the job that the fragment is for; None: all
    bootstrap, seed : samples behind each p-value, and their seed
    circle : simulate the log from its fit, and compare the two

    Raises
    ------
    TraceError : the log can't be read: file, line, value
    ParameterError : an option that does not go, or nothing that can be fitted
    """
    asked = log_asked(
        Path(log), form=format, nodes=None if nodes is None else str(nodes), node_dates=node_dates,
        system=system, period=period, columns=columns, time_unit=time_unit,
        date_format=date_format, tz=tz, repair=repair, coalesce=coalesce, together=together,
        cause=cause, node=node, age=age,
    )  # fmt: skip
    return Fit(
        read_to_fit(asked).report(
            by=by, reach=reach, job_nodes=job_nodes, bootstrap=bootstrap, seed=seed, circle=circle
        )
    )
