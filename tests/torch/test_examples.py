"""The examples are trainers that keep to the protocol, and learn."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")

from cprsim.scenario.reading import load_scenario
from cprsim.torch import FailureInjector
from cprsim.training.kernel.trials import Saving, ShardFailure, Trial
from cprsim.training.measuring.expectation import check_trainer
from cprsim.training.measuring.runs import forked, own_model
from tests.measuring.conftest import JOB

EXAMPLES = Path(__file__).parents[2] / "examples"


def write_log(path: Path, n: int) -> None:
    """A log in Criteo's format whose clicks hang on one category and one number."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(n):
        numbers = rng.integers(0, 50, 13)
        categories = rng.integers(0, 60, 26)
        p = 0.9 if categories[3] % 2 and numbers[0] > 10 else 0.1
        fields = [str(int(rng.random() < p)), *map(str, numbers)]
        fields[2] = ""  # a missing number
        lines.append("\t".join([*fields, *(f"{one:08x}" for one in categories)]) + "\n")
    path.write_text("".join(lines))


@pytest.fixture
def setting(tmp_path, monkeypatch):
    monkeypatch.chdir(EXAMPLES)

    def make(trainer: str, options: str):
        path = tmp_path / "own.yaml"
        kernel = f"{{trainer: '{trainer}', options: {{{options}}}}}"
        path.write_text(JOB.replace("KERNEL", kernel))
        return lambda: own_model(load_scenario(path), 1)

    return make


def test_a_dlrm_on_a_criteo_file_can_be_measured(setting, tmp_path) -> None:
    write_log(tmp_path / "log.tsv", 3000)
    new = setting("dlrm_criteo:make", f"file: '{tmp_path / 'log.tsv'}', rows: 60, rate: 0.05")
    tried = check_trainer(new()[0], new()[0])
    assert tried.noise == 0 == tried.log_loss_noise
    assert tried.auc > 0.7


def test_a_two_tower_model_with_tables_of_several_widths_can_be_measured(setting) -> None:
    new = setting("two_tower:make", "samples: 6000, users: 60, items: 50")
    tried = check_trainer(new()[0], new()[0])
    assert tried.noise == 0 == tried.log_loss_noise
    assert tried.auc > 0.7
    model, shards = new()
    widths = {name: table.weight.shape[1] for name, table in model.trainer.tables.items()}
    assert widths == {"user": 16, "seen": 8, "item": 12, "category": 4}
    failures = (ShardFailure(0.5, (0, 1, 2, 3)), ShardFailure(0.8, (1,)))
    trials = [Trial(Saving(strategy, 0.3), failures) for strategy in ("partial", "ssu")]
    twin, lost = forked(model, shards, trials)
    assert all(quality != twin for quality in lost.values())
    assert not model.trainer.moves_only_accessed


def test_a_partial_checkpoint_numbers_rows_as_the_injector_does(tmp_path, monkeypatch) -> None:
    """Tables of 3 and 6 rows: by table, row 0 of the second would be on shard 0."""
    monkeypatch.syspath_prepend(EXAMPLES)
    from partial_checkpoint import PartialCheckpoint

    def lost_rows(how: str) -> list[list[bool]]:
        torch.manual_seed(1)
        module = torch.nn.ModuleList(torch.nn.Embedding(n, 2) for n in (3, 6))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        start = [table.weight.detach().clone() for table in module]
        injector = FailureInjector(module, optimizer, 10, [(0.5, [0])], interval=1.0, n_shards=4)
        checkpoint = PartialCheckpoint(tmp_path / how, module, optimizer)
        sum(table(torch.arange(len(table.weight))).square().sum() for table in module).backward()
        optimizer.step()
        if how == "injector":
            injector.step(5)
        else:
            checkpoint.restore([0], n_shards=4)
        pairs = zip(module, start, strict=True)
        return [(table.weight == then).all(dim=1).tolist() for table, then in pairs]

    rows = [[True, False, False], [False, True, False, False, False, True]]  # 0, 4 and 8 of 9
    assert lost_rows("injector") == lost_rows("checkpoint") == rows


def test_a_partial_checkpoint_takes_a_lost_shard_back(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    import partial_checkpoint

    monkeypatch.setattr(partial_checkpoint, "FRACTION", 0.5)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Embedding(40, 4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)

    def train(rows: torch.Tensor) -> None:
        model(rows).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    def state() -> list[torch.Tensor]:
        table = model[0].weight
        return [table.detach().clone(), optimizer.state[table]["sum"].clone()]

    train(torch.arange(40))
    checkpoint = partial_checkpoint.PartialCheckpoint(tmp_path, model, optimizer)
    train(torch.arange(20))  # all that was looked up fits into one sub-save
    checkpoint.save(ends_interval=False)
    saved = state()
    train(torch.arange(40))
    late, bias = state(), model[1].bias.detach().clone()
    checkpoint.restore([1], n_shards=4)
    lost = torch.arange(40) % 4 == 1
    for now, then, before in zip(state(), saved, late, strict=True):
        assert torch.equal(now[lost], then[lost])
        assert torch.equal(now[~lost], before[~lost])
    assert torch.equal(model[1].bias, bias)
    checkpoint.compact()
    compacted = state()
    train(torch.arange(40))
    checkpoint.restore([0])
    assert all(map(torch.equal, state(), compacted))
    assert len(list(tmp_path.iterdir())) == 1
