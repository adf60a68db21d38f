"""The sections `job`, `simulation`, `fleet` and `sweep`: the work, replications, many such jobs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import log, prod
from typing import Annotated, Generic, Literal, TypeVar

import numpy as np
from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator
from scipy import special

from cprsim.errors import ParameterError, one_line
from cprsim.failures.limits import MOST_NODES
from cprsim.files.units import (
    SHARE,
    THROUGHPUT,
    TIME,
    Quantity,
    plain_number,
    split_quantity,
    unit_factor,
)
from cprsim.job.records import Floats
from cprsim.scenario.quantities import (
    Bandwidth,
    Model,
    Mtbf,
    PositiveTime,
    Seed,
    ShardSize,
    Text,
    UsefulTime,
    parameters,
    within,
)
from cprsim.scenario.yaml_text import Scalar, scalar

Throughput = Annotated[float, Quantity(THROUGHPUT, "0.001 samples/s", "1e15 samples/s")]
Precision = Annotated[float, Quantity(SHARE, "0.01 %", "50 %")]
REPLICATIONS = 1000
MOST_REPLICATIONS = 10**7


class Job(Model):
    """The useful work: hours at full speed, or samples and throughput."""

    useful_time_h: UsefulTime | None = Field(
        None, alias="useful", description="Useful work at full speed [time]."
    )
    samples: Annotated[float, within(1, 1e18)] | None = Field(
        None, description="Samples to train on, a count; needs `throughput`."
    )
    throughput_per_h: Throughput | None = Field(None, description="Samples per time at full speed.")
    step_h: PositiveTime | None = Field(
        None, description="A training step at full speed [time]; some recovery systems need it."
    )
    horizon_h: UsefulTime | None = Field(
        None, description="Wall time at which the job ends in any case [time]; absent: no limit."
    )

    @property
    def useful_h(self) -> float:
        """Useful work in hours at full speed."""
        if self.useful_time_h is not None:
            return self.useful_time_h
        assert self.samples is not None
        assert self.throughput_per_h is not None
        return self.samples / self.throughput_per_h

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.useful_time_h is not None:
            for key in {"samples", "throughput"} & set(self.given):
                yield key, "give either `useful`, or `samples` and `throughput`"
        elif self.samples is None or self.throughput_per_h is None:
            yield "useful", "is missing: give `useful: 50 h`, or `samples` and `throughput`"
            return
        elif not 1 / 3600 <= self.useful_h <= 100_000:
            yield "samples", f"makes {self.useful_h:.3g} h of work; it must be 1 s to 100000 h"
        if self.step_h is not None and self.step_h > self.useful_h:
            yield "step", f"is longer than the job: {self.step_h:g} h of {self.useful_h:g} h"


class Simulation(Model):
    """How many replications, from which seed."""

    seed: Seed = Field(1, description="Seed of all random numbers, an integer.")
    precision_fraction: Precision | None = Field(
        None,
        description="Half-width of the 95 % interval of the overhead, in per cent of its mean; "
        "decides the number of replications.",
    )
    replications: Annotated[int, within(1, MOST_REPLICATIONS)] | None = Field(
        default_factory=lambda section: None if section.get("precision_fraction") else REPLICATIONS,
        description=f"Replications of the job, a count; default {REPLICATIONS}; or give "
        "`precision`.",
    )
    at_most: Annotated[int, within(100, MOST_REPLICATIONS)] | None = Field(
        default_factory=lambda section: 100_000 if section.get("precision_fraction") else None,
        description="With `precision`: replications at which to stop in any case; default 100000.",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if (self.replications is None) == (self.precision_fraction is None):
            yield "replications", "give either `replications` or `precision`"
        if self.at_most is not None and self.precision_fraction is None:
            yield "at_most", "goes with `precision`"


# ---------------------------------------------------------------------- fleets

MOST_JOBS = 1_000_000
MOST_KINDS = 2_000
USUAL_KINDS = 340  # of jobs, where a fleet does not say how many
Count = Annotated[int, within(1, MOST_NODES)]
Nodes = Annotated[int, within(0, MOST_NODES)]
Number = Annotated[float, within(1, 100_000)]
VaryFamily = Literal["lognormal", "log-uniform", "uniform"]
Sigma = Annotated[float, Field(strict=True, gt=0, le=5)]

Value = TypeVar("Value", bound=float)


class Varies(Model, Generic[Value]):
    """How one value differs from job to job."""

    family: VaryFamily = Field(
        description="lognormal (median, sigma), cut at low and high; log-uniform; uniform."
    )
    sigma: Sigma | None = Field(
        None, description="Of lognormal: standard deviation of the logarithm, no unit."
    )
    median: Value | None = Field(None, description="Of lognormal, before it is cut.")
    low: Value = Field(description="The least value.")
    high: Value = Field(description="The greatest value.")

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Independent values (n,), in the internal unit."""
        u = rng.random(n)
        if self.family == "uniform":
            return self.low + u * (self.high - self.low)
        if self.family == "log-uniform":
            return np.exp(log(self.low) + u * log(self.high / self.low))
        assert self.median is not None, "lognormal has a median, and a sigma"
        assert self.sigma is not None
        ends = [log(end / self.median) / self.sigma for end in (self.low, self.high)]
        below, above = special.ndtr(ends)
        normal = special.ndtri(below + u * (above - below))
        values: Floats = self.median * np.exp(self.sigma * normal)
        return values

    def problems(self) -> Iterator[tuple[str, str]]:
        spread = ("median", "sigma")
        needed = spread if self.family == "lognormal" else ()
        yield from parameters(self, self.family, needed, spread)
        if not self.low < self.high:
            yield "high", "must lie above low"


class VariesUseful(Varies[UsefulTime]):
    """How the useful time differs from job to job."""


class VariesShard(Varies[ShardSize]):
    """How the bytes on each server that holds state differ from job to job."""


class VariesMtbf(Varies[Mtbf]):
    """How the mean time between failures differs from job to job."""


class VariesNodes(Varies[Number]):
    """How the number of nodes differs from job to job."""


class VarySection(Model):
    """What differs from job to job, each value independently of the others."""

    useful: VariesUseful | None = Field(None, description="job.useful of each job.")
    shard_size: VariesShard | None = Field(
        None, description="cluster.shard_size of each job, or cluster.state."
    )
    mtbf: VariesMtbf | None = Field(None, description="failures.mtbf of each job.")
    nodes: VariesNodes | None = Field(
        None,
        description="Nodes of each job; the roles keep their shares. The MTBF of a job falls as "
        "one over its nodes: where only one of the two is here, the other follows from it, so that "
        "the scenario's own job keeps both of its values.",
    )


class Fleet(Model):
    """Many jobs on one cluster; the rest of the scenario describes a typical one."""

    window_h: Annotated[float, Quantity(TIME, "1 h", "100000 h", "720 h")] = Field(
        720.0, description="Time in which the jobs arrive [time]; default 720 h."
    )
    jobs: Annotated[int, within(1, MOST_JOBS)] | None = Field(
        None, description="Jobs that arrive in the window, a count; or give `table`."
    )
    kinds: Annotated[int, within(1, MOST_KINDS)] | None = Field(
        None,
        description=f"Different jobs among them, a count; default {USUAL_KINDS}. Each occurs "
        "equally often, with different failures each time.",
    )
    table: Text | None = Field(
        None,
        description="CSV file with a line per job or kind of job, instead of `jobs` and `vary`: "
        "useful_h, and as wanted arrive_h, nodes, shard_gb, mtbf_h, jobs.",
    )
    vary: VarySection = Field(
        default_factory=VarySection, description="What differs from job to job."
    )
    arrivals: Literal["random", "even", "together"] = Field(
        "random", description="random in the window, at even distances, or together at its begin."
    )
    nodes: Count | None = Field(
        None, description="Nodes for jobs, a count; jobs queue as they arrive; absent: no limit."
    )
    spares: Nodes | None = Field(
        None,
        description="Nodes kept back for failures of all jobs, a count; absent: one is always "
        "free. A failed node comes back after `cluster.repair`.",
    )
    storage_bytes_per_h: Bandwidth | None = Field(
        None,
        description="Bandwidth that the saves and loads of all jobs share [bandwidth]; absent: "
        "each job has `storage.bandwidth` to itself.",
    )
    histories: Annotated[int, within(1, 10_000)] = Field(
        1, description="Histories of the whole fleet, a count; from 2 on they make the intervals."
    )

    @property
    def n_kinds(self) -> int:
        """Different jobs, where they are drawn."""
        return min(self.kinds or USUAL_KINDS, self.jobs or USUAL_KINDS)

    def problems(self) -> Iterator[tuple[str, str]]:
        if (self.jobs is None) == (self.table is None):
            yield "jobs", "give either `jobs`, how many there are, or `table`, a file with them"
        if self.table is not None:
            for key in [
                *(f"vary.{key}" for key in self.vary.given),
                *{"kinds"} & self.given.keys(),
            ]:
                yield key, "goes with `jobs`: a table says it of each"


RANGE_EXAMPLE = (
    "write LOW:HIGH:logN, LOW:HIGH:linN or a list, for example 0.25h:48h:log40 or 14 h,20 h"
)
MOST_POINTS = 100_000
MOST_AXES = 8
_RANGE = re.compile(r"(?P<low>[^:]+):(?P<high>[^:]+):\s*(?P<kind>lin|log)\s*(?P<n>\d{1,6})\s*")
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")


@dataclass(frozen=True, slots=True)
class Values:
    """Values of one key of a scenario along an axis.

    Parameters
    ----------
    written : as written in a scenario, in the order of the axis
    numbers : the same as numbers in `unit`, for tables and figures; None where they are no numbers
    unit : the one in which the user wrote the first of them; empty for plain numbers and words
    logarithmic : whether neighbours differ by a factor
    spec : the range or list that the user wrote
    """

    written: tuple[Scalar, ...]
    numbers: tuple[float, ...] | None
    unit: str
    logarithmic: bool = False
    spec: str | Sequence[Scalar] = field(default=(), compare=False)

    def __len__(self) -> int:
        return len(self.written)

    @property
    def listed(self) -> tuple[Scalar, ...]:
        """The values as tables have them: numbers in `unit`, or words."""
        return self.written if self.numbers is None else self.numbers

    def column(self, key: str) -> str:
        """Name of a key in tables, with the unit of its numbers: ``failures.mtbf_h``."""
        unit = self.unit.lower().replace("%", "percent").replace("/", "_per_")
        return f"{key}_{unit}" if unit else key


def values_along(spec: str | Sequence[Scalar]) -> Values:
    """The values of a text such as ``30 s:10 min:log12``, or of a list.

    Ends without a fraction make whole numbers: ``4:64:log5`` counts nodes, ``0.01:0.2:log5`` is a
    share. Raises ParameterError with a message that continues a quote of the text.
    """
    if not isinstance(spec, str):
        return _listed(spec, list(spec))
    if match := _RANGE.fullmatch(spec):
        return _between(spec, match["low"], match["high"], match["kind"] == "log", int(match["n"]))
    if ":" in spec:
        raise ParameterError(f"is no range: {RANGE_EXAMPLE}")
    return _listed(spec, [scalar(entry.strip()) for entry in spec.split(",")])


def _listed(spec: str | Sequence[Scalar], written: list[Scalar]) -> Values:
    if any(isinstance(value, list | dict) for value in written):
        raise ParameterError("holds a list or a section: an axis changes one value")
    if not written or any(value in (None, "") for value in written):
        raise ParameterError(f"has an empty value: {RANGE_EXAMPLE}")
    value, n = Counter(map(str, written)).most_common(1)[0]
    if n > 1:
        raise ParameterError(f"has `{one_line(value)}` twice")
    try:  # numbers in the unit of the first one
        parts = [split_quantity(str(value)) for value in written]
        unit = parts[0][1]
        numbers = tuple(float(number * unit_factor(own_unit, unit)) for number, own_unit in parts)
    except ParameterError:  # they are words, or do not go together
        return Values(tuple(written), None, "", spec=spec)
    return Values(tuple(written), numbers, unit, spec=spec)


def _between(spec: str, low: str, high: str, logarithmic: bool, n: int) -> Values:
    (first, unit), (last, last_unit) = split_quantity(low.strip()), split_quantity(high.strip())
    ends = float(first), float(last * unit_factor(last_unit, unit))
    if n < 2:
        raise ParameterError("has one value; a range has 2 or more")
    if logarithmic and min(ends) <= 0:
        raise ParameterError("can't go from or to 0 or below by factors: write linN for logN")
    if ends[0] == ends[1]:
        raise ParameterError("begins where it ends")
    spaced = np.geomspace if logarithmic else np.linspace
    inner = [f"{value:.6g}" for value in spaced(*ends, n)[1:-1]]  # they are read by people
    texts = [f"{ends[0]:.15g}", *inner, f"{ends[1]:.15g}"]
    written: Sequence[Scalar] = [float(text) for text in texts]
    if unit:
        written = [f"{plain_number(Decimal(text))} {unit}" for text in texts]
    elif _WHOLE.fullmatch(low) and _WHOLE.fullmatch(high):
        written = list(dict.fromkeys(round(float(text)) for text in texts))
        texts = [str(number) for number in written]
    return Values(tuple(written), tuple(map(float, texts)), unit, logarithmic, spec)


def _key(key: str) -> str:
    is_one_word = not any(sign.isspace() or sign == "=" for sign in key)
    if not is_one_word or "." not in key or key.startswith(("sweep.", "kernel.")):
        raise ParameterError("is no key that can be varied: write for example costs.save")
    return key


def _read(spec: object) -> Values:
    if not isinstance(spec, Sequence):
        raise ParameterError(f"is no range: {RANGE_EXAMPLE}")
    return values_along(spec)


AxisKey = Annotated[str, AfterValidator(_key)]
AxisValues = Annotated[
    Values,
    PlainValidator(_read, json_schema_input_type=str | tuple[bool | int | float | str, ...]),
    PlainSerializer(lambda values: values.spec),
]


class Sweep(Model):
    """What `cprsim sweep` varies."""

    mode: Literal["grid", "one-at-a-time"] = Field(
        "grid",
        description="grid: every combination of the values; one-at-a-time: each axis alone, the "
        "others as the scenario says.",
    )
    over: dict[AxisKey, AxisValues] = Field(
        min_length=1,
        max_length=MOST_AXES,
        description="Keys and their values: LOW:HIGH:logN, LOW:HIGH:linN or a list. "
        "`recovery.interval` sets it for every strategy that saves, `recovery.target_pls` "
        "for every strategy that takes a target.",
        examples=[{"costs.save": "30 s:10 min:log12", "failures.mtbf": ["14 h", "28 h"]}],
    )

    @property
    def n_points(self) -> int:
        """How many points the axes make, the unvaried one of one-at-a-time included."""
        lengths = [len(values) for values in self.over.values()]
        return prod(lengths) if self.mode == "grid" else 1 + sum(lengths)

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.n_points > MOST_POINTS:
            yield "over", f"makes {self.n_points:,} points; at most {MOST_POINTS:,} are possible"
