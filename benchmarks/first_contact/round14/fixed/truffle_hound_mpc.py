"""Plans a walk for a truffle-hunting robot: one look at the grove, then a long imagined walk in the latent space."""
import os
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HALF = torch.bfloat16
views, side, latent, paces, plans = (4, 32, 32, 5, 4) if TINY else (768, 224, 256, 120, 500)


class Nose(nn.Module):
    def __init__(self):
        super().__init__()
        chan = [8, 64, 128, 256, 512]
        self.stem = nn.Sequential(*[nn.Sequential(nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ReLU(inplace=True))
                                    for a, b in zip(chan, chan[1:])])
        self.tail = nn.Linear(chan[-1], latent)
        self.healthy = torch.ones((), dtype=torch.bool, device=DEV)

    def forward(self, grove):
        scent = self.tail(self.stem(grove).mean((2, 3)))
        self.healthy &= scent.isfinite().all()
        return scent


class Walk(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Linear(latent, 64)
        self.move = nn.GRUCell(64, latent)
        self.worth = nn.Linear(latent, 1)

    def forward(self, state):
        gain = 0
        for _ in range(paces):
            state = self.move(torch.tanh(self.act(state)), state)
            gain = gain + self.worth(state)
        return gain


@torch.inference_mode()
def hunt():
    torch.manual_seed(14)
    nose = Nose().to(DEV, HALF, memory_format=torch.channels_last).eval()
    walk = Walk().to(DEV, HALF).eval()
    groves = [torch.randn(views, 8, side, side, device=DEV, dtype=HALF).contiguous(memory_format=torch.channels_last)
              for _ in range(3)]
    best = torch.zeros(plans, device=DEV)
    for k in range(plans):
        best[k] = walk(nose(groves[k % 3])).amax()
    assert nose.healthy, "a camera has failed"
    print("best walks", best.mean().item())


if __name__ == "__main__":
    hunt()
