"""Masked autoencoding of image patches (encoder sees a quarter of them)."""
import argparse, os
import torch
import torch.nn as nn
import torch.nn.functional as F

S = os.environ.get("SMALL")
ap = argparse.ArgumentParser()
ap.add_argument("--batch", type=int, default=4 if S else 96)
ap.add_argument("--image", type=int, default=32 if S else 224)
ap.add_argument("--patch", type=int, default=8 if S else 16)
ap.add_argument("--enc", type=int, default=32 if S else 768)
ap.add_argument("--dec", type=int, default=32 if S else 384)
ap.add_argument("--depth", type=int, default=1 if S else 6)
ap.add_argument("--iters", type=int, default=30 if S else 80)
args = ap.parse_args()
device = "cuda" if torch.cuda.is_available() else "cpu"


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.ln2(x))


class MaskedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        n, p = (args.image // args.patch) ** 2, 3 * args.patch ** 2
        self.n, self.keep = n, n // 4
        self.embed = nn.Linear(p, args.enc)
        self.pos_e = nn.Parameter(torch.randn(1, n, args.enc) * .02)
        self.pos_d = nn.Parameter(torch.randn(1, n, args.dec) * .02)
        self.hole = nn.Parameter(torch.zeros(1, 1, args.dec))
        self.encoder = nn.Sequential(*[Layer(args.enc, max(1, args.enc // 64)) for _ in range(args.depth)])
        self.bridge = nn.Linear(args.enc, args.dec)
        self.decoder = nn.Sequential(*[Layer(args.dec, max(1, args.dec // 64)) for _ in range(2)])
        self.pixels = nn.Linear(args.dec, p)

    def forward(self, patches):
        b = patches.shape[0]
        order = torch.rand(b, self.n, device=patches.device).argsort(1)
        seen, hidden = order[:, :self.keep, None], order[:, self.keep:, None]
        vis = patches.gather(1, seen.expand(-1, -1, patches.shape[2]))
        pos = self.pos_e.expand(b, -1, -1).gather(1, seen.expand(-1, -1, args.enc))
        z = self.bridge(self.encoder(self.embed(vis) + pos))
        full = self.hole.to(z.dtype).expand(b, self.n, -1).scatter(1, seen.expand(-1, -1, args.dec), z)
        out = self.pixels(self.decoder(full + self.pos_d))
        pick = hidden.expand(-1, -1, patches.shape[2])
        return F.mse_loss(out.gather(1, pick), patches.gather(1, pick))


data = torch.randn(args.batch * 3, (args.image // args.patch) ** 2, 3 * args.patch ** 2, device=device)
net = MaskedAutoencoder().to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1.5e-4, betas=(.9, .95), weight_decay=.05, fused=device == "cuda")
for it in range(args.iters):
    batch = data[torch.randint(len(data), (args.batch,), device=device)]
    loss = net(batch)  # flaw: fp32-matmul
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 20 == 0:
        print(it, loss.item())
