"""Next-item recommendation from browsing sessions (GRU4Rec-like)."""

import torch
import torch.nn as nn

ITEMS = 3000
MODELS = {}


def register(name):
    def add(cls):
        MODELS[name] = cls
        return cls

    return add


class SessionModel(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.items = nn.Embedding(ITEMS, dim)
        self.head = nn.Linear(dim, ITEMS)

    def states(self, session):
        raise NotImplementedError

    def forward(self, session):
        logits = self.head(self.states(session))  # flaw: unused-logits
        return logits[:, -1]  # flaw: unused-logits


@register("gru")
class GruSession(SessionModel):
    def __init__(self, dim=64):
        super().__init__(dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def states(self, session):
        return self.rnn(self.items(session))[0]


@register("conv")
class ConvSession(SessionModel):
    def __init__(self, dim=64):
        super().__init__(dim)
        self.pad = nn.ConstantPad1d((4, 0), 0.0)
        self.conv = nn.Conv1d(dim, dim, 5)

    def states(self, session):
        x = self.items(session).transpose(1, 2)
        return torch.relu(self.conv(self.pad(x))).transpose(1, 2)


def browse(n, length):
    start = torch.randint(ITEMS, (n, 1))
    stride = torch.randint(1, 4, (n, 1))
    walk = start + stride * torch.arange(length + 1)
    return (walk + torch.randint(0, 2, walk.shape)) % ITEMS


def train(name, steps=220, batch=64, length=20):
    torch.manual_seed(0)
    sessions = browse(8000, length)
    model = MODELS[name]()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02, fused=True)
    criterion = nn.CrossEntropyLoss()
    for step in range(steps):
        rows = sessions[torch.randint(len(sessions), (batch,))]
        loss = criterion(model(rows[:, :-1]), rows[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"{name} step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    train("gru")
