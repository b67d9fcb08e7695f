import torch
import torch.nn as nn
from torch.distributions import Categorical, Independent, Normal, kl_divergence

device = "cuda" if torch.cuda.is_available() else "cpu"


class Stack(nn.Module):
    def __init__(self, i, h, o, n=3):
        super().__init__()
        self.i, self.o = nn.Linear(i, h), nn.Linear(h, o)
        self.m = nn.ModuleList(nn.Sequential(nn.LayerNorm(h), nn.Linear(h, h), nn.SiLU()) for _ in range(n))

    def forward(self, x):
        x = self.i(x)
        for m in self.m:
            x = x + m(x)
        return self.o(x)


class VAE(nn.Module):
    def __init__(self, dim=784, hidden=768, z=64, levels=4):
        super().__init__()
        self.enc = nn.ModuleList(Stack(dim, hidden, 2 * z) for _ in range(levels))
        self.dec = Stack(z, hidden, dim)
        self.kind = nn.Linear(z, 16)

    def forward(self, x):
        kl, total = 0.0, 0.0
        for enc in self.enc:
            mu, s = enc(x).float().chunk(2, -1)
            q = Normal(mu, s.sigmoid() + 1e-3)  # flaw: framework-wait|sync-in-step
            p = Normal(torch.zeros_like(mu), torch.ones_like(s))  # flaw: framework-wait|sync-in-step
            z = q.rsample()
            total = total + z
            kl = kl + kl_divergence(q, p).sum(-1)
        like = Independent(Normal(self.dec(total).float(), 1.0), 1).log_prob(x)  # flaw: framework-wait|sync-in-step
        kind = Categorical(logits=self.kind(total).float())  # flaw: framework-wait|sync-in-step
        return (kl - like).mean() - 0.01 * kind.entropy().mean()


vae = VAE().to(device)
opt = torch.optim.AdamW(vae.parameters(), lr=1e-3, fused=True)
pixels = torch.rand(32768, 784, device=device)
batch = 16384
for step in range(500):
    x = pixels[torch.randint(0, 32768, (batch,), device=device)]
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = vae(x)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(step, loss.item())
