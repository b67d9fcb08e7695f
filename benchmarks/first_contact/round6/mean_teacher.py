"""Semi-supervised table classification: a student, a slowly moving teacher, momentum updates by hand."""
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

quick = bool(os.environ.get("SMALL"))
ROWS, COLS, WIDTH, DEPTH, STEPS = (32, 16, 32, 3, 30) if quick else (16384, 128, 384, 60, 100)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Cell(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.norm = nn.LayerNorm(w)
        self.a, self.b = nn.Linear(w, w), nn.Linear(w, w)

    def forward(self, x):
        return x + self.b(F.silu(self.a(self.norm(x))))


class Momentum:
    def __init__(self, params, lr=0.01, beta=0.9):
        self.params = [p for p in params if p.requires_grad]
        self.buffers = [torch.zeros_like(p) for p in self.params]
        self.lr, self.beta = lr, beta

    @torch.no_grad()
    def apply(self):
        for p, m in zip(self.params, self.buffers):  # flaw: parameter-loop
            m.mul_(self.beta).add_(p.grad)  # flaw: parameter-loop
            p.sub_(m, alpha=self.lr)  # flaw: parameter-loop

    def clear(self):
        for p in self.params:
            p.grad = None


class Teacher:
    def __init__(self, net, keep=0.995):
        self.net = copy.deepcopy(net).requires_grad_(False)
        self.pairs = list(self.net.parameters()), [p.detach() for p in net.parameters()]
        self.keep = keep

    @torch.no_grad()
    def follow(self):
        torch._foreach_lerp_(*self.pairs, 1 - self.keep)

    @torch.no_grad()
    def __call__(self, x):
        return self.net(x).softmax(-1)


def rows():
    g = torch.Generator(device).manual_seed(3)
    table = torch.randn(ROWS * 4, COLS, device=device, generator=g)
    label = (table[:, :10].sum(1) > 0).long()
    while True:
        pick = torch.randint(len(table), (ROWS,), device=device, generator=g)
        yield table[pick], label[pick]


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(COLS, WIDTH), *[Cell(WIDTH) for _ in range(DEPTH)], nn.Linear(WIDTH, 2)).to(device)
    teacher, rule = Teacher(net), Momentum(net.parameters())
    for step, (x, y) in zip(range(STEPS), rows()):
        with torch.autocast(device.type, torch.bfloat16):
            target = teacher(x + 0.1 * torch.randn_like(x))
            logits = net(x)
            loss = F.cross_entropy(logits[: ROWS // 2], y[: ROWS // 2]) + F.cross_entropy(logits, target.float())
        rule.clear()
        loss.backward()
        rule.apply()
        teacher.follow()
        if step % 25 == 0:
            print(step, f"{loss.item():.4f}")


main()
