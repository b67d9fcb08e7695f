"""Ensemble Kalman filter on a Lorenz-96 ring: forecast the members, assimilate observations, repeat."""
import json
import sys

import numpy as np
import torch

DEFAULTS = {
    "full": {"state": 16384, "members": 1024, "observed": 512, "cycles": 120, "substeps": 5, "dt": 0.01},
    "tiny": {"state": 256, "members": 32, "observed": 64, "cycles": 6, "substeps": 3, "dt": 0.01},
}
FORCING, OBS_ERROR, INFLATION = 8.0, 1.0, 1.02


def tendency(x):
    return (x.roll(-1, 0) - x.roll(2, 0)) * x.roll(1, 0) - x + FORCING


def integrate(x, dt):
    """One Runge-Kutta step for all columns."""
    k1 = tendency(x)
    k2 = tendency(x + 0.5 * dt * k1)
    k3 = tendency(x + 0.5 * dt * k2)
    k4 = tendency(x + dt * k3)
    return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class Filter:
    def __init__(self, config, device, seed=0):
        self.c = config
        rng = np.random.default_rng(seed)
        climate = FORCING / 2 + 3 * rng.standard_normal((config["state"], 1))
        spread = rng.standard_normal((config["state"], config["members"]))
        self.nature = self.nature_run(torch.from_numpy(climate).float().to(device))
        self.members = torch.from_numpy(climate + 2 * spread).float().to(device)
        self.stride = config["state"] // config["observed"]
        self.gen = torch.Generator(device).manual_seed(seed)
        self.noise_cov = OBS_ERROR ** 2 * torch.eye(
            config["observed"], dtype=self.members.dtype, device=device)
        self.step = torch.compile(integrate) if device.type == "cuda" else integrate

    def nature_run(self, x):
        states = []
        for _ in range(self.c["cycles"]):
            for _ in range(self.c["substeps"]):
                x = integrate(x, self.c["dt"])
            states.append(x)
        return states

    def forecast(self):
        for _ in range(self.c["substeps"]):
            self.members = self.step(self.members, self.c["dt"])

    def noise(self, *shape):
        return OBS_ERROR * torch.randn(*shape, generator=self.gen, device=self.members.device)

    def analyse(self, truth):
        """Stochastic update with perturbed observations; the gain acts through the ensemble."""
        observed = truth[::self.stride]
        observed = observed + self.noise(*observed.shape)
        mean = self.members.mean(1, keepdim=True)
        anomalies = (self.members - mean).mul_(INFLATION)
        predicted = self.members[::self.stride]
        departures = observed + self.noise(*predicted.shape) - predicted
        s = anomalies[::self.stride]
        scale = 1.0 / (self.c["members"] - 1)
        factor = torch.linalg.cholesky_ex(torch.addmm(self.noise_cov, s, s.T, alpha=scale)).L
        weights = s.T @ torch.cholesky_solve(departures, factor)
        self.members = (mean + anomalies).addmm_(anomalies, weights, alpha=scale)
        return (self.members.mean(1, keepdim=True) - truth).square().mean().sqrt()

    def run(self):
        errors = []
        for truth in self.nature:
            self.forecast()
            errors.append(self.analyse(truth))
        return torch.stack(errors).cpu()


def main(argv):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = dict(DEFAULTS["full" if device.type == "cuda" else "tiny"])
    if argv:
        config.update(json.loads(argv[0]))
    torch.set_float32_matmul_precision("high")
    rmse = Filter(config, device).run()
    print(f"rmse: first {rmse[0].item():.2f}, second half {rmse[len(rmse) // 2:].mean().item():.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
