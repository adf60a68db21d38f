"""Make clicks, a model's shape and a training plan from the section `kernel` of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from cprsim.errors import ClickError, Place
from cprsim.job.model_shape import MODEL_PRESETS, ModelShape
from cprsim.scenario.kernel import ClickFile, Kernel
from cprsim.scenario.reading import LoadedScenario
from cprsim.training.kernel.clicks.criteo import read_log
from cprsim.training.kernel.clicks.encoding import encode
from cprsim.training.kernel.clicks.generated import generate
from cprsim.training.kernel.clicks.records import Clicks, n_train, split
from cprsim.training.kernel.metrics import Quality, quality
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.training import ProxyTrainer, TrainingPlan

LEAST_TRAINED = 100  # clicks
CLICKS_SOURCE = (
    "a click log in Criteo's format, such as the train.txt of the Display Advertising Challenge "
    "(Criteo Labs, 2014); `clicks: generated` needs none"
)


@dataclass(frozen=True, slots=True)
class ProxyModel:
    """The model that is trained in place of the user's."""

    shape: ModelShape
    train: Clicks
    test: Clicks
    plan: TrainingPlan
    shards: Shards
    teacher: Quality | None  # on the test clicks, where they were generated: the ceiling
    n_skipped: int  # bad lines of a log that were left out

    def trainer(self) -> ProxyTrainer:
        """The model at the start of its run."""
        return ProxyTrainer(self.shape, self.train, self.plan, test=self.test)

    def __str__(self) -> str:
        clicks = "generated" if self.teacher is not None else "logged"
        plan, tables = self.plan, self.shape.tables
        return (
            f"a DLRM of {tables.n_rows:,} rows of {self.shape.dimension}, trained on "
            f"{len(self.train):,} {clicks} clicks by {plan.optimizer} at {plan.rate:g} "
            f"({plan.schedule}), batch {plan.batch}"
        )


def proxy_model(loaded: LoadedScenario) -> ProxyModel:
    """Make or read the clicks, and describe the model that is trained on them.

    Raises ScenarioError for a missing log, or where the scenario names a trainer of the user;
    ClickError for a log that can't be read.
    """
    section = loaded.scenario.kernel or Kernel.model_validate({})
    if loaded.scenario.silent is not None:
        raise loaded.error("silent", "can be neither trained nor rehearsed: leave it out here")
    if section.trainer is not None:
        words = "is a trainer of your own; here the built-in model is trained"
        raise loaded.error("kernel.trainer", f"`{section.trainer}` {words}")
    teacher, n_skipped = None, 0
    if isinstance(section.clicks, ClickFile):
        train, test, n_skipped = _logged(loaded, section, section.clicks)
    else:
        tables = MODEL_PRESETS[section.tables].tables.capped(section.most_rows)
        clicks, teacher_logit = generate(tables, section.samples, section.seed)
        train, test = split(clicks)
        teacher = quality(test.label, teacher_logit[len(train) :])
    plan = TrainingPlan(
        section.batch, section.rate, section.schedule, section.optimizer, section.epochs,
        section.seed,
    )  # fmt: skip
    return ProxyModel(
        shape=ModelShape(train.tables, section.dimension, section.bottom, section.top),
        train=train,
        test=test,
        plan=plan,
        shards=Shards(train.tables, loaded.scenario.cluster.emb_ps, section.shard_by),
        teacher=teacher,
        n_skipped=n_skipped,
    )


def _logged(loaded: LoadedScenario, section: Kernel, log: ClickFile) -> tuple[Clicks, Clicks, int]:
    """Clicks of a log to train and to test on, and the number of its bad lines."""
    path = loaded.input_file(log.file, "kernel.clicks.file", CLICKS_SOURCE)
    raw, n_skipped = read_log(path, section.samples, log.skip_bad)
    at = n_train(len(raw))
    if at < LEAST_TRAINED:
        raise ClickError.at(Place(path), f"{len(raw)} clicks are too few to train and to test on")
    train, test = encode(raw[:at], raw[at:], log.least_count, section.most_rows)
    if not all(0 < part.label.mean() < 1 for part in (train, test)):
        message = "has only clicks, or none, in the training or test part"
        raise ClickError.at(Place(path), message)
    return train, test, n_skipped
