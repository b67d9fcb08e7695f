# Removal of muscle artefacts from three-lead Holter records.
import argparse
import math
import time

import torch
import torch.nn.functional as F

from holter_denoise_lib import denoiser


def heart(rows, length, rng):
    """Clean and spoiled records; beats are sums of narrow bumps."""
    t = torch.arange(length) / 250.0
    rate = 0.9 + 0.5 * torch.rand(rows, 1, 1, generator=rng)
    phase = torch.rand(rows, 1, 1, generator=rng)
    place = (t * rate + phase) % 1.0
    clean = torch.zeros(rows, 3, length)
    for centre, width, height in ((0.2, 0.03, 0.15), (0.4, 0.012, 1.0), (0.44, 0.01, -0.3), (0.7, 0.05, 0.25)):
        lead = 0.5 + torch.rand(rows, 3, 1, generator=rng)
        clean += height * lead * torch.exp(-(((place - centre) / width) ** 2) / 2)
    burst = (torch.sin(2 * math.pi * t * 0.3 + 6 * phase) > 0.3).float()
    return clean, clean + 0.3 * burst * torch.randn(rows, 3, length, generator=rng)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--records", type=int, default=512)
    p.add_argument("--length", type=int, default=2048)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--steps", type=int, default=160)
    p.add_argument("--lr", type=float, default=1e-3)
    args = p.parse_args()

    torch.manual_seed(3)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rng = torch.Generator().manual_seed(5)
    clean, noisy = (part.to(device) for part in heart(args.records, args.length, rng))
    net = denoiser().to(device)
    opt = torch.optim.Adam(net.parameters(), lr=args.lr, fused=True)

    seen, tick = torch.zeros((), device=device), time.time()
    for step in range(1, args.steps + 1):
        rows = torch.randint(args.records, (args.batch,), generator=rng).to(device)
        loss = F.l1_loss(net(noisy[rows]), clean[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += loss.detach()
        if step % 40 == 0:
            print(f"{step:5d}  l1 {seen.item() / 40:.5f}  {25 * (time.time() - tick):.1f} ms", flush=True)
            seen.zero_()
            tick = time.time()


if __name__ == "__main__":
    main()
