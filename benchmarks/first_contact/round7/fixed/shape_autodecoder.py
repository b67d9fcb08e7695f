"""DeepSDF-style auto-decoder: one latent code a shape, trained with the network."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--shapes", type=int, default=1_000_000 if CUDA else 50)
    p.add_argument("--latent", type=int, default=256 if CUDA else 16)
    p.add_argument("--hidden", type=int, default=512 if CUDA else 32)
    p.add_argument("--scenes", type=int, default=128 if CUDA else 4)
    p.add_argument("--points", type=int, default=1024 if CUDA else 16)
    p.add_argument("--steps", type=int, default=600 if CUDA else 4)
    p.add_argument("--clamp", type=float, default=0.1)
    return p.parse_args()


class Decoder(nn.Module):
    def __init__(self, latent, hidden):
        super().__init__()
        self.from_code = nn.Linear(latent, hidden)
        self.from_point = nn.Linear(3, hidden, bias=False)
        self.before = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(3)])
        self.again = nn.Linear(latent, hidden, bias=False)
        self.after = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(3)])
        self.out = nn.Linear(hidden, 1)

    def forward(self, code, points):
        x = F.relu(self.from_code(code)[:, None] + self.from_point(points), inplace=True)
        for layer in self.before:
            x = F.relu(layer(x), inplace=True)
        x = x + self.again(code)[:, None]
        for layer in self.after:
            x = F.relu(layer(x), inplace=True)
        return self.out(x).squeeze(-1)


def sample_shapes(args, device):
    """Ids, points and signed distances to ellipsoids whose axes depend on the id."""
    ids = torch.randint(0, args.shapes, (args.scenes,), device=device)
    points = torch.rand(args.scenes, args.points, 3, device=device) * 2 - 1
    axes = 0.4 + 0.3 * torch.sin(ids[:, None] * torch.tensor([0.1, 0.7, 1.3], device=device))
    distance = ((points / axes[:, None]).norm(dim=-1) - 1) * axes.amin(1, keepdim=True)
    return ids, points, distance


def main():
    args = arguments()
    device = "cuda" if CUDA else "cpu"
    torch.manual_seed(0)
    codes = nn.Embedding(args.shapes, args.latent, sparse=True, device=device)
    nn.init.normal_(codes.weight, std=0.01)
    decoder = Decoder(args.latent, args.hidden).to(device)
    optimizers = [
        torch.optim.Adam(decoder.parameters(), lr=5e-4, fused=True),
        torch.optim.SparseAdam(codes.parameters(), lr=1e-3),
    ]
    for step in range(args.steps):
        ids, points, distance = sample_shapes(args, device)
        code = codes(ids)
        with torch.autocast(device, dtype=torch.bfloat16):
            predicted = decoder(code, points)
        fit = F.l1_loss(predicted.float().clamp(-args.clamp, args.clamp), distance.clamp(-args.clamp, args.clamp))
        loss = fit + 1e-4 * code.square().sum(1).mean()
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        if step % 100 == 0:
            print(f"step {step} fit {fit.item():.5f}")


if __name__ == "__main__":
    main()
