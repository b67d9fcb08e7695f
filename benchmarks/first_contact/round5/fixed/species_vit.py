"""Fine-grained species recognition with a plain vision transformer and a big label set."""
import os
import torch
from torch import nn, Tensor
import torch.nn.functional as F


def env_sizes() -> dict:
    if os.environ.get("SMALL") == "1":
        return dict(d=32, heads=2, depth=2, tokens=10, batch=3, classes=64, steps=30)
    return dict(d=768, heads=12, depth=8, tokens=200, batch=64, classes=16384, steps=60)


class EncoderLayer(nn.Module):
    def __init__(self, d: int, heads: int):
        super().__init__()
        self.heads = heads
        self.ln_a = nn.LayerNorm(d)
        self.ln_b = nn.LayerNorm(d)
        self.in_proj = nn.Linear(d, 3 * d)
        self.out_proj = nn.Linear(d, d)
        self.fc1 = nn.Linear(d, 4 * d)
        self.fc2 = nn.Linear(4 * d, d)

    def attend(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        qkv = self.in_proj(x).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = (z.transpose(1, 2) for z in qkv.unbind(2))
        return self.out_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.ln_a(x))
        return x + self.fc2(F.gelu(self.fc1(self.ln_b(x))))


class SpeciesViT(nn.Module):
    def __init__(self, d, heads, depth, tokens, classes, **_):
        super().__init__()
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        self.pos = nn.Parameter(torch.randn(1, tokens, d) * 0.02)
        self.patch = nn.Linear(768, d)
        self.encoder = nn.Sequential(*(EncoderLayer(d, heads) for _ in range(depth)))
        self.classifier = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, classes))

    def forward(self, patches: Tensor) -> Tensor:
        x = self.patch(patches)
        x = torch.cat((self.cls.expand(len(x), -1, -1).to(x.dtype), x), dim=1) + self.pos
        return self.classifier(self.encoder(x)[:, 0])


class Criterion:
    def __init__(self, smoothing: float):
        self.smoothing = smoothing

    def __call__(self, scores: Tensor, species: Tensor) -> Tensor:
        return F.cross_entropy(scores.float(), species, label_smoothing=self.smoothing)


def main() -> None:
    s = env_sizes()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(2)
    net, criterion = SpeciesViT(**s).to(device), Criterion(0.1)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.05, fused=True)
    photos = torch.randn(3, s["batch"], s["tokens"] - 1, 768, device=device, dtype=torch.bfloat16)
    species = torch.randint(s["classes"], (3, s["batch"]), device=device)
    for step in range(s["steps"]):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = net(photos[step % 3])
        loss = criterion(scores, species[step % 3])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 20 == 19:
            print("step", step + 1, "loss", f"{loss.item():.3f}")


if __name__ == "__main__":
    main()
