"""Gray-Scott patterns for a sweep of feed and kill rates; the update is one compiled kernel."""
import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
SWEEP = 8 if CUDA else 2
SIDE = 2048 if CUDA else 32
ROUNDS, INNER = (200, 60) if CUDA else (2, 3)


def laplacian(x):
    near = torch.roll(x, 1, 1) + torch.roll(x, -1, 1) + torch.roll(x, 1, 2) + torch.roll(x, -1, 2)
    return near - 4 * x


def update(u, v, feed, kill):
    reaction = u * v * v
    u_next = u + 0.16 * laplacian(u) - reaction + feed * (1 - u)
    v_next = v + 0.08 * laplacian(v) + reaction - (feed + kill) * v
    return u_next, v_next


if CUDA:
    update = torch.compile(update)


def initial():
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    u = torch.ones(SWEEP, SIDE, SIDE, device=DEVICE)
    v = torch.zeros_like(u)
    middle = slice(SIDE // 2 - SIDE // 16, SIDE // 2 + SIDE // 16)
    u[:, middle, middle] = 0.5
    v[:, middle, middle] = 0.25
    u.add_(torch.randn(u.shape, device=DEVICE, generator=generator), alpha=0.01)
    return u, v


@torch.inference_mode()
def main():
    feed = torch.linspace(0.02, 0.06, SWEEP, device=DEVICE).view(-1, 1, 1)
    kill = torch.linspace(0.05, 0.065, SWEEP, device=DEVICE).view(-1, 1, 1)
    u, v = initial()
    coverage = torch.empty(ROUNDS, SWEEP, device=DEVICE)
    for r in range(ROUNDS):
        for _ in range(INNER):
            u, v = update(u, v, feed, kill)
        coverage[r] = v.mean((1, 2))
    for f, k, c in zip(feed.flatten().tolist(), kill.flatten().tolist(), coverage[-1].tolist()):
        print(f"feed {f:.3f} kill {k:.4f}: mean v {c:.4f}")


if __name__ == "__main__":
    main()
