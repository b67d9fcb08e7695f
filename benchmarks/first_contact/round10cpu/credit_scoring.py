"""Score loan applications with an ensemble of networks, as the nightly job does."""

from pathlib import PurePath

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ScoreNet(nn.Module):
    def __init__(self, numeric=40, categories=(12, 30, 8, 50), dim=8, hidden=256):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(n, dim) for n in categories)
        width = numeric + dim * len(categories)
        self.net = nn.Sequential(
            nn.Linear(width, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, numeric, categories):
        parts = [embed(c) for embed, c in zip(self.embeddings, categories.unbind(1))]
        return self.net(torch.cat([numeric, *parts], dim=1)).squeeze(1)


def load_ensemble(folder, members=40):
    names = [folder / f"member_{i}.pt" for i in range(members)]
    models = []
    for seed, _ in enumerate(names):  # weights come from the seed in this sketch
        torch.manual_seed(seed)
        models.append(ScoreNet().eval())
    return models


def applications(count, generator):
    numeric = torch.randn(count, 40, generator=generator)
    limits = torch.tensor([12, 30, 8, 50])
    categories = (torch.rand(count, 4, generator=generator) * limits).long()
    return TensorDataset(numeric, categories)


def score(models, numeric, categories):
    logits = torch.stack([model(numeric, categories) for model in models])
    probabilities = logits.sigmoid()
    return probabilities.mean(0), probabilities.std(0)


def main():
    models = load_ensemble(PurePath("checkpoints"))
    data = applications(4096, torch.Generator().manual_seed(0))
    loader = DataLoader(data, batch_size=4)  # flaw: small-batch
    means, spreads = [], []
    with torch.inference_mode():
        for numeric, categories in loader:
            mean, spread = score(models, numeric, categories)
            means.append(mean)
            spreads.append(spread)
    mean, spread = torch.cat(means), torch.cat(spreads)
    print(f"{len(mean)} applications, {(mean > 0.5).sum().item()} accepted")
    print(f"mean {mean.mean():.5f}, undecided {(spread > 0.05).sum().item()}")


if __name__ == "__main__":
    main()
