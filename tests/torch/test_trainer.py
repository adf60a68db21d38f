"""PyTorch models as trainers that can be failed: rows, state, who looks up what, batches."""

from unittest.mock import MagicMock

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")

from cprsim.errors import ParameterError
from cprsim.torch import DataLoaderBatches, RowWiseAdagrad, TensorBatches, Trainer
from cprsim.training.measuring.protocol import Predictions
from cprsim.training.torch.batches import sizes_of
from cprsim.training.torch.tables import Accesses, tables_of

torch.sparse.check_sparse_tensor_invariants.disable()  # else PyTorch's own Adagrad warns
N, N_ROWS = 640, 30
OPTIMIZERS = {
    "sgd": lambda p, s: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p, s: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adagrad": lambda p, s: torch.optim.Adagrad(p, lr=0.1),
    "adam": lambda p, s: (
        [torch.optim.SparseAdam(p[:1], lr=0.1), torch.optim.Adam(p[1:], lr=0.1)]
        if s
        else torch.optim.Adam(p, lr=0.1)
    ),
    "rowwise": lambda p, s: [RowWiseAdagrad(p[:1], lr=0.1), torch.optim.Adagrad(p[1:], lr=0.1)],
}


class Small(torch.nn.Module):
    """A bag of rows, dropout, a layer with a buffer."""

    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.rows = torch.nn.EmbeddingBag(N_ROWS, 4, mode="sum", sparse=sparse)
        self.norm = torch.nn.BatchNorm1d(4)
        self.drop = torch.nn.Dropout(0.2)
        self.last = torch.nn.Linear(4, 1)

    def forward(self, rows):
        return self.last(self.drop(self.norm(self.rows(rows))))[:, 0]


def loss_of(module, batch):
    rows, label = batch
    return torch.nn.functional.binary_cross_entropy_with_logits(module(rows), label)


def new(name: str, *, sparse: bool = False, schedule: bool = False, batch: int = 50) -> Trainer:
    torch.manual_seed(3)
    module = Small(sparse)
    rng = np.random.default_rng(5)
    rows = rng.integers(0, N_ROWS - 5, (N, 2))  # the last five are never looked up
    label = (rows[:, 0] % 3 == 0).astype(np.float32)
    data = (torch.tensor(rows), torch.tensor(label))
    optimizers = OPTIMIZERS[name](list(module.parameters()), sparse)
    first = optimizers[0] if isinstance(optimizers, list) else optimizers
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(first, 0.9)] if schedule else []
    evaluate = lambda module: Predictions(label, module(data[0]).numpy())  # noqa: E731
    batches = TensorBatches(*data, batch=batch)
    return Trainer(module, optimizers, batches, loss_of, evaluate, epochs=2, schedulers=schedulers)


def run(trainer: Trainer, first: int, last: int) -> np.ndarray:
    noted = []
    trainer.train(first, last, noted.append)
    assert sum(len(one["rows"]) for one in noted) == last - first
    return trainer.evaluate().logit


@pytest.mark.filterwarnings("error")  # nor does a trainer bring a warning of its own
@pytest.mark.parametrize(
    ("name", "sparse"), [*((name, False) for name in OPTIMIZERS), ("adagrad", True), ("adam", True)]
)
def test_a_state_put_back_goes_on_bit_by_bit(name, sparse) -> None:
    trainer = new(name, schedule=True, sparse=sparse)
    run(trainer, 0, 250)
    state = trainer.state()
    first = run(trainer, 250, 2 * N)
    for _ in range(2):  # the same state serves several forks
        trainer.restore(state)
        np.testing.assert_array_equal(run(trainer, 250, 2 * N), first)


@pytest.mark.parametrize("name", ["momentum", "adagrad", "adam", "rowwise"])
@pytest.mark.parametrize("sparse", [False, True])
def test_making_state_beforehand_changes_no_number(name, sparse) -> None:
    if sparse and name == "momentum":
        pytest.skip("PyTorch's SGD has no momentum for sparse gradients of several steps")
    ours = new(name, sparse=sparse)
    torch.manual_seed(3)
    plain = Small(sparse)
    optimizers = OPTIMIZERS[name](list(plain.parameters()), sparse)
    optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
    for number in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss_of(plain, ours.batches[number]).backward()
        for optimizer in optimizers:
            optimizer.step()
    random = torch.get_rng_state()
    torch.manual_seed(3)
    Small(sparse)  # as the constructor draws
    ours.train(0, 150, lambda noted: None)
    assert torch.equal(torch.get_rng_state(), random)
    for one, other in zip(ours.module.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_rows_and_the_rest_together_are_all_of_a_model(name) -> None:
    trainer = new(name)
    table, every = trainer.tables["rows"], np.arange(N_ROWS)
    run(trainer, 0, 250)
    rows, dense, random = table.get_rows(every), trainer.get_dense(), torch.get_rng_state()
    assert len(rows) == {"sgd": 1, "adam": 3}.get(name, 2)
    first = run(trainer, 250, 500)
    table.set_rows(every, rows)
    trainer.set_dense(dense)
    torch.set_rng_state(random)
    np.testing.assert_array_equal(run(trainer, 250, 500), first)


@pytest.mark.parametrize(
    ("name", "sparse", "still"),
    [("sgd", False, True), ("momentum", False, False), ("adagrad", False, True),
     ("adam", False, False), ("adam", True, True), ("rowwise", True, True)],
)  # fmt: skip
def test_it_is_known_whether_rows_move_that_nobody_looked_up(name, sparse, still) -> None:
    trainer = new(name, sparse=sparse)
    assert trainer.moves_only_accessed == still
    trainer.train(0, 100, lambda noted: None)
    before = trainer.tables["rows"].get_rows(np.arange(N_ROWS))[0]
    seen: list = []
    trainer.train(100, 150, seen.append)
    after = trainer.tables["rows"].get_rows(np.arange(N_ROWS))[0]
    moved = set(np.flatnonzero((before != after).any(axis=1)).tolist())
    accessed = set(seen[0]["rows"].ravel().tolist())
    assert (moved <= accessed) or not still
    assert accessed <= set(range(N_ROWS - 5))


def test_row_wise_adagrad_is_the_formula() -> None:
    for sparse in (False, True):
        bag = torch.nn.EmbeddingBag(4, 2, mode="sum", sparse=sparse)
        weight, total = bag.weight.detach().numpy().copy(), np.zeros(4, np.float32)
        optimizer = RowWiseAdagrad(bag.parameters(), lr=0.5)
        for rows in ([[0, 0], [2, 1]], [[0, 3]]):
            gradient = np.zeros((4, 2), np.float32)
            np.add.at(gradient, np.ravel(rows), np.array([1.0, 3.0], np.float32))
            optimizer.zero_grad()
            (bag(torch.tensor(rows)) * torch.tensor([1.0, 3.0])).sum().backward()
            optimizer.step()
            total += (gradient**2).mean(axis=1)
            weight -= 0.5 * gradient / (np.sqrt(total) + 1e-10)[:, None]
        np.testing.assert_allclose(bag.weight.detach(), weight, rtol=1e-6)
    with pytest.raises(ParameterError, match="needs tables"):
        RowWiseAdagrad([torch.zeros(3, requires_grad=True)], lr=0.1)


def test_every_way_to_look_rows_up_is_heard() -> None:
    module = torch.nn.Module()
    module.one = torch.nn.Embedding(10, 3, padding_idx=0)
    module.bag = torch.nn.EmbeddingBag(10, 2)
    module.tied = torch.nn.Embedding(10, 3)
    module.tied.weight = module.one.weight
    tables = tables_of(module, [])
    assert list(tables) == ["one", "bag"]  # a shared weight is one table
    heard = Accesses(module, tables)
    module.one(torch.tensor([9, 9]))  # nobody listens yet
    heard.listens = True
    module.one(torch.tensor([[1, 0], [3, 4]]))
    module.tied(torch.tensor([5, 6]))
    module.bag(torch.tensor([1, 2, 3]), torch.tensor([0, 1]))
    module.bag(input=torch.tensor([7, 8]), offsets=torch.tensor([0, 0]))
    noted = heard.take(2)
    assert noted["one"].tolist() == [[1, -1, 5], [3, 4, 6]]  # the padding row is nobody's
    assert noted["bag"].tolist() == [[1, -1, -1, -1], [2, 3, 7, 8]]
    assert heard.take(2) == {}
    module.one(torch.tensor([1, 2, 3]))  # of another length than the batch
    assert sorted(heard.take(2)["one"].ravel().tolist()) == [-1, 1, 2, 3]
    heard.remove()
    module.one(torch.tensor([1, 2]))
    assert heard.take(2) == {}


def test_a_loader_that_shuffles_gives_the_same_batches_again() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(23))
    loader = torch.utils.data.DataLoader(data, batch_size=5, shuffle=True)
    batches = DataLoaderBatches(loader, seed=4, epochs=2)
    assert batches.sizes.tolist() == [5, 5, 5, 5, 3] * 2
    order = torch.cat([batches[i][0] for i in range(10)]).tolist()
    assert sorted(order[:23]) == list(range(23))
    assert order[:23] != order[23:]
    again = DataLoaderBatches(loader, seed=4, epochs=2)
    assert torch.cat([again[i][0] for i in range(10)]).tolist() == order


def test_a_loader_that_does_not_batch_gives_the_batches_of_its_dataset() -> None:
    held = [{"x": torch.full((n, 2), float(n)), "y": torch.zeros(n)} for n in (4, 2, 3)]
    loader = torch.utils.data.DataLoader(held, batch_size=None, shuffle=True)
    batches = DataLoaderBatches(loader, seed=1, epochs=2)
    given = [float(batches[number]["x"][0, 0]) for number in range(6)]
    assert batches.sizes.tolist() == given
    assert sorted(given) == [2, 2, 3, 3, 4, 4]


def test_what_can_not_be_taken_up_in_its_middle_is_refused() -> None:
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield torch.zeros(1)

    trainer = new("sgd")
    make = lambda batches: Trainer(trainer.module, [], batches, loss_of, trainer.evaluate)  # noqa: E731
    with pytest.raises(ParameterError, match="iterable dataset"):
        make(torch.utils.data.DataLoader(Stream()))
    with pytest.raises(ParameterError, match="a generator can't be taken up"):
        make(one for one in ())
    with pytest.raises(ParameterError, match="no Embedding"):
        Trainer(torch.nn.Linear(1, 1), [], [torch.zeros(2)], loss_of, trainer.evaluate)
    with pytest.raises(ParameterError, match="no whole batches"):
        trainer.train(0, 33, lambda noted: None)


def test_the_data_has_a_digest_whatever_holds_it() -> None:
    rows, label = torch.arange(60).reshape(30, 2) % N_ROWS, torch.zeros(30)
    module = Small(sparse=False)

    def data_of(batches) -> str:
        sgd = torch.optim.SGD(module.parameters(), lr=0.1)
        return Trainer(module, sgd, batches, loss_of, lambda module: {}).describe()["data"]

    def loader(label):
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, label), 10)

    listed = [(rows[:10], label[:10]), {"rows": rows[10:], "label": label[10:]}]
    for one in (TensorBatches(rows, label, batch=10), loader(label), listed):
        assert data_of(one) == data_of(one)
    assert data_of(loader(label)) != data_of(loader(label + 1))
    assert data_of(DataLoaderBatches(loader(label), 1)) == data_of(loader(label))


def test_batches_that_are_slices_are_counted_by_their_length() -> None:
    """Slices are empty beyond the last: iterating over them would never end."""
    sliced = MagicMock()
    sliced.__len__.return_value = 3
    sliced.__getitem__.side_effect = [torch.zeros(n) for n in (10, 10, 5)]
    del sliced.sizes
    assert sizes_of(sliced).tolist() == [10, 10, 5]
