# Posterior sampling for compressed sensing: annealed Langevin dynamics with a noise-conditional score network.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
device = "cuda" if torch.cuda.is_available() else "cpu"
full = device == "cuda"
dtype = torch.bfloat16 if full else torch.float32

n_chains = 2048 if full else 8
dim = 1024 if full else 32
n_meas = 384 if full else 12
width = 4096 if full else 48
depth = 8 if full else 2
levels = 60 if full else 3
inner = 5 if full else 2
step_lr = 2e-5
meas_std = 0.05


class ScoreNet(nn.Module):
    def __init__(self, dim, width, depth):
        super().__init__()
        self.inp = nn.Linear(dim, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.cond = nn.Linear(1, width)
        self.out = nn.Linear(width, dim)

    def forward(self, x, sigma):
        h = self.inp(x) + self.cond(sigma.log().view(1, 1).to(x.dtype))
        for norm, layer in zip(self.norms, self.layers):
            h = h + F.silu(layer(norm(h)))
        return self.out(h)


class LinearGaussian:
    """y = A x + noise; gradient of log p(y | x_noisy) under the usual annealed approximation."""

    def __init__(self, a, y):
        self.a, self.y = a, y

    def guidance(self, x, sigma):
        resid = torch.addmm(self.y, x, self.a.t(), beta=1, alpha=-1)
        return (resid @ self.a) / (meas_std**2 + sigma**2)


def langevin_level(net, problem, x, sigma, step_size):
    for _ in range(inner):
        prior = net(x.to(dtype), sigma).float() / sigma
        drift = prior + problem.guidance(x, sigma)
        noise = torch.randn(x.shape).to(device)  # flaw: tensor-made-on-host
        x = torch.addcmul(torch.addcmul(x, drift, step_size), noise, (2 * step_size).sqrt())
    return x


torch.manual_seed(0)
net = ScoreNet(dim, width, depth).to(device, dtype).eval().requires_grad_(False)
a = torch.randn(n_meas, dim, device=device) / n_meas**0.5
x_true = torch.randn(1, dim, device=device) * (torch.rand(1, dim, device=device) < 0.1)
y = x_true @ a.t() + meas_std * torch.randn(1, n_meas, device=device)
problem = LinearGaussian(a, y)

sigmas = torch.logspace(1.0, -2.0, levels, device=device)
step_sizes = step_lr * (sigmas / sigmas[-1]) ** 2
step_sizes = torch.minimum(step_sizes, 0.2 * sigmas**2)

with torch.inference_mode():
    x = torch.randn(n_chains, dim, device=device) * sigmas[0]
    spread = torch.zeros(levels, device=device)
    for i in range(levels):
        x = langevin_level(net, problem, x, sigmas[i], step_sizes[i])
        spread[i] = x.std(0).mean()
        if i % 15 == 0:
            print(f"level {i}: sigma {sigmas[i].item():.3f} spread {spread[i].item():.4f}")
    error = (x.mean(0) - x_true[0]).norm() / x_true.norm()
print(f"relative error of the posterior mean {error.item():.4f}")
