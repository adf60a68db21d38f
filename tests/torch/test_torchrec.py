"""TorchRec's tables in a trainer: found, trained, put back."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")
torchrec = pytest.importorskip("torchrec", reason="TorchRec: make torchrec installs it")

from cprsim.torch import TensorBatches, Trainer

N, USERS, ITEMS = 600, (40, 8), (70, 16)  # rows and width of either table


def bags(device: str = "cpu"):
    """Two tables of unlike widths."""
    sizes = {"user": USERS, "item": ITEMS}
    configs = [
        torchrec.EmbeddingBagConfig(
            name=f"{name}_table", num_embeddings=n, embedding_dim=d, feature_names=[name]
        )
        for name, (n, d) in sizes.items()
    ]
    return torchrec.EmbeddingBagCollection(tables=configs, device=torch.device(device))


class Clicks(torch.nn.Module):
    """A user and two items, pooled, and a layer."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.bags = bags(device)
        self.top = torch.nn.Linear(USERS[1] + ITEMS[1], 1)

    def forward(self, rows):
        values = torch.cat([rows[:, 0], rows[:, 1:].reshape(-1)])
        lengths = torch.cat([torch.ones(len(rows)), 2 * torch.ones(len(rows))]).int()
        jagged = torchrec.KeyedJaggedTensor(["user", "item"], values, lengths=lengths)
        return self.top(self.bags(jagged).values())[:, 0]


def clicks(seed: int):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n, N) for n in (USERS[0], ITEMS[0], ITEMS[0])]
    label = (columns[1] % 3 == 0).astype(np.float32)
    return torch.tensor(np.stack(columns, axis=1)), torch.tensor(label)


def loss_of(module, batch):
    return torch.nn.functional.binary_cross_entropy_with_logits(module(batch[0]), batch[1])


@pytest.fixture
def trainer() -> Trainer:
    torch.manual_seed(2)
    module, (rows, label) = Clicks(), clicks(1)
    optimizer = torch.optim.Adagrad(module.parameters(), lr=0.1)
    evaluate = lambda module: {"auc": 0.0, "log_loss": float(loss_of(module, (rows, label)))}  # noqa: E731
    return Trainer(
        module, optimizer, TensorBatches(rows, label, batch=50), loss_of, evaluate, epochs=4
    )


def test_tables_of_several_widths_are_found_and_their_look_ups_noted(trainer) -> None:
    tables = {name.rpartition(".")[2]: table for name, table in trainer.tables.items()}
    shapes = {name: tuple(table.weight.shape) for name, table in tables.items()}
    assert shapes == {"user_table": USERS, "item_table": ITEMS}
    assert all(len(table.parts) == 2 for table in tables.values())  # weights and Adagrad's sums
    noted: list = []
    trainer.train(0, 50, noted.append)
    rows, _ = clicks(1)
    looked_up = {name.rpartition(".")[2]: rows for name, rows in noted[0].items()}
    np.testing.assert_array_equal(looked_up["user_table"], rows[:50, :1])
    np.testing.assert_array_equal(looked_up["item_table"], rows[:50, 1:])
