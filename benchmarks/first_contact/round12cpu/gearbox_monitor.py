"""Condition monitoring: a trained predictor scores vibration records of gearboxes by machine."""
import torch
from torch import nn

N_SHARDS = 600
torch.set_num_threads(1)


class VibrationPredictor(nn.Module):
    """Predicts each vibration frame from the frames before it."""

    def __init__(self, bins=24, hidden=40):
        super().__init__()
        self.squeeze = nn.Linear(bins, hidden)
        self.memory = nn.GRU(hidden, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, bins)

    def forward(self, frames):
        state, _ = self.memory(torch.tanh(self.squeeze(frames)))
        return self.out(state)


class Scorecard:
    def __init__(self, machines):
        self.total, self.count = torch.zeros(machines), torch.zeros(machines)

    def add(self, machine, value):
        self.total.index_add_(0, machine, value)
        self.count.index_add_(0, machine, torch.ones_like(value))

    def lines(self):
        for k, mean in enumerate((self.total / self.count).tolist()):
            yield f"machine {k}: prediction error {mean:.5f}"


def shards(n, size, gen):
    t = torch.linspace(0, 9, 64)
    bins = torch.arange(24)
    for _ in range(n):
        machine = torch.randint(0, 4, (size,), generator=gen)
        load = torch.sin(t * (1 + machine)[:, None])
        frames = torch.exp(-(bins - 12 - 6 * load.unsqueeze(-1)).square() / 8)
        yield frames + 0.1 * torch.randn(frames.shape, generator=gen), machine


def score_all(model, feed, card):  # flaw: grad-in-eval
    model.eval()
    for frames, machine in feed:  # flaw: grad-in-eval
        error = nn.functional.mse_loss(model(frames[:, :-1]), frames[:, 1:], reduction="none")  # flaw: grad-in-eval
        card.add(machine, error.mean((1, 2)).detach())


if __name__ == "__main__":
    torch.manual_seed(4)
    card = Scorecard(4)
    score_all(VibrationPredictor(), shards(N_SHARDS, 16, torch.Generator().manual_seed(4)), card)
    print(*card.lines(), sep="\n")
