"""Twin experiment with the Lorenz-96 model and a stochastic ensemble Kalman filter."""
import torch

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


class Lorenz96:
    def __init__(self, forcing=8.0, dt=0.01, substeps=40):
        self.forcing, self.dt, self.substeps = forcing, dt, substeps

    def tendency(self, x):
        ahead = torch.roll(x, -1, -1)
        behind = torch.roll(x, 1, -1)
        behind2 = torch.roll(x, 2, -1)
        return (ahead - behind2) * behind - x + self.forcing

    def forecast(self, x):  # flaw: launch-bound|unfused-elementwise
        dt = self.dt
        for _ in range(self.substeps):
            k1 = self.tendency(x)
            k2 = self.tendency(x + 0.5 * dt * k1)
            k3 = self.tendency(x + 0.5 * dt * k2)
            k4 = self.tendency(x + dt * k3)
            x = x + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return x


class EnsembleKalmanFilter:
    def __init__(self, observe_every, noise_std, inflation=1.05):
        self.stride = observe_every
        self.noise_std = noise_std
        self.inflation = inflation

    def analyse(self, ensemble, y):
        members = ensemble.shape[0]
        mean = ensemble.mean(0)
        anomalies = (ensemble - mean) * self.inflation
        obs = anomalies[:, :: self.stride]
        cov = obs.T @ obs / (members - 1)
        cov.diagonal().add_(self.noise_std**2)
        factor = torch.linalg.cholesky_ex(cov)[0]
        perturbed = y + self.noise_std * torch.randn_like(obs)
        innovation = perturbed - (obs + mean[:: self.stride])
        weights = torch.cholesky_solve(innovation.T, factor)
        return mean + anomalies + ((anomalies.T @ obs / (members - 1)) @ weights).T


@torch.inference_mode()
def main():
    torch.manual_seed(4)
    torch.set_float32_matmul_precision("high")
    sites, members, cycles = (480, 512, 500) if CUDA else (40, 16, 6)
    model = Lorenz96(substeps=40 if CUDA else 5)
    enkf = EnsembleKalmanFilter(observe_every=2, noise_std=1.0)

    truth = 8.0 + torch.randn(1, sites, device=DEVICE)
    truth = model.forecast(truth)
    ensemble = truth + torch.randn(members, sites, device=DEVICE)
    state = torch.cat([truth, ensemble])
    propagate = model.forecast

    errors = torch.zeros(cycles, device=DEVICE)
    for cycle in range(cycles):
        state = propagate(state)  # flaw: launch-bound|unfused-elementwise
        truth, ensemble = state[:1], state[1:]
        y = truth[:, :: enkf.stride] + enkf.noise_std * torch.randn_like(truth[:, :: enkf.stride])
        ensemble = enkf.analyse(ensemble, y)
        state = torch.cat([truth, ensemble])
        errors[cycle] = (ensemble.mean(0) - truth[0]).square().mean().sqrt()
        if (cycle + 1) % 100 == 0 or cycle + 1 == cycles:
            print(f"cycle {cycle + 1}: analysis rmse {errors[max(0, cycle - 99) : cycle + 1].mean().item():.3f}")


if __name__ == "__main__":
    main()
