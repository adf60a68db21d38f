"""The sections `kernel`, `accuracy` and `sync`: trained model, accuracy limits, synchronisation.

`job` and `cluster` give the size of the user's model, and with it the costs of saves and failures;
`kernel` describes the model that is trained in its place.

Zheng et al. 2020, "ShadowSync" (arXiv 2003.03477): every trainer has a replica of the dense weights
that its worker threads share without locks; the embedding tables exist once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from cprsim.files.units import SHARE, SIZE, Quantity
from cprsim.job.records import Algorithm, Method, ShardBy, Stragglers
from cprsim.scenario.cluster import Preset
from cprsim.scenario.quantities import (
    Bandwidth,
    Duration,
    DurationSpec,
    Model,
    PositiveShare,
    PositiveTime,
    Seed,
    Share,
    Text,
    one_of,
    within,
)

MOST_SAMPLES = 50_000_000  # a run keeps them in memory, 160 bytes each
OF_ANY_TRAINER = ("trainer", "options", "shard_by", "seed")
Width = Annotated[int, within(1, 4096)]
Widths = Annotated[tuple[Width, ...], Field(max_length=10)]


class ClickFile(Model):
    """A click log in Criteo's format."""

    file: Text = Field(
        description="The log: tab-separated, plain, .gz or .xz; relative to the scenario. "
        "${CPRSIM_NAME} is an environment variable; no others are replaced.",
        examples=["${CPRSIM_DATA}/train.tsv.gz"],
    )
    least_count: Annotated[int, within(1, 10**9)] = Field(
        3, description="Occurrences in the training data that give a value its own row, a count."
    )
    skip_bad: StrictBool = Field(
        False, description="Leave bad lines out, and count them, instead of stopping."
    )


Clicks = Annotated[Literal["generated"] | ClickFile, one_of("text", "section")]


class Kernel(Model):
    """A small DLRM, its clicks, and how it is trained."""

    trainer: Text | None = Field(
        None,
        description="A trainer of your own, package.module:factory (docs/own-model.md), instead "
        "of the built-in model. Only `measure` and `train` run its code.",
    )
    options: dict[str, Any] | None = Field(
        None, description="Arguments of the trainer's factory, besides the seed."
    )
    clicks: Clicks = Field(
        "generated",
        description="`generated` (like Criteo's, from a planted teacher) or a log: {file: ...}.",
    )
    tables: Preset = Field(
        "criteo-kaggle", description="Tables of generated clicks, before they are capped."
    )
    most_rows: int = Field(
        5000, strict=True, ge=1, le=50_000_000, description="Rows that a table is capped at."
    )
    samples: Annotated[int, within(1000, MOST_SAMPLES)] = Field(
        500_000,
        description="Clicks to generate, or to read at most; the last seventh is for tests.",
    )
    dimension: int = Field(
        16, strict=True, ge=1, le=1024, description="Numbers per embedding row, a count."
    )
    bottom: Widths = Field(
        (64, 32), description="Hidden widths of the bottom MLP, which ends in `dimension`."
    )
    top: Widths = Field((64, 32), description="Hidden widths of the top MLP, which ends in 1.")
    optimizer: Literal["sgd", "adagrad", "adam"] = Field(
        "sgd",
        description="sgd, adagrad (row-wise in the tables), or adam (of the rows that a batch "
        "looks up, as torch.optim.SparseAdam).",
    )
    rate: float = Field(0.15, strict=True, gt=0, le=100, description="Learning rate at the start.")
    schedule: Literal["constant", "linear"] = Field(
        "linear", description="Learning rate over the run: constant, or linear down to 0."
    )
    batch: int = Field(128, strict=True, ge=1, le=65_536, description="Samples per batch, a count.")
    epochs: int = Field(1, strict=True, ge=1, le=1000, description="Passes over the clicks.")
    shard_by: ShardBy = Field(
        ShardBy.ROWS,
        description="Unit of distribution over the embedding servers: rows, or whole tables.",
    )
    seed: Seed = Field(1, description="Seed of the initial weights and of generated clicks.")

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.trainer is None and self.options is not None:
            yield "options", "are those of a trainer of your own: `trainer` names none"
        if self.trainer is not None:
            module, _, factory = self.trainer.partition(":")
            if not all(map(str.isidentifier, (factory, *module.split(".")))):
                yield "trainer", "names no factory: write package.module:factory"
            for key, field in type(self).model_fields.items():
                if key not in OF_ANY_TRAINER and getattr(self, key) != field.default:
                    message = (
                        "is of the built-in model: a trainer of your own has it from `options`"
                    )
                    yield key, message
        if self.batch > self.samples // 7:
            yield "batch", f"is larger than the test clicks, a seventh of {self.samples}"


MetricName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9@._-]{0,39}$")]
ONE = Field(min_length=1, max_length=1)
Risk = Literal["mean"] | Annotated[float, Field(strict=True, gt=0, lt=1)]


class Accuracy(Model):
    """The staleness curve that prices lost samples, and the limits of `cprsim select`."""

    curve: Text | None = Field(
        None,
        description="A shipped curve by name, or a file: .json of `cprsim measure`, .csv of your "
        "own; relative to the scenario. Absent: the shipped curve of this section `kernel`.",
    )
    max_auc_loss: float | None = Field(
        None, strict=True, ge=0, le=0.5, description="AUC that may be lost."
    )
    max_log_loss: float | None = Field(
        None, strict=True, ge=0, le=10, description="Rise of the log-loss that is allowed."
    )
    max_loss: Annotated[dict[MetricName, Annotated[float, Field(ge=0, le=1e6)]], ONE] | None = (
        Field(
            None,
            description="What may be lost in another metric of the curve, by its name.",
            examples=[{"ne": 0.0005}],
        )
    )
    target_pls: Share | None = Field(None, description="Portion of samples that may be lost.")
    confidence: Annotated[float, within(0.5, 0.9999)] = Field(
        0.95, description="Probability with which a limit holds, over all known uncertainties."
    )
    risk: Risk = Field(
        "mean",
        description="Jobs that the limit applies to: their `mean`, or this share of single jobs.",
    )


DenseSize = Annotated[float, Quantity(SIZE, "1 B", "1000 GB", "8 MB")]
Portion = Annotated[float, Quantity(SHARE, "0 %", "90 %", "3 %")]
Iterations = Annotated[int, within(1, 10**9)]

OF_MEAN = (Algorithm.SHADOW_MA, Algorithm.SHADOW_BMUF)
ELASTIC = 0.5
ELASTIC_OF_MEAN = 0.1  # what workers learn during an AllReduce counts by 1 - elastic


Threads = Annotated[int, within(1, 1024)]
Every = Annotated[Iterations | PositiveTime, one_of("number", "text")]


class StandIn(Model):
    """Stand-in that `cprsim train` trains in step: fewer threads, in proportion to the batch."""

    threads: Threads = Field(
        4,
        description="Worker threads of each trainer of the stand-in, a count. A period of k "
        "iterations of a thread becomes k x threads / `sync.threads`.",
    )
    warm_start_fraction: Portion = Field(
        0.0,
        description="Share of the clicks that one trainer trains first, alone; its model is what "
        "all replicas begin with; default 0 %.",
    )


class Sync(Model):
    """How the trainers stay in step: who synchronises when, through what."""

    algorithm: Algorithm = Field(
        description="shadow-easgd, shadow-ma, shadow-bmuf: in the background; fr-easgd, fr-ma, "
        "fr-bmuf: at a fixed rate (`every`), workers wait; sync-sgd: every iteration, all wait; "
        "none: replicas are averaged at the end."
    )
    threads: Threads = Field(
        24, description="Worker threads of each trainer, which share its replica; a count."
    )
    batch: Annotated[int, within(1, 10**7)] = Field(
        200, description="Samples of one iteration of one thread, a count."
    )
    iteration: Duration = Field(
        description="One iteration of one thread: a time or a distribution."
    )
    dense_size_bytes: DenseSize = Field(
        description="Bytes of the dense weights, which every trainer holds [size]."
    )
    servers: Annotated[int, within(1, 10_000)] | None = Field(
        None,
        description="Sync servers, over which the central copy of EASGD is spread; a count. With "
        "other algorithms they stand idle.",
    )
    server_bandwidth_bytes_per_h: Bandwidth | None = Field(
        None, description="Of each sync server [bandwidth]."
    )
    trainer_bandwidth_bytes_per_h: Bandwidth | None = Field(
        None, description="Of each trainer [bandwidth]; what averages over all of them needs it."
    )
    every: Every | None = Field(
        None,
        description="Of fixed-rate forms: iterations of a thread between two synchronisations, a "
        "count, or the time between them.",
    )
    elastic_given: PositiveShare | None = Field(
        None,
        alias="elastic",
        description="Fraction by which a synchronisation moves a replica to the central copy or "
        "the mean (fr-ma and fr-bmuf always overwrite: 1); default 0.5, of shadow-ma and "
        "shadow-bmuf 0.1: they keep the fraction 1 - elastic of their workers' updates.",
    )
    momentum: float | None = Field(
        None, strict=True, ge=0, lt=1, description="Block momentum of BMUF; default 0."
    )
    block_rate: float | None = Field(
        None, strict=True, gt=0, le=10, description="Block learning rate of BMUF; default 1."
    )
    stragglers: Stragglers | None = Field(
        None, description="Trainers that are slower; absent: none."
    )
    shadow_cost_fraction: Portion = Field(
        0.0,
        description="Share of the workers' speed that the shadow thread takes; default 0 %.",
    )

    stand_in: StandIn = Field(
        default_factory=StandIn, description="What `cprsim train` trains in step."
    )

    @property
    def elastic(self) -> float:
        """The elastic coefficient, by algorithm where none is given."""
        if self.elastic_given is not None:
            return self.elastic_given
        return ELASTIC_OF_MEAN if self.algorithm in OF_MEAN else ELASTIC

    def problems(self) -> Iterator[tuple[str, str]]:
        if not isinstance(self.iteration, DurationSpec) and self.iteration == 0:
            yield "iteration", "takes no time: write for example 43 ms"
        algorithm, given = self.algorithm, self.given
        if algorithm.has_servers:
            for key in {"servers", "server_bandwidth"} - given.keys():
                yield key, f"is missing: {algorithm} keeps its central copy on sync servers"
        if algorithm.at_fixed_rate and self.every is None:
            yield "every", f"is missing: {algorithm} synchronises at a fixed rate, such as 5"
        elif not algorithm.at_fixed_rate and self.every is not None:
            yield "every", f"is of fixed-rate forms (fr-...), {algorithm} has no rate"
        if algorithm.is_collective and self.trainer_bandwidth_bytes_per_h is None:
            yield "trainer_bandwidth", f"is missing: {algorithm} averages over it"
        if algorithm.method is not Method.BMUF:
            for key in {"momentum", "block_rate"} & given.keys():
                yield key, f"is of shadow-bmuf and fr-bmuf alone, not of {algorithm}"
        if algorithm in OF_MEAN and self.elastic == 1:
            yield "elastic", f"is 1: {algorithm} then undoes all updates of its workers; 0.1?"
