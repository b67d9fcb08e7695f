"""Flow matching on image tokens, with an averaged copy of the model for sampling."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DIM, DEPTH, HEADS, TOKENS, BATCH, STEPS = (384, 24, 6, 256, 32, 200) if CUDA else (32, 2, 2, 16, 2, 4)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Velocity(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(48, DIM)
        self.time = nn.Sequential(nn.Linear(1, DIM), nn.SiLU(), nn.Linear(DIM, DIM))
        self.position = nn.Parameter(torch.randn(TOKENS, DIM) * 0.02)
        self.layers = nn.ModuleList([Layer() for _ in range(DEPTH)])
        self.out = nn.Linear(DIM, 48)

    def forward(self, x, t):
        x = self.embed(x) + self.position + self.time(t)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


class ModelEma:
    def __init__(self, model, decay=0.9995):
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values(), strict=True):  # flaw: parameter-loop
            ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)  # flaw: parameter-loop


@torch.inference_mode()
def sample(model, count, steps=20):
    x = torch.randn(count, TOKENS, 48, device=DEVICE)
    times = torch.linspace(0, 1, steps + 1, device=DEVICE)[:-1]
    for t in times:
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            v = model(x, t.expand(count, 1, 1))
        x = x + v.float() / steps
    return x


def main():
    torch.manual_seed(0)
    data = torch.randn(BATCH * 16, TOKENS, 48, device=DEVICE)
    model = Velocity().to(DEVICE)
    ema = ModelEma(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.9, 0.95), fused=True)
    for step in range(STEPS):
        x1 = data[torch.randint(0, len(data), (BATCH,), device=DEVICE)]
        x0 = torch.randn_like(x1)
        t = torch.rand(BATCH, 1, 1, device=DEVICE).sigmoid()
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            v = model(torch.lerp(x0, x1, t), t)
        loss = F.mse_loss(v.float(), x1 - x0)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        ema.update(model)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print("sample std", sample(ema.module, 4).std().item())


if __name__ == "__main__":
    main()
