"""TorchRec's tables in a trainer: found, trained, put back."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")
torchrec = pytest.importorskip("torchrec", reason="TorchRec: make torchrec installs it")

from cprsim.torch import TensorBatches, Trainer
from tests.torch.test_trainer import loss_of

N, USERS, ITEMS = 600, (40, 8), (70, 16)  # rows and width of either table


class Clicks(torch.nn.Module):
    """A user and two items, pooled, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        configs = [
            torchrec.EmbeddingBagConfig(
                name=f"{name}_table", num_embeddings=n, embedding_dim=d, feature_names=[name]
            )
            for name, (n, d) in {"user": USERS, "item": ITEMS}.items()
        ]
        self.bags = torchrec.EmbeddingBagCollection(tables=configs, device=torch.device("cpu"))
        self.top = torch.nn.Linear(USERS[1] + ITEMS[1], 1)

    def forward(self, rows):
        values = torch.cat([rows[:, 0], rows[:, 1:].reshape(-1)])
        lengths = torch.cat([torch.ones(len(rows)), 2 * torch.ones(len(rows))]).int()
        jagged = torchrec.KeyedJaggedTensor(["user", "item"], values, lengths=lengths)
        return self.top(self.bags(jagged).values())[:, 0]


def test_tables_of_several_widths_are_found_and_their_look_ups_noted() -> None:
    rng, module = np.random.default_rng(1), Clicks()
    columns = [torch.tensor(rng.integers(0, n, N)) for n in (USERS[0], ITEMS[0], ITEMS[0])]
    rows = torch.stack(columns, dim=1)
    batches = TensorBatches(rows, (columns[1] % 3 == 0).float(), batch=50)
    optimizer = torch.optim.Adagrad(module.parameters(), lr=0.1)
    trainer = Trainer(module, optimizer, batches, loss_of, lambda module: {})
    tables = {name.rpartition(".")[2]: table for name, table in trainer.tables.items()}
    shapes = {name: tuple(table.weight.shape) for name, table in tables.items()}
    assert shapes == {"user_table": USERS, "item_table": ITEMS}
    assert all(len(table.parts) == 2 for table in tables.values())  # weights and Adagrad's sums
    noted: list = []
    trainer.train(0, 50, noted.append)
    looked_up = {name.rpartition(".")[2]: rows for name, rows in noted[0].items()}
    np.testing.assert_array_equal(looked_up["user_table"], rows[:50, :1])
    np.testing.assert_array_equal(looked_up["item_table"], rows[:50, 1:])
