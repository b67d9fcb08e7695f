"""A small student learns from a large frozen teacher."""
import torch
from torch import nn
import torch.nn.functional as F


def net(dim, depth, classes=1000):
    body = [m for _ in range(depth) for m in (nn.Linear(dim, dim), nn.GELU(), nn.LayerNorm(dim))]
    return nn.Sequential(*body, nn.Linear(dim, classes))


class Distiller:
    def __init__(self, device):
        self.device = device
        self.teacher, self.student = net(2048, 10).to(device).eval(), net(1024, 3).to(device)
        self.shrink = nn.Linear(2048, 1024).to(device)
        self.opt = torch.optim.AdamW([*self.student.parameters(), *self.shrink.parameters()], 1e-4, fused=True)

    def loss(self, x, temperature=2.0):
        wanted = self.teacher(x).detach()  # flaw: none-yet(gradients-recorded-for-nothing)|grad-in-eval
        got = self.student(self.shrink(x))
        return F.kl_div((got / temperature).log_softmax(-1), (wanted / temperature).log_softmax(-1), log_target=True, reduction="batchmean")

    def fit(self, steps):
        x = torch.randn(4, 8192, 2048, device=self.device)
        for s in range(steps):
            with torch.autocast(self.device, torch.bfloat16):
                loss = self.loss(x[s % 4])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


Distiller("cuda" if torch.cuda.is_available() else "cpu").fit(320)
