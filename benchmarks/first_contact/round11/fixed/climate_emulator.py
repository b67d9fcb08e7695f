"""Emulator of a climate model's column physics: a deep residual network, trained with Lion."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import Optimizer


class Lion(Optimizer):
    """Sign of an interpolated momentum, with decoupled weight decay (Chen et al., 2023)."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["momentum"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            params = group["params"]
            grads = [p.grad for p in params]
            momenta = [self.state[p]["momentum"] for p in params]
            directions = torch._foreach_lerp(momenta, grads, 1 - beta1)
            torch._foreach_sign_(directions)
            torch._foreach_mul_(params, 1 - lr * group["weight_decay"])
            torch._foreach_add_(params, directions, alpha=-lr)
            torch._foreach_lerp_(momenta, grads, 1 - beta2)


class ResidualLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return x + F.gelu(self.mix(self.norm(x)))


class ColumnEmulator(nn.Module):
    """State of a column (levels x variables, flattened) to its tendencies."""

    def __init__(self, n_in, n_out, width, depth):
        super().__init__()
        self.inlet = nn.Linear(n_in, width)
        self.layers = nn.Sequential(*(ResidualLayer(width) for _ in range(depth)))
        self.outlet = nn.Linear(width, n_out)

    def forward(self, columns):
        return self.outlet(self.layers(self.inlet(columns)))


class ColumnData:
    def __init__(self, columns, n_in, n_out, device, months=6):
        gen = torch.Generator(device).manual_seed(50)
        self.state = torch.randn(months, columns, n_in, generator=gen, device=device)
        mixing = torch.randn(n_in, n_out, generator=gen, device=device) / n_in ** 0.5
        self.tendency = torch.tanh(self.state @ mixing)
        self.state = self.state.to(torch.bfloat16)

    def month(self, i):
        return self.state[i % len(self.state)], self.tendency[i % len(self.state)]


def main():
    torch.set_float32_matmul_precision("high")
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    columns, width, depth, steps = (16384, 512, 60, 150) if gpu else (32, 32, 3, 6)
    torch.manual_seed(51)
    data = ColumnData(columns, 256, 128, device)
    model = ColumnEmulator(256, 128, width, depth).to(device)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = Lion([{"params": decayed, "weight_decay": 0.01}, {"params": plain}], lr=1e-4)
    curve = []
    for step in range(steps):
        state, tendency = data.month(step)
        with torch.autocast(device.type, torch.bfloat16):
            out = model(state)
        loss = F.mse_loss(out.float(), tendency)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.detach())
    curve = torch.stack(curve).tolist()
    print(f"mse {curve[0]:.4f} -> {curve[-1]:.4f}")


if __name__ == "__main__":
    main()
