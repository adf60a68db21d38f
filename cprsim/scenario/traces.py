"""The section `failures` of kind `trace`: which log is replayed, and what was observed of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages, with_lives
from cprsim.failures.replay import Replay
from cprsim.records import Clock
from cprsim.scenario.quantities import Model, PositiveCount
from cprsim.units import TIME, Quantity

FEWEST_OUTAGES = 2  # that can be replayed
SOURCES = {  # what the file of each format is, and where it comes from
    "infinitehbd": "InfiniteHBD's fault trace: StepFun's public repository of that name on GitHub",
    "lanl": "LANL's failure records LA-UR-05-7318: the Computer Failure Data Repository (CFDR)",
    "tidy": "a CSV file of yours with the columns node, start and end",
}
EXAMPLE = "write a day such as 2000-01-01, or for tidy traces an instant as the file writes them"


class _Instant:
    """Annotates an instant as a log writes it: an ISO 8601 day or time stamp, or a number."""

    def read(self, value: object) -> float | str:
        """The text or the number. Raises ParameterError."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not abs(value) < 1e15:  # nor NaN
                raise ParameterError(f"is no instant: {EXAMPLE}")
            return float(value)
        try:
            datetime.fromisoformat(str(value).strip())
        except ValueError:
            raise ParameterError(f"is no instant: {EXAMPLE}") from None
        return str(value).strip()

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": ["string", "number"], "examples": ["2000-01-01", "2024-05-01T06:00Z", 48]}


Instant = Annotated[float | str, _Instant()]
Unended = Annotated[float, Quantity(TIME, "0 h", "10000 h", "2 h")]


class PeriodSection(Model):
    """What was observed: the part of the log that is used, and how long nobody failed in it."""

    first: Instant | None = Field(
        None,
        alias="from",
        description="When the observation begins: a day such as 2000-01-01; of tidy also an "
        "instant as the file writes them. Absent: the log's first outage.",
    )
    last: Instant | None = Field(
        None,
        alias="to",
        description="When it ends, itself excluded: the day after the last one, such as "
        "2006-01-01; of tidy also an instant. Absent: the log's last instant.",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        """It has an end, and a length where both ends are said."""
        if self.first is None and self.last is None:
            yield "from", "is missing: say `from`, `to` or both"
        elif self.first is not None and self.last is not None:
            if isinstance(self.first, str) != isinstance(self.last, str):
                yield "to", f"{self.last} and `from` ({self.first}) are not written alike"
            elif _order(self.last) <= _order(self.first):
                yield "to", f"{self.last} does not lie after `from` ({self.first})"


def _order(instant: float | str) -> float:
    """A number that grows with time; a stamp without a zone is taken as UTC."""
    if isinstance(instant, float):
        return instant
    stamp = datetime.fromisoformat(instant)
    naive = stamp if stamp.tzinfo is None else (stamp - stamp.utcoffset()).replace(tzinfo=None)  # type: ignore[operator]
    return (naive - datetime(1, 1, 1)).total_seconds()


class Columns(Model):
    """Names of the columns of a tidy CSV."""

    node: str = Field("node", description="Column with the node's name.", max_length=200)
    start: str = Field("start", description="Column with the outage's start.", max_length=200)
    end: str = Field("end", description="Column with the outage's end.", max_length=200)
    cause: str = Field("cause", description="Column with the outage's cause.", max_length=200)

    @property
    def other_names(self) -> dict[str, str]:
        """The file's names of those columns that it calls something else, by ours."""
        return {ours: theirs for ours, theirs in self if ours != theirs}


class TraceFailures(Model):
    """Outages that were observed, replayed on the wall clock from a random instant."""

    kind: Literal["trace"] = Field(description="Outages from a file.")
    file: str = Field(
        strict=True,
        min_length=1,
        max_length=1000,
        description="Path of the trace, relative to the scenario; ${CPRSIM_NAME} is an "
        "environment variable; no others are replaced.",
        examples=["${CPRSIM_DATA}/failures/infinitehbd/fault_trace.json"],
    )
    format: Literal["tidy", "infinitehbd", "lanl"] = Field(
        description="tidy (CSV: node, start, end), infinitehbd (JSON of start and end events) or "
        "lanl (LA-UR-05-7318, CSV, may be .xz)."
    )
    begins: Literal["random", "first"] = Field(
        "random",
        description="Where each replication begins: at a random instant of the trace, nodes that "
        "are away then taken as there (random), or at its first, nodes that are away then lost at "
        "once (first).",
    )
    nodes: PositiveCount | None = Field(
        None,
        description="Nodes that were observed, with those that never failed. Absent: those in the "
        "file.",
    )
    system: PositiveCount | None = Field(None, description="Of lanl: which system.", examples=[2])
    node_dates: bool | None = Field(
        None,
        strict=True,
        description="Of lanl and tidy: nodes are there between the dates of the file (of tidy: "
        "its columns installed, entry, exit), and a job has only nodes that are there.",
    )
    period: PeriodSection | None = Field(
        None, description="Of lanl and tidy: what was observed; absent: what the log spans."
    )
    cause: str | None = Field(
        None,
        strict=True,
        min_length=1,
        max_length=200,
        description="Replay those outages alone whose cause contains this text.",
        examples=["disk"],
    )
    columns: Columns | None = Field(None, description="Of tidy: what its columns are called.")
    time_unit: Literal["ms", "s", "min", "h", "d"] | None = Field(
        None,
        description="Of tidy: unit of the times; absent: they are ISO 8601 time stamps.",
    )
    repair_h: Unended | None = Field(
        None,
        alias="repair",
        description="Of tidy: how long outages last of which the file names no end. Absent: to "
        "the node's next failure, or no time at all where the file has no column of ends.",
    )

    @property
    def clock(self) -> Clock:
        """A trace runs on wall time."""
        return Clock.WALL

    def problems(self) -> Iterator[tuple[str, str]]:
        """Each format has its own keys."""
        own = {
            "system": ("lanl",),
            "nodes": ("tidy", "infinitehbd", "lanl"),
            "node_dates": ("lanl", "tidy"),
            "cause": ("tidy", "infinitehbd", "lanl"),
            "period": ("lanl", "tidy"),
            "columns": ("tidy",),
            "time_unit": ("tidy",),
            "repair": ("tidy",),
        }
        for key, forms in own.items():
            field = "repair_h" if key == "repair" else key
            if getattr(self, field) is not None and self.format not in forms:
                which = " or ".join(f"`{form}`" for form in forms)
                yield key, f"belongs to format {which}, not `{self.format}`"
        if self.format == "lanl" and self.system is None:
            yield "system", "is missing: a lanl file holds many systems, say which (1 to 24)"
        yield from self._instants_as_in_the_file()

    def source(self, path: Path) -> Replay:
        """The outages of the file.

        Raises ParameterError where there are too few to replay, TraceError where the file can't be
        read.
        """
        outages = self._read(path)
        if self.cause is not None:
            outages = outages.of_cause(self.cause)
        if self.begins == "first":
            return Replay(outages, from_first=True)
        if outages.n_outages < FEWEST_OUTAGES:
            raise ParameterError(
                f"the trace has {outages.n_outages} outage: what lies between outages can't be "
                f"told; replay needs {FEWEST_OUTAGES} at least"
            )
        return Replay(outages)

    def _read(self, path: Path) -> Outages:
        from cprsim.failures.traces.asked import LogOptions  # pandas comes: most need none
        from cprsim.failures.traces.formats import FORMATS
        from cprsim.failures.traces.formats.lanl import lanl_lives
        from cprsim.failures.traces.node_file import lives_in_log
        from cprsim.failures.traces.reading import csv_pieces

        period = (None, None) if self.period is None else (self.period.first, self.period.last)
        asked = LogOptions(
            n_nodes=self.nodes, system=self.system, period=period, time_unit=self.time_unit,
            columns={} if self.columns is None else self.columns.other_names,
            repair_h=self.repair_h,
        )  # fmt: skip
        log = FORMATS[self.format].read(path, asked)
        if not self.node_dates:
            return log
        if self.system is not None:  # of lanl alone
            return with_lives(log, lanl_lives(path, self.system, log))
        return with_lives(log, lives_in_log(path, csv_pieces(path), log, asked))

    def _instants_as_in_the_file(self) -> Iterator[tuple[str, str]]:
        if self.period is None:
            return
        for key, instant in (("from", self.period.first), ("to", self.period.last)):
            if isinstance(instant, float) and self.time_unit is None:
                yield f"period.{key}", f"{instant:g} is no day: write for example 2000-01-01"
            elif isinstance(instant, str) and self.time_unit is not None:
                yield (
                    f"period.{key}",
                    f"{instant} is no number: with `time_unit` write the file's own, in "
                    f"{self.time_unit}",
                )
