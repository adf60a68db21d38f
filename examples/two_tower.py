"""A two-tower retrieval model in PyTorch on made-up sessions, for `cprsim measure`.

kernel:
  trainer: two_tower:make
  options: {samples: 40000}

A user is described by an id and a bag of what they looked at before, an item by an id and a
category; the logit is the product of the two towers' outputs. Tables have several widths. Options:
samples, test (of them; a seventh), users, items, rate, batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cprsim.torch import DataLoaderBatches, Trainer
from cprsim.training.measuring.protocol import Predictions

N_CATEGORIES, MOST_SEEN, DIMENSION = 20, 5, 8


class TwoTower(torch.nn.Module):
    """Both towers end in vectors of the same width."""

    def __init__(self, n_users: int, n_items: int) -> None:
        super().__init__()
        self.user = torch.nn.Embedding(n_users, 16)
        self.seen = torch.nn.EmbeddingBag(n_items + 1, 8, mode="mean", padding_idx=n_items)
        self.item = torch.nn.Embedding(n_items, 12)
        self.category = torch.nn.Embedding(N_CATEGORIES, 4)
        self.user_tower = torch.nn.Sequential(torch.nn.Linear(24, DIMENSION))
        self.item_tower = torch.nn.Sequential(torch.nn.Linear(16, DIMENSION))
        self.bias = torch.nn.Parameter(torch.zeros(()))

    def forward(self, user: Any, seen: Any, item: Any, category: Any) -> torch.Tensor:
        """Logits (n,) of users (n,), bags (n, 5), items (n,) and categories (n,)."""
        of_user = self.user_tower(torch.cat([self.user(user), self.seen(seen)], dim=1))
        of_item = self.item_tower(torch.cat([self.item(item), self.category(category)], dim=1))
        return (of_user * of_item).sum(dim=1) + self.bias


def sessions(n: int, n_users: int, n_items: int, seed: int) -> tuple[torch.Tensor, ...]:
    """Users with tastes, items with qualities, and who clicked what; another world per seed."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(n_users, 2))
    kind = rng.normal(size=(n_items, 2))
    quality = rng.normal(size=n_items)
    popular = 1 / (1 + np.arange(n_items)) ** 0.8
    user = rng.integers(0, n_users, n)
    item = rng.choice(n_items, n, p=popular / popular.sum())
    seen = rng.choice(n_items, (n, MOST_SEEN), p=popular / popular.sum())
    seen[np.arange(MOST_SEEN) >= rng.integers(0, MOST_SEEN + 1, n)[:, None]] = n_items  # fewer
    logit = 2 * (taste[user] * kind[item]).sum(axis=1) + quality[item] - 1
    label = rng.random(n) < 1 / (1 + np.exp(-logit))
    columns = (user, seen, item, item % N_CATEGORIES)
    return (*map(torch.tensor, columns), torch.tensor(label.astype(np.float32)))


def make(seed: int, options: Mapping[str, Any]) -> Trainer:
    """The trainer of one seed."""
    n = int(options.get("samples", 40_000))
    n_users, n_items = int(options.get("users", 200)), int(options.get("items", 100))
    data = sessions(n, n_users, n_items, seed)
    at = n - int(options.get("test", n // 7))
    test = [column[at:] for column in data]
    torch.manual_seed(seed)
    module = TwoTower(n_users, n_items)
    loader = torch.utils.data.DataLoader(  # of whole batches of rows: one by one is slow
        range(at),
        int(options.get("batch", 64)),
        shuffle=True,
        collate_fn=lambda rows: [column[rows] for column in data],
    )

    def loss_of(module: TwoTower, batch: Any) -> torch.Tensor:
        *columns, label = batch
        return torch.nn.functional.binary_cross_entropy_with_logits(module(*columns), label)

    def evaluate(module: TwoTower) -> Predictions:
        logit = module(*test[:-1])
        return Predictions(test[-1].numpy(), logit.numpy(), group=test[0].numpy())

    optimizer = torch.optim.Adam(module.parameters(), lr=float(options.get("rate", 0.02)))
    return Trainer(module, optimizer, DataLoaderBatches(loader, seed), loss_of, evaluate)
