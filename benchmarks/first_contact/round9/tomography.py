# Ultrasound-style tomography with a dense sensitivity matrix: FISTA with a soft threshold,
# a stack of slices is reconstructed together.
import numpy as np
import torch

gpu = torch.cuda.is_available()
dev = torch.device("cuda" if gpu else "cpu")
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

side = 128 if gpu else 16                # image side
n_rays = 12288 if gpu else 200
n_slices = 64 if gpu else 2
outer, inner = (400, 8) if gpu else (5, 3)
lam = 2e-3
width = 1.5 / side

rng = np.random.default_rng(42)

# ray geometry: two end points on the unit circle
theta = torch.from_numpy(rng.uniform(0, 2 * np.pi, size=(n_rays, 2))).to(dev)  # flaw: float64-on-device
axis = torch.from_numpy(np.linspace(-0.7, 0.7, side)).to(dev)  # flaw: float64-on-device


def sensitivity(theta, axis):
    """Gaussian-width ray kernel evaluated at every pixel, one row per ray."""
    a = torch.stack([theta[:, 0].cos(), theta[:, 0].sin()], 1)
    b = torch.stack([theta[:, 1].cos(), theta[:, 1].sin()], 1)
    d = torch.nn.functional.normalize(b - a, dim=1)
    normal = torch.stack([-d[:, 1], d[:, 0]], 1)
    offset = (a * normal).sum(1, keepdim=True)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    pixels = torch.stack([xx.reshape(-1), yy.reshape(-1)], 1)
    dist = normal @ pixels.T - offset
    return torch.exp(-(dist / width).square()) * (2.0 / side)


def phantom(axis, count):
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    out = torch.zeros(side * side, count, device=dev, dtype=axis.dtype)
    for i in range(count):
        cx, cy, r = rng.uniform(-0.4, 0.4), rng.uniform(-0.4, 0.4), rng.uniform(0.1, 0.3)
        out[:, i] = (((xx - cx) ** 2 + (yy - cy) ** 2) < r * r).reshape(-1).to(axis.dtype)
    return out


@torch.no_grad()
def lipschitz(A, iters=20):
    v = torch.randn(A.shape[1], 1, device=dev, dtype=A.dtype)
    for _ in range(iters):
        v = A.T @ (A @ v)
        s = v.norm()
        v = v / s
    return s


with torch.inference_mode():
    A = sensitivity(theta, axis)
    truth = phantom(axis, n_slices)
    y = A @ truth
    y += 0.01 * y.std() * torch.randn_like(y)
    step = 0.95 / lipschitz(A)

    x = torch.zeros_like(truth)
    z, t = x, 1.0
    for k in range(outer):
        for _ in range(inner):
            grad = A.T @ (A @ z - y)
            x_new = torch.nn.functional.softshrink(z - step * grad, lam)
            t_new = 0.5 * (1 + (1 + 4 * t * t) ** 0.5)
            z = torch.lerp(x, x_new, 1 + (t - 1) / t_new)
            x, t = x_new, t_new
        if (k + 1) % 50 == 0 or k + 1 == outer:
            err = (x - truth).norm() / truth.norm()
            print(f"outer {k + 1:4d}: relative error {err.item():.4f}")

np.set_printoptions(precision=3)
print("slice mass", x.sum(0)[:4].cpu().numpy())
