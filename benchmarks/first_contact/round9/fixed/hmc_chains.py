"""Hamiltonian Monte Carlo for Bayesian logistic regression with thousands of chains in parallel."""
import math

import torch

torch.set_float32_matmul_precision("high")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BIG = DEVICE.type == "cuda"


def make_data(n, d):
    gen = torch.Generator().manual_seed(0)
    x = torch.randn(n, d, generator=gen) / math.sqrt(d)
    w = torch.randn(d, generator=gen) * 2
    y = (torch.rand(n, generator=gen) < torch.sigmoid(x @ w)).float()
    return x.to(DEVICE), y.to(DEVICE)


class LogisticPosterior:
    def __init__(self, x, y, prior_std=2.0):
        self.x, self.y = x, y
        self.xty = y @ x
        self.precision = 1.0 / prior_std**2

    def potential(self, theta):
        logits = theta @ self.x.T
        nll = torch.nn.functional.softplus(logits).sum(1) - theta @ self.xty
        return nll + 0.5 * self.precision * theta.square().sum(1)

    def gradient(self, theta):
        prob = torch.sigmoid(theta @ self.x.T)
        return torch.addmm(theta * self.precision - self.xty, prob, self.x)


def leapfrog(target, theta, momentum, step, count):
    momentum = momentum - 0.5 * step * target.gradient(theta)
    for i in range(count):
        theta = theta + step * momentum
        grad = target.gradient(theta)
        momentum = momentum - (step if i < count - 1 else 0.5 * step) * grad
    return theta, momentum


def hmc(target, theta, draws, step, count):
    samples = torch.empty(draws, *theta.shape, device=theta.device)
    accepted = torch.zeros((), device=theta.device)
    energy = target.potential(theta)
    for draw in range(draws):
        momentum = torch.randn_like(theta)
        proposal, final = leapfrog(target, theta, momentum, step, count)
        proposal_energy = target.potential(proposal)
        delta = energy + 0.5 * momentum.square().sum(1) - proposal_energy - 0.5 * final.square().sum(1)
        accept = torch.rand_like(delta).log_() < delta
        theta = torch.where(accept[:, None], proposal, theta)
        energy = torch.where(accept, proposal_energy, energy)
        accepted += accept.float().mean()
        samples[draw] = theta
        if (draw + 1) % 100 == 0:
            print(f"draw {draw + 1}: acceptance {accepted.item() / (draw + 1):.3f}")
    return samples


def split_rhat(samples):
    """Potential scale reduction over chains, per dimension."""
    half = samples.shape[0] // 2
    parts = torch.cat([samples[:half], samples[half : 2 * half]], dim=1)
    within = parts.var(0).mean(0)
    between = parts.mean(0).var(0) * half
    return (((half - 1) / half * within + between / half) / within).sqrt()


@torch.inference_mode()
def main():
    torch.manual_seed(1)
    n, d, chains, draws, count = (2048, 256, 16384, 600, 12) if BIG else (128, 8, 16, 20, 3)
    target = LogisticPosterior(*make_data(n, d))
    start = 0.1 * torch.randn(chains, d, device=DEVICE)
    samples = hmc(target, start, draws, step=0.08, count=count)
    kept = samples[draws // 2 :]
    print("posterior mean norm", kept.mean((0, 1)).norm().item())
    print("worst r-hat", split_rhat(kept[:, :512]).max().item())


if __name__ == "__main__":
    main()
