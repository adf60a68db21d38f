"""The sections `kernel` and `accuracy`: what is trained as a stand-in, and what may be lost.

`job` and `cluster` say how big the user's model is, and with it what saves and failures cost;
`kernel` says what is really trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from cprsim.records import ShardBy
from cprsim.scenario.cluster import Preset
from cprsim.scenario.quantities import Model, OneOf, Seed, Share, Text, within

MOST_SAMPLES = 50_000_000  # a run keeps them in memory, 160 bytes each
OF_ANY_TRAINER = ("trainer", "options", "shard_by", "seed")
Width = Annotated[int, within(1, 4096)]
Widths = Annotated[tuple[Width, ...], Field(max_length=10)]


class ClickFile(Model):
    """A click log in Criteo's format."""

    file: Text = Field(
        description="The log: tab-separated, plain, .gz or .xz; relative to the scenario. "
        "${CPRSIM_NAME} stands for an environment variable; no others are replaced.",
        examples=["${CPRSIM_DATA}/train.tsv.gz"],
    )
    least_count: Annotated[int, within(1, 10**9)] = Field(
        3, description="Times that a value has to occur in training for a row of its own, a count."
    )
    encoding: Literal["vocabulary", "hashing"] = Field(
        "vocabulary",
        description="Rows of category values: vocabulary (learned, with a row for rare and unseen "
        "values) or hashing (into `tables`, capped at `most_rows`; values may collide).",
    )
    skip_bad: StrictBool = Field(
        False, description="Leave bad lines out, and count them, instead of stopping."
    )


Clicks = Annotated[Literal["generated"] | ClickFile, OneOf("text", "section")]


class Kernel(Model):
    """A small DLRM, its clicks, and how it is trained."""

    trainer: Text | None = Field(
        None,
        description="A trainer of your own, package.module:factory (docs/own-model.md), instead "
        "of the built-in model. Only `measure` and `train` run its code.",
    )
    options: dict[str, Any] | None = Field(
        None, description="What the trainer's factory is called with, beside the seed."
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
        description="What is dealt out to the embedding servers: rows, or whole tables.",
    )
    seed: Seed = Field(1, description="Seed of the initial weights and of generated clicks.")

    def problems(self) -> Iterator[tuple[str, str]]:
        """The batch fits into the clicks; a trainer of one's own has none of what is built in."""
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
        None, strict=True, ge=0, le=10, description="By what the log-loss may rise."
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
        0.95, description="Probability with which a limit holds, of all that is not known for sure."
    )
    risk: Risk = Field(
        "mean",
        description="What has to keep the limit: `mean` over jobs, or this share of single jobs.",
    )
