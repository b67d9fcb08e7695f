# masked patch pre-training: the encoder sees a quarter of the patches
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

quick = os.environ.get("SMALL") == "1"
D, H, ENC, DEC, N, PATCH, B, STEPS = (32, 2, 2, 1, 16, 48, 2, 30) if quick else (1024, 16, 8, 2, 256, 768, 96, 60)
KEEP = N // 4
dev = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class MaskedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(PATCH, D)
        self.pos = nn.Parameter(torch.randn(N, D) * 0.02)
        self.hidden = nn.Parameter(torch.zeros(D))
        self.encoder = nn.Sequential(*[Block(D, H) for _ in range(ENC)])
        self.decoder = nn.Sequential(*[Block(D, H) for _ in range(DEC)])
        self.pixels = nn.Linear(D, PATCH)

    def forward(self, patches):
        b = patches.shape[0]
        order = torch.rand(b, N, device=patches.device).argsort(1)
        seen, masked = order[:, :KEEP], order[:, KEEP:]
        visible = patches.gather(1, seen[..., None].expand(-1, -1, PATCH))
        z = self.encoder(self.embed(visible) + self.pos[seen])
        z = torch.cat((z, self.hidden + self.pos[masked]), 1)
        guess = self.pixels(self.decoder(z)[:, KEEP:])
        goal = patches.gather(1, masked[..., None].expand(-1, -1, PATCH))
        return F.mse_loss(guess.float(), goal.float())


torch.manual_seed(0)
model = MaskedModel().to(dev)
optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95), weight_decay=0.05, fused=True)
bank = torch.randn(2, B, N, PATCH, device=dev, dtype=torch.bfloat16)

for step in range(STEPS):
    with torch.autocast(dev, dtype=torch.bfloat16):
        loss = model(bank[step % 2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"{step:4d} {loss.item():.4f}")
