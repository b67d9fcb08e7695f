"""Masked-frame pre-training of a deep, narrow speech encoder with the Lion optimizer."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.optimizer import Optimizer

torch.set_float32_matmul_precision("high")
HAVE_GPU = torch.cuda.is_available()
device = torch.device("cuda" if HAVE_GPU else "cpu")
config = dict(
    batch=48 if HAVE_GPU else 2,
    frames=256 if HAVE_GPU else 16,
    dim=384 if HAVE_GPU else 32,
    heads=6 if HAVE_GPU else 2,
    depth=40 if HAVE_GPU else 2,
    codes=512 if HAVE_GPU else 20,
    steps=150 if HAVE_GPU else 4,
    lr=1e-4,
    wd=0.05,
)


class Lion(Optimizer):
    """Sign of an interpolated momentum (Chen et al., 2023)."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            lr, wd = group["lr"], group["weight_decay"]
            b1, b2 = group["betas"]
            for p in group["params"]:  # flaw: parameter-loop
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                m = state["exp_avg"]
                p.mul_(1 - lr * wd)  # flaw: parameter-loop
                update = torch.lerp(m, p.grad, 1 - b1).sign_()  # flaw: parameter-loop
                p.add_(update, alpha=-lr)  # flaw: parameter-loop
                m.lerp_(p.grad, 1 - b2)  # flaw: parameter-loop


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.attn_norm = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.ff_norm = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.down = nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.attn_norm(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(a)
        return x + self.down(F.gelu(self.up(self.ff_norm(x))))


class Encoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.inp = nn.Linear(80, c["dim"])
        self.mask_token = nn.Parameter(torch.zeros(c["dim"]))
        self.pos = nn.Parameter(torch.randn(c["frames"], c["dim"]) * 0.02)
        self.layers = nn.ModuleList(Layer(c["dim"], c["heads"]) for _ in range(c["depth"]))
        self.norm = nn.LayerNorm(c["dim"])
        self.head = nn.Linear(c["dim"], c["codes"])

    def forward(self, mel, mask):
        x = self.inp(mel)
        x = torch.where(mask.unsqueeze(-1), self.mask_token.to(x.dtype), x) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


torch.manual_seed(0)
model = Encoder(config).to(device)
optimizer = Lion(model.parameters(), lr=config["lr"], weight_decay=config["wd"])

utterances = 16 * config["batch"]
mels = torch.randn(utterances, config["frames"], 80, device=device)
codes = torch.randint(config["codes"], (utterances, config["frames"]), device=device)

for step in range(config["steps"]):
    sel = torch.randint(utterances, (config["batch"],), device=device)
    mask = torch.rand(config["batch"], config["frames"], device=device) < 0.4
    target = codes[sel].masked_fill(~mask, -100)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        logits = model(mels[sel], mask)
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item():.4f}")
print(f"done {loss.item():.5f}")
