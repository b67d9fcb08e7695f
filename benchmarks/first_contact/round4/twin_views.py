"""Two views, an online and a slowly moving target network, no negatives."""
import copy
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

S = os.environ.get("SMALL", "0") == "1"
IMG, PATCH, DIM, DEPTH, HEADS = (16, 8, 32, 2, 2) if S else (64, 8, 384, 16, 6)
BATCH, STEPS = (4, 30) if S else (64, 80)
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, DIM * 3)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.attn = nn.LayerNorm(DIM), SelfAttention()
        self.n2, self.mlp = nn.LayerNorm(DIM), nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(3 * PATCH * PATCH, DIM)
        self.pos = nn.Parameter(torch.zeros((IMG // PATCH) ** 2, DIM))
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.project = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, 128))

    def forward(self, p):
        return self.project(self.blocks(self.patch(p) + self.pos).mean(1))


class Twin(nn.Module):
    def __init__(self, decay=0.996):
        super().__init__()
        self.online = Encoder()
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.predict = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))
        self.decay = decay

    @torch.no_grad()
    def follow(self):
        for p, q in zip(self.online.parameters(), self.target.parameters()):  # flaw: parameter-loop
            q.data = q.data * self.decay + p.data * (1.0 - self.decay)  # flaw: parameter-loop

    def forward(self, a, b):
        both = torch.cat((a, b))
        guess = self.predict(self.online(both))
        with torch.no_grad():
            goal = self.target(both).roll(len(a), 0)
        return 2 - 2 * F.cosine_similarity(guess.float(), goal.float()).mean()


def views(pool):
    x = pool[torch.randint(len(pool), (BATCH,), device=dev)]
    return x + 0.1 * torch.randn_like(x), (x + 0.1 * torch.randn_like(x)).flip(1)


pool = torch.rand(BATCH * 8, (IMG // PATCH) ** 2, 3 * PATCH * PATCH, device=dev)
twin = Twin().to(dev)
params = [p for p in twin.parameters() if p.requires_grad]
opt = torch.optim.AdamW(params, lr=3e-4, weight_decay=0.05, fused=dev.type == "cuda")
for step in range(STEPS):
    with torch.autocast(dev.type, torch.bfloat16):
        loss = twin(*views(pool))
    opt.zero_grad()
    loss.backward()
    opt.step()
    twin.follow()
    if step % 20 == 0:
        print(step, round(loss.item(), 4))
