"""Distil a large model of kelp-forest sonar pings into a small one, with an averaged copy of the student.

Everything is on the device: the pings are a few hundred megabytes.
"""
import copy
import time
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

HP = SimpleNamespace(
    pings=8192, slots=256, echo=64, species=256, batch=64, steps=1000, temperature=2.0, mix=0.7, average=0.998, lr=4e-4
)


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.feed(self.between(x))


def sonar(width, heads, depth):
    class Sonar(nn.Module):
        def __init__(self):
            super().__init__()
            self.read = nn.Linear(HP.echo, width)
            self.range = nn.Parameter(torch.randn(HP.slots, width) * 0.02)
            self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(depth)))
            self.norm = nn.LayerNorm(width)
            self.name = nn.Linear(width, HP.species)

        def forward(self, pings):
            return self.name(self.norm(self.layers(self.read(pings) + self.range)).mean(1))

    return Sonar()


class Smooth:
    """Sums on the device in double precision, and is read when something is printed."""

    def __init__(self, device):
        self.total = torch.zeros((), dtype=torch.float64, device=device)
        self.count = 0

    def add(self, value):
        self.total += value.detach()
        self.count += 1

    def read(self):
        mean = self.total.item() / max(self.count, 1)
        self.total.zero_()
        self.count = 0
        return mean


def ocean(device):
    g = torch.Generator(device=device).manual_seed(12)
    species = torch.randint(HP.species, (HP.pings,), generator=g, device=device)
    shapes = torch.randn(HP.species, 16, HP.echo, generator=g, device=device)
    pings = torch.randn(HP.pings, HP.slots, HP.echo, generator=g, device=device)
    pings.view(HP.pings, 16, -1, HP.echo).add_(shapes[species][:, :, None])
    return pings, species


def main():
    torch.manual_seed(12)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pings, species = ocean(device)
    teacher = sonar(1024, 16, 4).to(device, torch.bfloat16).eval().requires_grad_(False)
    student = sonar(768, 12, 4).to(device)
    averaged = copy.deepcopy(student).requires_grad_(False)
    mine, theirs = list(averaged.parameters()), list(student.parameters())
    optimizer = torch.optim.AdamW(theirs, lr=HP.lr, weight_decay=0.05, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, HP.lr, total_steps=HP.steps)
    meter, begin = Smooth(device), time.time()
    picker = torch.Generator(device=device).manual_seed(99)
    for step in range(1, HP.steps + 1):
        rows = torch.randint(HP.pings, (HP.batch,), generator=picker, device=device)
        x, y = pings[rows], species[rows]
        with torch.no_grad():
            wanted = F.log_softmax(teacher(x.bfloat16()).float() / HP.temperature, dim=1)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = student(x).float()
            soft = F.kl_div(F.log_softmax(scores / HP.temperature, dim=1), wanted, reduction="batchmean", log_target=True)
            loss = HP.mix * HP.temperature**2 * soft + (1 - HP.mix) * F.cross_entropy(scores, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(theirs, 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            torch._foreach_lerp_(mine, theirs, 1 - HP.average)
        meter.add(loss)
        if step % 100 == 0:
            print(f"{step:4d}  loss {meter.read():.4f}  {step * HP.batch / (time.time() - begin):.0f} pings/s")
    if device.type == "cuda":
        torch.cuda.synchronize()
    print(f"done in {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
