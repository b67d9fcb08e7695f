"""Filters and smooths thousands of radar tracks at once (Kalman, Rauch-Tung-Striebel)."""

import torch

TRACKS, LENGTH, DT = 4000, 260, 0.5


def model():
    f = torch.eye(4)
    f[0, 2] = f[1, 3] = DT
    h = torch.eye(2, 4)
    g = torch.tensor([[DT**2 / 2, 0], [0, DT**2 / 2], [DT, 0], [0, DT]])
    return f, h, 0.05 * g @ g.T + 1e-6 * torch.eye(4), 4.0 * torch.eye(2)


def simulate(f, h, generator):
    state = torch.randn(TRACKS, 4, generator=generator) * torch.tensor([50.0, 50.0, 5.0, 5.0])
    truth = torch.empty(LENGTH, TRACKS, 4)
    for t in range(LENGTH):
        state = state @ f.T
        state[:, 2:] += 0.1 * torch.randn(TRACKS, 2, generator=generator)
        truth[t] = state
    return truth, truth @ h.T + 2 * torch.randn(LENGTH, TRACKS, 2, generator=generator)


def kalman_filter(seen, f, h, q, r):
    mean = torch.zeros(TRACKS, 4)
    mean[:, :2] = seen[0]
    cov = torch.diag(torch.tensor([10.0, 10.0, 50.0, 50.0]))
    eye = torch.eye(4)
    means, covs = torch.empty(LENGTH, TRACKS, 4), torch.empty(LENGTH, 4, 4)
    means[0], covs[0] = mean, cov
    for t in range(1, LENGTH):
        mean, cov = mean @ f.T, f @ cov @ f.T + q
        gain = torch.linalg.solve(h @ cov @ h.T + r, h @ cov).T
        mean = torch.addmm(mean, seen[t] - mean @ h.T, gain.T)
        cov = (eye - gain @ h) @ cov
        means[t], covs[t] = mean, cov
    return means, covs


def smooth(means, covs, f, q):
    ahead = f @ covs[:-1] @ f.T + q
    gains = torch.linalg.solve(ahead, f @ covs[:-1]).mT
    for t in range(LENGTH - 2, -1, -1):
        means[t].addmm_(means[t + 1] - means[t] @ f.T, gains[t].T)
    return means


def fit_noise(truth, seen, f, h, q, r, turns=12):
    """Golden-section search for the process noise that smooths best."""
    golden = (5**0.5 - 1) / 2
    low, high = -3.0, 3.0
    best = None
    for _ in range(turns):
        errors = []
        for point in (high - golden * (high - low), low + golden * (high - low)):
            scaled = q * 10**point
            means, covs = kalman_filter(seen, f, h, scaled, r)
            smoothed = smooth(means, covs, f, scaled)
            errors.append((smoothed - truth)[..., :2].square().mean().sqrt().item())
        if errors[0] < errors[1]:
            high = low + golden * (high - low)
        else:
            low = high - golden * (high - low)
        best = min(errors)
    return (low + high) / 2, best


@torch.inference_mode()
def main():
    generator = torch.Generator().manual_seed(0)
    f, h, q, r = model()
    for radar in range(5):
        truth, seen = simulate(f, h, generator)
        scale, error = fit_noise(truth, seen, f, h, q, r)
        print(f"radar {radar} noise 1e{scale:.2f} rmse {error:.3f}")


if __name__ == "__main__":
    main()
