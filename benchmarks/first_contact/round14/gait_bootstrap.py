"""Self-supervised gait features: an online network predicts what a slow copy of it sees in another view."""
import copy
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
D = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WINDOW, AXES, WALKERS, WIDTH, LAYERS, STEPS = (16, 6, 4, 32, 1, 4) if TINY else (128, 6, 256, 512, 8, 200)


def mlp(inside, hidden, outside):
    return nn.Sequential(nn.Linear(inside, hidden), nn.LayerNorm(hidden), nn.GELU(), nn.Linear(hidden, outside))


class GaitEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.sense = nn.Linear(AXES, WIDTH)
        self.when = nn.Parameter(torch.randn(WINDOW, WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.stride = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.project = mlp(WIDTH, 4 * WIDTH, 256)

    def forward(self, motion):
        return self.project(self.stride(self.sense(motion) + self.when).mean(1))


class Bootstrap:
    def __init__(self, momentum=0.99):
        self.momentum = momentum
        self.online = GaitEncoder().to(D)
        self.slow = copy.deepcopy(self.online)
        self.predict = mlp(256, 1024, 256).to(D)
        trained = [*self.online.parameters(), *self.predict.parameters()]
        self.opt = torch.optim.AdamW(trained, lr=2e-4, fused=True)

    @torch.no_grad()
    def follow(self):
        torch._foreach_lerp_(list(self.slow.parameters()), list(self.online.parameters()), 1 - self.momentum)

    def update(self, one, two):
        with torch.autocast(D.type, dtype=torch.bfloat16):
            said = self.predict(self.online(one))
            seen = self.slow(two)  # flaw: wasted-gradient
        loss = (2 - 2 * F.cosine_similarity(said.float(), seen.float())).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.follow()
        return loss.detach()


def views(g):
    t = torch.arange(WINDOW, device=D)[:, None] / 12
    pace = 0.6 + torch.rand(WALKERS, 1, AXES, generator=g, device=D)
    motion = torch.sin(6.283 * pace * t)
    for _ in range(2):
        turn = torch.linalg.qr(torch.randn(AXES, AXES, generator=g, device=D))[0]
        yield motion @ turn + 0.1 * torch.randn(motion.shape, generator=g, device=D)


def main():
    torch.manual_seed(81)
    g = torch.Generator(device=D).manual_seed(82)
    pair = Bootstrap()
    curve = [pair.update(*views(g)) for _ in range(STEPS)]
    print("distance", " ".join("%.4f" % v for v in torch.stack(curve)[-4:].tolist()))


if __name__ == "__main__":
    main()
