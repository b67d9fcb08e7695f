"""Forecast 16 channels of satellite bus telemetry (voltages, temperatures, wheel speeds).

A window of 64 samples of all channels goes through a deep residual perceptron, which gives the next 16
samples at once.  The telemetry is simulated: orbits, eclipses and noise.
"""
import argparse
import os

import torch
import torch.nn.functional as F

from telemetry_forecast_lib import ResidualStack

torch.set_float32_matmul_precision("high")
tiny = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--samples", type=int, default=4000 if tiny else 2_000_000)
    p.add_argument("--batch", type=int, default=32 if tiny else 49152)
    p.add_argument("--width", type=int, default=64 if tiny else 1024)
    p.add_argument("--hidden", type=int, default=128 if tiny else 2048)
    p.add_argument("--depth", type=int, default=2 if tiny else 6)
    p.add_argument("--updates", type=int, default=40 if tiny else 2000)
    p.add_argument("--report", type=int, default=10 if tiny else 100)
    p.add_argument("--lr", type=float, default=4e-4)
    return p.parse_args()


def simulate(samples, channels=16, seed=17):
    g = torch.Generator(device).manual_seed(seed)
    t = torch.arange(samples, device=device, dtype=torch.float32).unsqueeze(1)
    period = torch.rand(channels, device=device, generator=g) * 300 + 90
    phase = torch.rand(channels, device=device, generator=g) * 6.28
    orbit = torch.sin(t / period + phase)
    eclipse = (torch.sin(t / 260.0) > 0.6).float() * torch.rand(channels, device=device, generator=g)
    return orbit - eclipse + 0.05 * torch.randn(samples, channels, device=device, generator=g)


def window_stream(series, past, future, batch, seed=23):
    g = torch.Generator(device).manual_seed(seed)
    windows = series.unfold(0, past + future, 1)
    while True:
        at = torch.randint(len(windows), (batch,), device=device, generator=g)
        taken = windows[at]
        yield taken[..., :past].flatten(1), taken[..., past:].flatten(1)


def main():
    args = parse()
    torch.manual_seed(1)
    series = simulate(args.samples)
    net = ResidualStack(16 * 64, args.width, args.hidden, args.depth, 16 * 16).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.01, fused=True)
    total = torch.zeros((), device=device)
    stream = window_stream(series, 64, 16, args.batch)
    for update in range(1, args.updates + 1):
        past, future = next(stream)
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = net(past)
        loss = F.mse_loss(guess.float(), future)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
        if update % args.report == 0:
            print(f"{update:5d} mse {total.item() / args.report:.5f}", flush=True)
            total.zero_()


if __name__ == "__main__":
    main()
