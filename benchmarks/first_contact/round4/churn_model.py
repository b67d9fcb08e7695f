import os
import torch
import torch.nn as nn
import torch.nn.functional as F

# In [1]:
SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
n_cat, n_num = (6, 4) if SMALL else (40, 23)      # columns
cards = 50 if SMALL else 1000                      # values per column
rows = 2_000 if SMALL else 200_000
batch_size = 64 if SMALL else 1024
d, depth, heads = (32, 2, 2) if SMALL else (256, 12, 4)
steps = 30 if SMALL else 80

# In [2]:
torch.manual_seed(42)
X_cat = torch.randint(cards, (rows, n_cat), device=device)
X_num = torch.randn(rows, n_num, device=device)
y = ((X_num[:, 0] + X_num[:, 1] * X_num[:, 2]) > 0).float()


# In [3]:
class Tokenizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.cat = nn.Embedding(cards * n_cat, d)
        self.register_buffer("offset", torch.arange(n_cat) * cards)
        self.num_w = nn.Parameter(torch.randn(n_num, d) * 0.1)
        self.num_b = nn.Parameter(torch.zeros(n_num, d))
        self.cls = nn.Parameter(torch.zeros(1, 1, d))

    def forward(self, c, n):
        c = self.cat(c + self.offset)
        n = torch.addcmul(self.num_b, n.unsqueeze(-1), self.num_w)
        return torch.cat([self.cls.expand(len(c), -1, -1), c, n], dim=1)


class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(inplace=True), nn.Linear(4 * d, d))

    def split(self, t):
        return t.view(*t.shape[:2], heads, d // heads).transpose(1, 2)

    def forward(self, x):
        z = self.norm1(x)
        a = F.scaled_dot_product_attention(self.split(self.q(z)), self.split(self.k(z)), self.split(self.v(z)))
        x = x + self.o(a.transpose(1, 2).reshape(x.shape))
        return x + self.ff(self.norm2(x))


class TabModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = Tokenizer()
        self.mix = nn.Sequential(*[Mix() for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 1))

    def forward(self, c, n):
        return self.head(self.mix(self.tok(c, n))[:, 0]).squeeze(-1)


# In [4]:
model = TabModel().to(device)
decay = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW(  # flaw: per-tensor-optimizer
    [{"params": decay, "weight_decay": 1e-4}, {"params": plain, "weight_decay": 0.0}], lr=1e-4, foreach=False)  # flaw: per-tensor-optimizer

# In [5]:
model.train()
running = torch.zeros((), device=device)
order = torch.randperm(rows, device=device)
for step in range(steps):
    lo = (step * batch_size) % (rows - batch_size)
    idx = order[lo:lo + batch_size]
    with torch.autocast(device.type, dtype=torch.bfloat16):
        out = model(X_cat[idx], X_num[idx])
    loss = F.binary_cross_entropy_with_logits(out.float(), y[idx])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    running += loss.detach()

# In [6]:
print("mean loss", (running / steps).item())
