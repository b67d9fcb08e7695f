# Factor model for daily returns: a wide encoder over instrument features, trained day by day with the desk's own update rule.
import torch
from torch import nn

FEATURES, HIDDEN, NAMES, STEPS = 320, 640, 48, 1000
LR, BETA1, BETA2, EPS = 1e-3, 0.9, 0.999, 1e-8


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(FEATURES, HIDDEN)
        self.blocks = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        h = torch.relu(self.lift(x))
        for block in self.blocks:
            h = torch.relu(block(h)) + h
        return self.head(self.norm(h)).squeeze(-1)


def Desk(parameters):
    return torch.optim.Adam(parameters, lr=LR, betas=(BETA1, BETA2), eps=EPS, fused=True)


def trading_days(count):
    exposure = torch.randn(FEATURES) / FEATURES ** 0.5
    for _ in range(count):
        x = torch.randn(NAMES, FEATURES)
        yield x, torch.tanh(x @ exposure) + 0.05 * torch.randn(NAMES)


def main():
    torch.manual_seed(17)
    encoder = Encoder()
    desk = Desk(encoder.parameters())
    error = torch.zeros(())
    for x, returns in trading_days(STEPS):
        loss = nn.functional.mse_loss(encoder(x), returns)
        desk.zero_grad()
        loss.backward()
        desk.step()
        error += loss.detach()
    print("mean error", round(float(error) / STEPS, 3))


if __name__ == "__main__":
    main()
