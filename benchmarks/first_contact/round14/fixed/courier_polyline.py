"""Predict a courier's arrival delay from the shape of the route (GeoJSON line strings)."""
import json
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

tiny = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
ROUTES, VERTICES = (8, 600) if tiny else (96, 16000)
SPAN = 64 if tiny else 512


def record_routes(seed=5):
    rng = np.random.default_rng(seed)
    for _ in range(ROUTES):
        walk = np.cumsum(rng.normal(0, 1e-4, (VERTICES, 2)), 0) + rng.uniform(-50, 50, 2)
        yield json.dumps({"type": "LineString", "coordinates": walk.round(7).tolist()})


class RouteLegs(Dataset):
    """A leg is SPAN vertices of a route, centred; the target is its detour factor."""

    def __init__(self, features, legs):
        self.lines = [np.asarray(json.loads(text)["coordinates"]) for text in features]
        rng = np.random.default_rng(1)
        self.route = rng.integers(0, ROUTES, legs)
        self.begin = rng.integers(0, VERTICES - SPAN, legs)

    def __len__(self):
        return len(self.route)

    def __getitem__(self, i):
        line = self.lines[self.route[i]]
        leg = line[self.begin[i]:self.begin[i] + SPAN]
        hops = np.diff(leg, axis=0)
        run = np.hypot(hops[:, 0], hops[:, 1]).sum()
        crow = np.hypot(*(leg[-1] - leg[0])) + 1e-9
        points = (leg - leg.mean(0)) / (leg.std(0) + 1e-9)
        return torch.from_numpy(points.astype(np.float32)), torch.tensor(np.log(run / crow), dtype=torch.float32)


class LegNet(nn.Module):
    def __init__(self, d, layers):
        super().__init__()
        self.lift = nn.Linear(2, d)
        block = nn.TransformerEncoderLayer(d, 8, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True)
        self.mix = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.read = nn.Linear(d, 1)

    def forward(self, points):
        return self.read(self.mix(self.lift(points)).mean(1)).squeeze(-1)


if __name__ == "__main__":
    torch.manual_seed(3)
    batch, steps = (4, 6) if tiny else (96, 110)
    legs = RouteLegs(record_routes(), batch * steps)
    loader = DataLoader(legs, batch, shuffle=False, num_workers=2 if tiny else 12, pin_memory=device == "cuda",
                        persistent_workers=True)
    model = LegNet(*((32, 1) if tiny else (512, 4))).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), 2e-4, fused=True)
    running = torch.zeros(2, device=device)
    for points, detour in loader:
        points, detour = points.to(device, non_blocking=True), detour.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            guess = model(points)
        error = nn.functional.huber_loss(guess.float(), detour)
        optimiser.zero_grad()
        error.backward()
        optimiser.step()
        running[0] += error.detach()
        running[1] += 1
    print("huber %.4f over %d batches" % (running[0].item() / running[1].item(), running[1].item()))
