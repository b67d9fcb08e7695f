"""Song vectors from listening sessions: skip-gram with negative sampling."""

import torch
import torch.nn.functional as F

SONGS, DIM = 120_000, 48
BATCH, NEGATIVES = 1024, 5
STEPS = 300


def listening_sessions(n_sessions=20_000, length=20):
    taste = torch.randint(0, SONGS, (n_sessions, 1))
    return (taste + torch.randint(-200, 200, (n_sessions, length))) % SONGS


def skip_gram_pairs(sessions, window=3):
    pairs = []
    for gap in range(1, window + 1):
        pairs.append(torch.stack((sessions[:, :-gap], sessions[:, gap:]), -1).reshape(-1, 2))
    return torch.cat(pairs)


class SkipGram(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.center = torch.nn.Embedding(SONGS, DIM, sparse=True)
        self.context = torch.nn.Embedding(SONGS, DIM, sparse=True)
        torch.nn.init.uniform_(self.center.weight, -0.5 / DIM, 0.5 / DIM)
        torch.nn.init.zeros_(self.context.weight)

    def forward(self, center, positive, negative):
        c = self.center(center)
        pos = (c * self.context(positive)).sum(1)
        neg = torch.bmm(self.context(negative), c[:, :, None]).squeeze(2)
        return -(F.logsigmoid(pos).mean() + F.logsigmoid(-neg).sum(1).mean())


if __name__ == "__main__":
    torch.manual_seed(0)
    pairs = skip_gram_pairs(listening_sessions())
    model = SkipGram()
    optimizer = torch.optim.SGD(model.parameters(), lr=25.0)
    for step in range(STEPS):
        center, positive = pairs[torch.randint(len(pairs), (BATCH,))].unbind(1)
        negative = torch.randint(SONGS, (BATCH, NEGATIVES))
        loss = model(center, positive, negative)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} loss {loss.item():.4f}")
    vectors = F.normalize(model.center.weight.detach(), dim=1)
    print("neighbours of song 0:", (vectors @ vectors[0]).topk(4).indices.tolist())
