# Probabilistic electricity load forecasting: the whole panel of series lives on the device,
# windows are gathered there, a patch transformer predicts quantiles of the next day.
import torch
import torch.nn as nn
import torch.nn.functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

meters, hours = (4096, 8760) if cuda else (16, 600)
context, horizon, patch = (1024, 128, 8) if cuda else (64, 16, 8)
width, depth, batch, steps = (512, 6, 384, 160) if cuda else (32, 1, 4, 5)
quantiles = torch.tensor([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99], device=device)

clock = torch.arange(hours, device=device)
daily = torch.sin(clock * (2 * torch.pi / 24) + torch.rand(meters, 1, device=device) * 6.28)
weekly = torch.cos(clock * (2 * torch.pi / 168) + torch.rand(meters, 1, device=device) * 6.28)
panel = daily + 0.5 * weekly + 0.2 * torch.randn(meters, hours, device=device)
offsets = torch.arange(context + horizon, device=device)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(self.a(x)).view(n, t, 3, width // 32, 32).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.mix(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, width))
        return x + self.down(F.gelu(self.up(self.b(x))))


class PatchForecaster(nn.Module):
    def __init__(self):
        super().__init__()
        tokens = context // patch
        self.embed = nn.Linear(patch, width)
        self.pos = nn.Parameter(torch.zeros(tokens, width))
        self.layers = nn.Sequential(*[Layer() for _ in range(depth)])
        self.head = nn.Linear(width, horizon * len(quantiles))

    def forward(self, history):
        h = self.layers(self.embed(history.unflatten(1, (-1, patch))) + self.pos)
        return self.head(h.mean(1)).view(-1, horizon, len(quantiles))


def windows(count, first, last):
    row = torch.randint(meters, (count, 1), device=device)
    start = torch.randint(first, last - context - horizon, (count, 1), device=device)
    return panel[row, start + offsets].split([context, horizon], dim=1)


def pinball(pred, truth):
    diff = truth.unsqueeze(-1) - pred
    return torch.maximum(quantiles * diff, (quantiles - 1) * diff).mean()


model = PatchForecaster().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.05, fused=cuda)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-4, total_steps=steps)
split = int(hours * 0.7)

for step in range(1, steps + 1):
    history, future = windows(batch, 0, split)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        prediction = model(history)
    loss = pinball(prediction.float(), future)
    loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 40 == 0 or step == steps:
        print(f"step {step:4d} pinball {loss.item():.4f}")

with torch.inference_mode(), torch.autocast(device.type, dtype=torch.bfloat16):
    history, future = windows(batch, split, hours)
    covered = (future.unsqueeze(-1) < model(history)).float().mean((0, 1))
    print("coverage", [round(c, 3) for c in covered.tolist()])
