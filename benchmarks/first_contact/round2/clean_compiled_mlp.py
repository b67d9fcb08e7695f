"""A small network, so it is compiled into CUDA graphs."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.b(F.silu(self.a(self.norm(x))))


model = nn.Sequential(nn.Linear(128, 1024), *[Block(1024) for _ in range(6)], nn.Linear(1024, 32)).to(device)
fast = torch.compile(model, mode="reduce-overhead" if device == "cuda" else "default")
opt = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
batch = 8192
x = torch.randn(batch, 128, device=device)
y = torch.randint(0, 32, (batch,), device=device)

for i in range(2000):
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = F.cross_entropy(fast(x), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if i % 500 == 0:
        print(i, loss.item())
