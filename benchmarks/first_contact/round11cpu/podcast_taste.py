"""Bayesian personalised ranking of podcast episodes, with users and episodes in embedding tables."""

import logging
from collections.abc import Iterator

import torch
from torch import nn

log = logging.getLogger("podcast_taste")


class ListenLog:
    """(user, heard, skipped) triples; a user's taste is a hidden topic."""

    def __init__(self, users: int, episodes: int, topics: int, seed: int):
        self.gen = torch.Generator().manual_seed(seed)
        self.users, self.episodes, self.topics = users, episodes, topics

    def triples(self, n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        user = torch.randint(self.users, (n,), generator=self.gen)
        per_topic = self.episodes // self.topics
        heard = (user % self.topics) * per_topic + torch.randint(per_topic, (n,), generator=self.gen)
        skipped = torch.randint(self.episodes, (n,), generator=self.gen)
        return user, heard, skipped

    def stream(self, batches: int, size: int) -> Iterator[tuple[torch.Tensor, ...]]:
        for _ in range(batches):
            yield self.triples(size)


class TasteModel(nn.Module):
    def __init__(self, users: int, episodes: int, dim: int = 48, hidden: int = 192):
        super().__init__()
        self.user_table = nn.Embedding(users, dim)  # flaw: dense-embedding-gradient
        self.episode_table = nn.Embedding(episodes, dim)  # flaw: dense-embedding-gradient
        nn.init.normal_(self.user_table.weight, std=0.3)
        nn.init.normal_(self.episode_table.weight, std=0.3)
        self.tower = nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def represent_user(self, user: torch.Tensor) -> torch.Tensor:
        taste = self.user_table(user)
        return taste + self.tower(taste)

    def forward(self, user, heard, skipped):
        who = self.represent_user(user)
        liked = (who * self.episode_table(heard)).sum(1)
        disliked = (who * self.episode_table(skipped)).sum(1)
        return liked - disliked


class Fitter:
    def __init__(self, model: TasteModel, lr: float):
        self.model = model
        tables = [model.user_table.weight, model.episode_table.weight]
        self.optimizer = torch.optim.SGD([{"params": tables}, {"params": model.tower.parameters(), "lr": 2e-4}], lr=lr)

    def step(self, triple) -> torch.Tensor:
        margin = self.model(*triple)
        loss = nn.functional.softplus(-margin).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach() / len(margin)

    def run(self, batches: Iterator, every: int) -> None:
        for i, triple in enumerate(batches, start=1):
            loss = self.step(triple)
            if i % every == 0:
                log.info("batch %d: ranking loss %.5f", i, loss)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    torch.manual_seed(1)
    users, episodes = 60_000, 30_000
    listens = ListenLog(users, episodes, topics=25, seed=4)
    model = TasteModel(users, episodes)
    Fitter(model, lr=0.3).run(listens.stream(1400, 1024), every=350)


if __name__ == "__main__":
    main()
