"""Global reanalysis emulator: token and channel mixing over grid columns."""
import os
import torch
from torch import Tensor, nn
from torch.nn import functional as F

env_small = os.environ.get("SMALL", "0") == "1"


class Mish(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        gate = torch.tanh(torch.log1p(torch.exp(x)))  # flaw: hand-written-activation
        return x * gate  # flaw: hand-written-activation


class Mixer(nn.Module):
    def __init__(self, cells: int, dim: int, token_dim: int, channel_dim: int) -> None:
        super().__init__()
        self.pre_tokens = nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(cells, token_dim), Mish(), nn.Linear(token_dim, cells))
        self.pre_channels = nn.LayerNorm(dim)
        self.channels = nn.Sequential(nn.Linear(dim, channel_dim), Mish(), nn.Linear(channel_dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.pre_tokens(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.pre_channels(x))


class Emulator(nn.Module):
    def __init__(self, variables: int, cells: int, dim: int, depth: int) -> None:
        super().__init__()
        self.lift = nn.Linear(variables, dim)
        self.place = nn.Parameter(torch.zeros(cells, dim))
        self.mixers = nn.Sequential(*(Mixer(cells, dim, cells // 2, 4 * dim) for _ in range(depth)))
        self.out = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, variables))

    def forward(self, state: Tensor) -> Tensor:
        return self.out(self.mixers(self.lift(state) + self.place))


class Trainer:
    def __init__(self) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if env_small:
            self.batch, self.cells, self.steps, dim, depth = 2, 64, 30, 32, 1
        else:
            self.batch, self.cells, self.steps, dim, depth = 32, 1024, 80, 512, 6
        self.variables = 64
        self.model = Emulator(self.variables, self.cells, dim, depth).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4, fused=self.device.type == "cuda")
        self.history = torch.randn(40, self.batch, self.cells, self.variables, device=self.device)
        latitude = torch.linspace(-1.5, 1.5, self.cells, device=self.device)
        self.area = (latitude.cos() / latitude.cos().mean()).view(1, -1, 1)

    def step(self, when: int) -> Tensor:
        now, later = self.history[when % 39], self.history[when % 39 + 1]
        with torch.autocast(self.device.type, torch.bfloat16):
            change = self.model(now)
        loss = ((now + change.float() - later).square() * self.area).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self) -> None:
        for when in range(self.steps):
            loss = self.step(when)
            if when % 20 == 0:
                print(f"step {when:3d}  weighted mse {loss.item():.4f}")


if __name__ == "__main__":
    Trainer().run()
