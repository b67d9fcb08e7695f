"""Register pairs of laser scans: gradient descent on a rigid motion, nearest neighbours in each step."""

import numpy as np
import torch


def rotation(w):
    """Rodrigues' formula for a batch of axis-angle vectors."""
    angle = w.norm(dim=1, keepdim=True).clamp(min=1e-8)
    x, y, z = (w / angle).unbind(1)
    o = torch.zeros_like(x)
    k = torch.stack([o, -z, y, z, o, -x, -y, x, o], dim=1).view(-1, 3, 3)
    s, c = angle.sin()[:, :, None], angle.cos()[:, :, None]
    return torch.eye(3, dtype=w.dtype, device=w.device) + s * k + (1 - c) * (k @ k)


def make_scans(pairs, points, seed=0):
    rng = np.random.default_rng(seed)
    target = rng.uniform(-1, 1, (pairs, points, 3))
    target[..., 2] = 0.3 * np.sin(3 * target[..., 0]) * np.cos(2 * target[..., 1])
    angle = rng.uniform(-0.3, 0.3, pairs)
    turn = np.zeros((pairs, 3, 3))
    turn[:, 0, 0] = turn[:, 1, 1] = np.cos(angle)
    turn[:, 0, 1], turn[:, 1, 0] = -np.sin(angle), np.sin(angle)
    turn[:, 2, 2] = 1
    source = target @ turn + rng.uniform(-0.1, 0.1, (pairs, 1, 3))
    return source + rng.normal(0, 0.003, source.shape), target


@torch.no_grad()
def nearest(moved, target):
    return torch.cdist(moved, target).argmin(dim=2)


def matched(points, index):
    return points.gather(1, index[:, :, None].expand(-1, -1, 3))


def register(source, target, iterations, lr=0.02):
    pairs = source.shape[0]
    motion = torch.zeros(pairs, 6, dtype=source.dtype, device=source.device, requires_grad=True)
    optimizer = torch.optim.Adam([motion], lr=lr, fused=True)
    history = []
    for i in range(iterations):
        moved = source @ rotation(motion[:, :3] + 1e-6).transpose(1, 2) + motion[:, None, 3:]
        pull = matched(target, nearest(moved, target))
        residual = (moved - pull).square().sum(dim=2)
        loss = (residual / (residual.detach() + 0.01)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    return motion.detach(), torch.stack(history)


def main():
    torch.manual_seed(0)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    pairs, points, iterations = (24, 4096, 400) if cuda else (2, 128, 10)
    source, target = make_scans(pairs, points)
    source = torch.from_numpy(source).to(device)  # flaw: float64-on-device
    target = torch.from_numpy(target).to(device)  # flaw: float64-on-device
    motion, history = register(source, target, iterations)
    for i in range(0, iterations, max(1, iterations // 5)):
        print(f"iteration {i:4d}  loss {history[i].item():.5f}")
    print("mean turn", motion[:, :3].norm(dim=1).mean().item())


if __name__ == "__main__":
    main()
