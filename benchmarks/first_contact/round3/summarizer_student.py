# %% [markdown]
# Shrink a summarizer: a six-layer teacher, a three-layer student.

# %%
import os
import torch
from torch import nn
from torch.nn import functional as F

tiny = "SMALL" in os.environ
DEV = "cuda" if torch.cuda.is_available() else "cpu"
V, D, H, T, B = (200, 32, 2, 24, 2) if tiny else (16384, 768, 12, 512, 16)
TEMPERATURE = 2.0

# %%
class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D)
        self.back = nn.Linear(D, D)

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, H, D // H).permute(2, 0, 3, 1, 4)
        return self.back(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Stack(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.emb = nn.Embedding(V, D)
        self.attn = nn.ModuleList(Causal() for _ in range(depth))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D)) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2 * depth + 1))
        self.head = nn.Linear(D, V, bias=False)

    def forward(self, ids):
        x = self.emb(ids)
        for i, (a, f) in enumerate(zip(self.attn, self.ff)):
            x = x + a(self.norms[2 * i](x))
            x = x + f(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x))


# %%
def soft_target_loss(student_logits, teacher_logits):
    s = torch.softmax(student_logits / TEMPERATURE, dim=-1)  # flaw: hand-written-loss
    t = torch.softmax(teacher_logits / TEMPERATURE, dim=-1)  # flaw: hand-written-loss
    per_token = (t * (torch.log(t + 1e-9) - torch.log(s + 1e-9))).sum(-1)  # flaw: hand-written-loss
    return per_token.mean() * TEMPERATURE**2  # flaw: hand-written-loss


# %%
torch.manual_seed(7)
teacher = Stack(2 if tiny else 6).to(DEV, torch.bfloat16).eval().requires_grad_(False)
student = Stack(1 if tiny else 3).to(DEV)
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4, fused=True)
articles = torch.randint(V, (320, T), device=DEV)

# %%
for step in range(30 if tiny else 80):
    ids = articles[(step * B) % 320 : (step * B) % 320 + B]
    with torch.no_grad():
        wanted = teacher(ids).float()
    with torch.autocast(DEV, dtype=torch.bfloat16):
        got = student(ids)
    loss = soft_target_loss(got.float(), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
print("final", loss.item())
