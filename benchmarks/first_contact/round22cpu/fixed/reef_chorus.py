"""Fish calls in reef recordings: a mixture of many small experts, one per hydrophone.

The weights are updated as soon as their gradient is there, so that gradients never pile up.
"""
import argparse
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, bands, width, calls):
        super().__init__()
        self.norm = nn.LayerNorm(bands)
        self.up = nn.Linear(bands, width)
        self.mid = nn.Linear(width, width)
        self.down = nn.Linear(width, calls)

    def forward(self, x):
        h = F.silu(self.up(self.norm(x)))
        return self.down(F.silu(self.mid(h)))


class Chorus(nn.Module):
    def __init__(self, phones, bands, width, calls):
        super().__init__()
        self.experts = nn.ModuleList(Expert(bands, width, calls) for _ in range(phones))
        self.trust = nn.Parameter(torch.zeros(phones))

    def forward(self, spectra):
        said = torch.stack([expert(x) for expert, x in zip(self.experts, spectra.unbind(1))], dim=1)
        return torch.einsum("p,bpc->bc", self.trust.softmax(0), said)


class EagerTrainer:
    def __init__(self, model, lr, decay):
        self.model = model
        self.criterion = nn.CrossEntropyLoss()
        self.attach(lr, decay)

    def attach(self, lr, decay):
        self.owner = torch.optim.AdamW(self.model.parameters(), lr=lr, weight_decay=decay, fused=True)

    def apply(self):
        self.owner.step()
        self.owner.zero_grad(set_to_none=True)

    def update(self, spectra, call):
        loss = self.criterion(self.model(spectra), call)
        loss.backward()
        self.apply()
        return loss.detach()


class Reef:
    """Calls are harmonic stacks; a hydrophone hears them through its own filter."""

    def __init__(self, phones, bands, calls, device, seed):
        self.rng = torch.Generator(device).manual_seed(seed)
        grid = torch.arange(bands, device=device)
        pitch = torch.linspace(3, 11, calls, device=device)
        self.stacks = torch.cos(2 * math.pi * grid / pitch[:, None]).clamp(min=0)
        self.filters = torch.rand(phones, bands, device=device, generator=self.rng)
        self.device, self.calls = device, calls

    def draw(self, rows):
        call = torch.randint(self.calls, (rows,), device=self.device, generator=self.rng)
        heard = self.stacks[call][:, None] * self.filters
        hiss = torch.randn(heard.shape, device=self.device, generator=self.rng)
        return heard + 0.8 * hiss, call


def parse():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--phones", type=int, default=24)
    p.add_argument("--bands", type=int, default=96)
    p.add_argument("--width", type=int, default=128)
    p.add_argument("--calls", type=int, default=32)
    p.add_argument("--rows", type=int, default=64)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--decay", type=float, default=0.01)
    p.add_argument("--updates", type=int, default=700)
    p.add_argument("--seed", type=int, default=31)
    return p.parse_args()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    reef = Reef(args.phones, args.bands, args.calls, device, args.seed + 1)
    model = Chorus(args.phones, args.bands, args.width, args.calls).to(device)
    trainer = EagerTrainer(model, args.lr, args.decay)
    window, begin = torch.zeros((), device=device), time.perf_counter()
    for n in range(1, args.updates + 1):
        window += trainer.update(*reef.draw(args.rows))
        if n % 100 == 0:
            took = time.perf_counter() - begin
            print(f"{n:5d}  loss {window.item() / 100:.5f}  {took * 10:.2f} ms", flush=True)
            window.zero_()
            begin = time.perf_counter()


if __name__ == "__main__":
    main()
