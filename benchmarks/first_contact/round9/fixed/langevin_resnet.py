"""Preconditioned SGLD (Li et al. 2016) over a residual MLP: posterior samples for tabular regression."""
import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()


class ResidualUnit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc2(F.relu(self.fc1(self.norm(x))))


class TabularResNet(nn.Module):
    def __init__(self, features, width, depth):
        super().__init__()
        self.stem = nn.Linear(features, width)
        self.units = nn.Sequential(*[ResidualUnit(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.units(self.stem(x))).squeeze(-1)


class PreconditionedSGLD:
    def __init__(self, params, lr, data_size, prior_precision=1.0, alpha=0.99, eps=1e-5):
        self.params = list(params)
        self.second = [torch.zeros_like(p) for p in self.params]
        self.lr, self.data_size, self.prior = lr, data_size, prior_precision
        self.alpha, self.eps = alpha, eps
        self.sizes = [p.numel() for p in self.params]

    @torch.no_grad()
    def step(self):
        g = torch._foreach_add([p.grad for p in self.params], self.params, alpha=self.prior / self.data_size)
        torch._foreach_mul_(self.second, self.alpha)
        torch._foreach_addcmul_(self.second, g, g, value=1 - self.alpha)
        scale = torch._foreach_sqrt(self.second)
        torch._foreach_add_(scale, self.eps)
        torch._foreach_reciprocal_(scale)
        flat = torch.randn(sum(self.sizes), device=self.params[0].device)
        noise = [n.view_as(p) for n, p in zip(flat.split(self.sizes), self.params)]
        torch._foreach_addcmul_(self.params, g, scale, value=-self.lr)
        torch._foreach_sqrt_(scale)
        torch._foreach_addcmul_(self.params, noise, scale, value=(2 * self.lr / self.data_size) ** 0.5)

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if GPU else "cpu")
    rows, features = (400_000, 256) if GPU else (600, 16)
    width, depth, batch = (512, 48, 16384) if GPU else (16, 3, 64)
    iterations, burn_in, thin = (240, 80, 20) if GPU else (12, 4, 4)

    x = torch.randn(rows, features, device=device)
    y = torch.sin(x[:, :8].sum(1)) + 0.1 * torch.randn(rows, device=device)
    x_test, y_test = x[-batch:], y[-batch:]

    net = TabularResNet(features, width, depth).to(device)
    sampler = PreconditionedSGLD(net.parameters(), lr=1e-4, data_size=rows)
    predictions = torch.zeros_like(y_test)
    kept = 0

    for it in range(1, iterations + 1):
        pick = torch.randint(rows - batch, (batch,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.mse_loss(net(x[pick]).float(), y[pick])
        loss.backward()
        sampler.step()
        sampler.zero_grad()

        if it > burn_in and it % thin == 0:
            with torch.inference_mode(), torch.autocast(device.type, dtype=torch.bfloat16):
                predictions += net(x_test).float()
            kept += 1
        if it % 60 == 0 or it == iterations:
            print(f"iteration {it}: loss {loss.item():.4f}")

    rmse = (predictions / kept - y_test).square().mean().sqrt()
    print(f"{kept} samples, posterior-mean rmse {rmse.item():.4f}")


if __name__ == "__main__":
    main()
