"""Answers requests for interpolated groundwater levels with their uncertainty (kriging)."""

import torch


class Variogram:
    def __init__(self, sill=1.0, reach=0.25, nugget=0.02):
        self.sill = sill
        self.reach = reach
        self.nugget = nugget

    def covariance(self, a, b):
        return self.sill * torch.exp(-torch.cdist(a, b) / self.reach)


class Kriging:
    def __init__(self, wells, level, variogram):
        self.wells = wells
        self.mean = level.mean()
        self.residual = (level - self.mean)[:, None]
        self.variogram = variogram

    def _prepare(self):
        k = self.variogram.covariance(self.wells, self.wells)
        k.diagonal().add_(self.variogram.nugget)
        factor = torch.linalg.cholesky(k)
        return factor, torch.linalg.solve_triangular(factor, self.residual, upper=False)

    def predict(self, places):
        factor, target = self._prepare()  # flaw: constant-rebuilt
        cross = self.variogram.covariance(self.wells, places)
        white = torch.linalg.solve_triangular(factor, cross, upper=False)
        mean = self.mean + (white.T @ target).squeeze(1)
        variance = self.variogram.sill - white.square().sum(0)
        return mean, variance.clamp_min(0)


class Service:
    def __init__(self, engine):
        self.engine = engine
        self.served = 0

    def handle(self, request):
        places = torch.tensor(request["points"])
        mean, variance = self.engine.predict(places)
        self.served += len(places)
        return {
            "id": request["id"],
            "level": mean.tolist(),
            "sigma": variance.sqrt().tolist(),
        }


def requests(n, generator):
    for i in range(n):
        points = torch.rand(320, 2, generator=generator)
        yield {"id": i, "points": points.tolist()}


@torch.inference_mode()
def main():
    generator = torch.Generator().manual_seed(0)
    wells = torch.rand(900, 2, generator=generator)
    level = torch.sin(6 * wells[:, 0]) + torch.cos(5 * wells[:, 1])
    level += 0.1 * torch.randn(len(wells), generator=generator)
    service = Service(Kriging(wells, level, Variogram()))
    checksum = 0.0
    for request in requests(450, generator):
        answer = service.handle(request)
        checksum += sum(answer["level"]) / len(answer["level"])
    print(f"served {service.served} points, mean level {checksum / 450:.5f}")


if __name__ == "__main__":
    main()
