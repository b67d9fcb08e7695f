"""Channel-independent patch transformer for multivariate forecasting."""

import argparse

import torch
from torch import nn

ON_GPU = torch.cuda.is_available()


def sizes():
    p = argparse.ArgumentParser()
    p.add_argument("--channels", type=int, default=24 if ON_GPU else 3)
    p.add_argument("--context", type=int, default=1024 if ON_GPU else 64)
    p.add_argument("--patch", type=int, default=16)
    p.add_argument("--horizon", type=int, default=96 if ON_GPU else 8)
    p.add_argument("--dim", type=int, default=512 if ON_GPU else 16)
    p.add_argument("--heads", type=int, default=8 if ON_GPU else 2)
    p.add_argument("--depth", type=int, default=6 if ON_GPU else 1)
    p.add_argument("--batch", type=int, default=16 if ON_GPU else 2)
    p.add_argument("--steps", type=int, default=250 if ON_GPU else 5)
    return p.parse_args()


class PatchTransformer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.patch, self.patches = a.patch, a.context // a.patch
        self.embed = nn.Linear(a.patch, a.dim)
        self.position = nn.Parameter(torch.randn(self.patches, a.dim) * 0.02)
        layer = nn.TransformerEncoderLayer(
            a.dim, a.heads, 4 * a.dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, a.depth, enable_nested_tensor=False)
        self.head = nn.Linear(self.patches * a.dim, a.horizon)

    def forward(self, x):
        """x: (batch, channels, context)"""
        std, mean = torch.std_mean(x, dim=-1, keepdim=True)
        z = ((x - mean) / (std + 1e-5)).reshape(-1, self.patches, self.patch)
        h = self.encoder(self.embed(z) + self.position)
        y = self.head(h.flatten(1)).view(*x.shape[:2], -1)
        return y * std + mean


class Windows:
    """The series lies on the device; a batch is a gather."""

    def __init__(self, a, device, length=20_000):
        t = torch.arange(length, device=device) / 96
        phase = torch.rand(a.channels, 1, device=device) * 6.28
        self.series = torch.sin(t + phase) + 0.3 * torch.randn(a.channels, length, device=device)
        self.context, self.batch = a.context, a.batch
        self.span = torch.arange(a.context + a.horizon, device=device)

    def draw(self):
        last = self.series.shape[1] - len(self.span)
        start = torch.randint(last, (self.batch, 1), device=self.series.device)
        window = self.series[:, start + self.span].transpose(0, 1)
        return window[..., : self.context], window[..., self.context :]


class Trainer:
    def __init__(self, a):
        self.device = torch.device("cuda" if ON_GPU else "cpu")
        self.windows = Windows(a, self.device)
        self.model = PatchTransformer(a).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.steps = a.steps

    def step(self):
        past, future = self.windows.draw()
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            forecast = self.model(past)
        loss = nn.functional.mse_loss(forecast.float(), future)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self):
        total = torch.zeros((), device=self.device)
        for number in range(1, self.steps + 1):
            total += self.step()
            if number % 50 == 0 or number == self.steps:
                print(f"{number}: mse {total.item() / number:.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    Trainer(sizes()).fit()
