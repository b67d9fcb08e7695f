"""Forecast of pollen counts at stations, mixed over great-circle neighbours."""
import os
import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
STATIONS = 40 if TINY else 1100
DAYS = 3 if TINY else 210


class Neighbourhood(nn.Module):
    def __init__(self, latitude, longitude, reach=0.12):
        super().__init__()
        self.reach = reach
        self.register_buffer("latitude", latitude)
        self.register_buffer("longitude", longitude)

    @property
    def influence(self):
        north, east = self.latitude, self.longitude
        half_n = torch.sin((north[:, None] - north) / 2).square()  # flaw: constant-rebuilt
        half_e = torch.sin((east[:, None] - east) / 2).square()  # flaw: constant-rebuilt
        arc = 2 * torch.asin((half_n + north.cos()[:, None] * north.cos() * half_e).clamp(0, 1).sqrt())  # flaw: constant-rebuilt
        return torch.exp(-((arc / self.reach) ** 2)).softmax(1)  # flaw: constant-rebuilt

    def forward(self, counts):
        return torch.matmul(self.influence, counts)


class PollenNet(nn.Module):
    def __init__(self, around):
        super().__init__()
        self.around = around
        self.inward = nn.Linear(6, 48)
        self.middle = nn.Linear(96, 48)
        self.outward = nn.Linear(48, 1)

    def forward(self, day):
        own = self.inward(day).relu()
        mixed = torch.cat((own, self.around(own)), dim=-1)
        return self.outward(self.middle(mixed).relu()).squeeze(-1)


def season(dice):
    for _ in range(DAYS):
        day = torch.rand(8, STATIONS, 6, generator=dice)
        yield day, day[..., 0] * 2 + day[..., 1].mean(1, keepdim=True)


def main():
    torch.manual_seed(6)
    dice = torch.Generator().manual_seed(77)
    north = torch.rand(STATIONS, generator=dice) * 0.5 + 0.6
    east = torch.rand(STATIONS, generator=dice) * 0.7
    net = PollenNet(Neighbourhood(north, east))
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for date, (day, after) in enumerate(season(dice)):
        opt.zero_grad(set_to_none=True)
        loss = F.mse_loss(net(day), after)
        loss.backward()
        opt.step()
        if date % 20 == 0:
            print(date, f"{loss.item():.5f}")
    print("season", f"{loss.item():.5f}")


main()
