"""Video classification with tubelets: space attention, then time attention, in every layer."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F


class MHA(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class Factorised(nn.Module):
    def __init__(self, d, h, frames, places):
        super().__init__()
        self.frames, self.places = frames, places
        self.space, self.time = MHA(d, h), MHA(d, h)
        self.ff = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, f, p, d = x.shape
        x = x + self.space(x.view(b * f, p, d)).view(b, f, p, d)
        along = x.mean(2)
        x = x + self.time(along)[:, :, None]
        return x + self.ff(x)


class Callback:
    def __init__(self, every):
        self.every, self.buffer = every, []

    def __call__(self, step, loss):
        self.buffer.append(loss)
        if (step + 1) % self.every == 0:
            print(f"{step + 1:4d}: {torch.stack(self.buffer).mean().item():.4f}")
            self.buffer.clear()


class VideoTrainer:
    def __init__(self, d=768, h=12, depth=6, frames=8, places=196, batch=12, steps=60):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.steps = steps
        self.embed = nn.Linear(1536, d)
        self.layers = nn.Sequential(*[Factorised(d, h, frames, places) for _ in range(depth)])
        self.head = nn.Linear(d, 400)
        self.model = nn.ModuleList([self.embed, self.layers, self.head]).to(self.device)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=2e-4, fused=True)
        self.clips = torch.randn(2, batch, frames, places, 1536, device=self.device, dtype=torch.bfloat16)
        self.names = torch.randint(400, (2, batch), device=self.device)
        self.callbacks = [Callback(20)]

    def loss(self, clip, name):
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            z = self.layers(self.embed(clip))
            return F.cross_entropy(self.head(z.mean((1, 2))), name)

    def fit(self):
        for step in range(self.steps):
            loss = self.loss(self.clips[step % 2], self.names[step % 2])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            for cb in self.callbacks:
                cb(step, loss.detach())


if __name__ == "__main__":
    sizes = dict(d=32, h=2, depth=2, frames=2, places=4, batch=2, steps=30) if os.environ.get("SMALL") == "1" else {}
    VideoTrainer(**sizes).fit()
