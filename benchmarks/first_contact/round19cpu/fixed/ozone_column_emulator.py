"""Emulates a photochemistry scheme: profiles of temperature, humidity and precursors to ozone tendencies."""
import torch
from torch import nn

LEVELS, SPECIES, WIDTH, DEPTH = 40, 5, 192, 4


class SmoothGate(nn.Module):
    """Smooth, non-monotonic, unbounded above."""

    def forward(self, x):
        return nn.functional.gelu(x, approximate="tanh")


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.gate = SmoothGate()

    def forward(self, x):
        return x + self.gate(self.linear(x))


class Emulator(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(LEVELS * SPECIES, WIDTH)
        self.layers = nn.ModuleList(Layer(WIDTH) for _ in range(DEPTH))
        self.leave = nn.Linear(WIDTH, LEVELS)

    def forward(self, columns):
        x = self.enter(columns)
        for layer in self.layers:
            x = layer(x)
        return self.leave(x)


class Columns:
    """Synthetic columns with a tendency that depends on the neighbours of each level."""

    def __init__(self, count, seed):
        gen = torch.Generator().manual_seed(seed)
        raw = torch.randn(count, SPECIES, LEVELS + 4, generator=gen)
        profiles = raw.unfold(2, 5, 1).mean(3) * 2.0
        light = torch.linspace(0.2, 1.0, LEVELS)
        made = light * torch.relu(profiles[:, 1]) * torch.sigmoid(profiles[:, 0])
        lost = 0.3 * profiles[:, 2].square() * torch.sigmoid(-profiles[:, 3])
        self.inputs = profiles.flatten(1)
        self.tendency = made - lost + 0.1 * (profiles[:, 4].roll(1, 1) - profiles[:, 4])
        self.gen = gen

    def draw(self, size):
        rows = torch.randint(len(self.inputs), (size,), generator=self.gen)
        return self.inputs[rows], self.tendency[rows]


class Trainer:
    def __init__(self, model, train, test, lr):
        self.model, self.train_set, self.test_set = model, train, test
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3, fused=True)
        self.criterion = nn.MSELoss()

    def step(self, columns, tendency):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(columns), tendency)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    @torch.inference_mode()
    def test(self):
        left = self.test_set.tendency - self.model(self.test_set.inputs)
        return 1 - (left.var() / self.test_set.tendency.var()).item()

    def run(self, steps, size, every):
        for number in range(1, steps + 1):
            loss = self.step(*self.train_set.draw(size))
            if number % every == 0:
                print(f"step {number}  mse {loss.item():.5f}  explained {self.test():.4f}", flush=True)


if __name__ == "__main__":
    torch.manual_seed(30)
    Trainer(Emulator(), Columns(12_000, 1), Columns(1_000, 2), lr=1e-3).run(steps=400, size=1400, every=80)
