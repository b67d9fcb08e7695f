# Hamiltonian Monte Carlo over all weights of a Bayesian regression network (one chain).
import math

import torch

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
torch.set_float32_matmul_precision("high")
torch.manual_seed(1)

N = 8192 if cuda else 64
SIZES = [256, 1536, 1536, 1] if cuda else [8, 16, 16, 1]
SAMPLES = 300 if cuda else 10
LEAPFROG = 8
EPS = 4e-5
NOISE_VAR = 0.05
PRIOR_VAR = 1.0

SHAPES = []
for n_in, n_out in zip(SIZES[:-1], SIZES[1:]):
    SHAPES += [(n_out, n_in), (n_out,)]
DIM = sum(math.prod(s) for s in SHAPES)


def unpack(theta):
    parts = theta.split([math.prod(s) for s in SHAPES])
    return [p.view(s) for p, s in zip(parts, SHAPES)]


def network(theta, x):
    params = unpack(theta)
    for i in range(0, len(params), 2):
        x = torch.nn.functional.linear(x, params[i], params[i + 1])
        if i + 2 < len(params):
            x = torch.tanh(x)
    return x.squeeze(-1)


def potential(theta, x, y):
    resid = network(theta, x) - y
    return 0.5 * resid.dot(resid) / NOISE_VAR + 0.5 * theta.dot(theta) / PRIOR_VAR


def grad_potential(theta, x, y):
    theta = theta.detach().requires_grad_(True)
    u = potential(theta, x, y)
    (g,) = torch.autograd.grad(u, theta)
    return u.detach(), g


def leapfrog(theta, mom, grad, x, y):
    for _ in range(LEAPFROG):
        mom = torch.add(mom, grad, alpha=-0.5 * EPS)
        theta = torch.add(theta, mom, alpha=EPS)
        u, grad = grad_potential(theta, x, y)
        mom = torch.add(mom, grad, alpha=-0.5 * EPS)
    return theta, mom, u, grad


def transition(theta, u, grad, x, y):
    mom = torch.randn_like(theta)
    h0 = u + 0.5 * mom.dot(mom)
    prop, mom_new, u_new, grad_new = leapfrog(theta, mom, grad, x, y)
    h1 = u_new + 0.5 * mom_new.dot(mom_new)
    accept = torch.rand((), device=theta.device).log() < h0 - h1
    theta = torch.where(accept, prop, theta)
    u = torch.where(accept, u_new, u)
    grad = torch.where(accept, grad_new, grad)
    return theta, u, grad, accept


x = torch.randn(N, SIZES[0], device=device)
y = torch.sin(x[:, :4].sum(1)) + 0.1 * torch.randn(N, device=device)

theta = torch.cat([torch.randn(math.prod(s), device=device) / math.sqrt(s[-1]) for s in SHAPES])
u, grad = grad_potential(theta, x, y)

draws = torch.empty(SAMPLES, DIM)  # flaw: sync-in-step
accepted = torch.zeros((), device=device)
energies = torch.zeros(SAMPLES, device=device)
for i in range(SAMPLES):
    theta, u, grad, ok = transition(theta, u, grad, x, y)
    accepted += ok
    energies[i] = u
    draws[i] = theta.cpu()  # flaw: sync-in-step
    if (i + 1) % max(SAMPLES // 5, 1) == 0:
        print(f"{i + 1}/{SAMPLES}  U={u.item():.2f}  accept={accepted.item() / (i + 1):.2f}")

half = SAMPLES // 2
with torch.no_grad():
    preds = torch.stack([network(draws[j].to(device), x[:1024]) for j in range(half, SAMPLES, 10)])
rmse = (preds.mean(0) - y[:1024]).square().mean().sqrt()
print(f"posterior-mean rmse {rmse.item():.4f}, energy std {energies[half:].std().item():.3f}")
