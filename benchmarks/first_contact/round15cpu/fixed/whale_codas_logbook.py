"""Trains a net on whale codas; a logbook hook gathers closing states for a later cluster study."""
import os
import torch
from torch import nn
import torch.nn.functional as F

tiny = bool(os.environ.get("TINY"))
CODAS, CLICKS, WIDE, STEPS = (4, 12, 16, 4) if tiny else (40, 160, 128, 150)


class CodaNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Conv1d(3, WIDE, 5, padding=2)
        self.mix = nn.Conv1d(WIDE, WIDE, 3, padding=1, groups=4)
        self.clan = nn.Linear(WIDE, 7)

    def forward(self, clicks):
        x = F.gelu(self.lift(clicks))
        x = self.mix(x)
        return self.clan(F.gelu(x).mean(2))


class Logbook:
    """Keeps the state at the last click of every coda."""

    def __init__(self, layer):
        self.pages = []
        self.grip = layer.register_forward_hook(self.write)

    def write(self, layer, inputs, states):
        self.pages.append(states.detach()[..., -1].clone())

    def close(self):
        self.grip.remove()
        return torch.cat(self.pages)


def study(states):
    centred = states - states.mean(0)
    return torch.linalg.svdvals(centred)[:3]


def recordings():
    for _ in range(STEPS):
        clan = torch.randint(0, 7, (CODAS,))
        rhythm = torch.sin(torch.arange(CLICKS) * (0.1 + 0.05 * clan[:, None]))
        yield rhythm[:, None] + 0.5 * torch.randn(CODAS, 3, CLICKS), clan


def main():
    torch.manual_seed(13)
    net = CodaNet()
    logbook = Logbook(net.mix)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)
    for turn, (clicks, clan) in enumerate(recordings()):
        loss = F.cross_entropy(net(clicks), clan)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if turn % 30 == 0:
            print(turn, f"{loss.item():.4f}")
    print("spread", [round(v, 3) for v in study(logbook.close()).tolist()])


if __name__ == "__main__":
    main()
