"""A diffusion model over latents with a transformer, compiled block by block."""
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim, elementwise_affine=False), nn.LayerNorm(dim, elementwise_affine=False)
        self.mod, self.qkv, self.out = nn.Linear(dim, 4 * dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU("tanh"), nn.Linear(4 * dim, dim))

    def forward(self, x, c):
        s1, b1, s2, b2 = self.mod(F.silu(c))[:, None].chunk(4, -1)
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x) * (1 + s1) + b1).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x) * (1 + s2) + b2)


device = "cuda" if torch.cuda.is_available() else "cpu"
blocks = nn.ModuleList(Block(768, 12) for _ in range(6)).to(device)
for block in blocks:
    block.compile()
opt = torch.optim.AdamW(blocks.parameters(), 1e-4, fused=True)
clean, cond = torch.randn(32, 512, 768, device=device), torch.randn(32, 768, device=device)
for _ in range(300):
    noise = torch.randn_like(clean)
    x = clean + noise
    with torch.autocast(device, torch.bfloat16):
        for block in blocks:
            x = block(x, cond)
        loss = F.mse_loss(x, noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
