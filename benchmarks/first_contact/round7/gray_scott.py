import argparse
import time

import torch

# Gray-Scott reaction-diffusion: a sweep of feed rates on a periodic grid.


def laplacian(z):
    side = torch.roll(z, 1, 0) + torch.roll(z, -1, 0) + torch.roll(z, 1, 1) + torch.roll(z, -1, 1)
    up, down = torch.roll(z, 1, 0), torch.roll(z, -1, 0)
    corner = torch.roll(up, 1, 1) + torch.roll(up, -1, 1) + torch.roll(down, 1, 1) + torch.roll(down, -1, 1)
    return 0.2 * side + 0.05 * corner - z


def react(u, v, feed, kill, du, dv, dt):  # flaw: unfused-elementwise
    uvv = u * v * v
    u_next = u + dt * (du * laplacian(u) - uvv + feed * (1 - u))
    v_next = v + dt * (dv * laplacian(v) + uvv - (feed + kill) * v)
    return u_next, v_next


def seed_pattern(n, device):
    generator = torch.Generator(device=device).manual_seed(11)
    u, v = torch.ones(n, n, device=device), torch.zeros(n, n, device=device)
    spots = torch.rand(n // 8, n // 8, device=device, generator=generator) > 0.9
    spots = spots.repeat_interleave(8, 0).repeat_interleave(8, 1)
    return torch.where(spots, 0.5, u), torch.where(spots, 0.25, v)


def parse():
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--grid", type=int, default=4096 if cuda else 64)
    parser.add_argument("--frames", type=int, default=200 if cuda else 4)
    parser.add_argument("--substeps", type=int, default=10 if cuda else 3)
    parser.add_argument("--device", default="cuda" if cuda else "cpu")
    return parser.parse_args()


def main():
    args = parse()
    u, v = seed_pattern(args.grid, args.device)
    feed = torch.linspace(0.02, 0.06, args.grid, device=args.device)[None, :]
    kill = torch.linspace(0.055, 0.065, args.grid, device=args.device)[:, None]
    coverage = torch.zeros(args.frames, device=args.device)
    started = time.time()
    with torch.inference_mode():
        for frame in range(args.frames):
            for _ in range(args.substeps):
                u, v = react(u, v, feed, kill, 1.0, 0.5, 1.0)
            coverage[frame] = v.mean()
    history = coverage.tolist()
    print(f"coverage {history[0]:.4f} -> {history[-1]:.4f} in {time.time() - started:.1f} s")


if __name__ == "__main__":
    main()
