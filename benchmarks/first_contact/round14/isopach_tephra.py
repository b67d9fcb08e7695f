"""Neural operator for ash fall: features of gauges spread over the island by a smooth kernel."""
import os
import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"


def spread(places, reach):
    near = torch.exp(-torch.cdist(places, places).square() / (2 * reach ** 2))
    return (near / near.sum(1, keepdim=True)).to(torch.bfloat16)


class Diffuse(nn.Module):
    def __init__(self, places, width, reach):
        super().__init__()
        self.register_buffer("places", places)
        self.reach = reach
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        y = self.norm(x)
        blurred = spread(self.places, self.reach) @ y.to(torch.bfloat16)  # flaw: constant-rebuilt
        return x + self.mlp(torch.cat([y, blurred], -1))


def network(gauges, width):
    places = torch.rand(gauges, 2)
    return nn.Sequential(nn.Linear(6, width), *[Diffuse(places, width, r) for r in (0.05, 0.1, 0.3)], nn.Linear(width, 1))


def main():
    torch.manual_seed(9)
    gauges, width, events = (64, 16, 5) if TINY else (8192, 512, 500)
    net = network(gauges, width).to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    log = []
    for event in range(events):
        wind = torch.randn(gauges, 6, device=DEV)
        ash = wind.square().mean(1, keepdim=True).log1p()
        with torch.autocast(DEV, torch.bfloat16):
            guess = net(wind)
        loss = nn.functional.l1_loss(guess.float(), ash)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log.append(loss.detach())
    print("ash error: %.4f" % torch.stack(log).mean().item())


main()
