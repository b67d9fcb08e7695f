import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


class Norm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)  # flaw: hand-written-norm

    def forward(self, x):
        out = self._norm(x.float()).type_as(x)  # flaw: hand-written-norm
        return out * self.weight  # flaw: hand-written-norm


class ChannelMix(nn.Module):
    def __init__(self, dim, mult=3):
        super().__init__()
        self.norm = Norm(dim)
        self.key = nn.Linear(dim, dim * mult, bias=False)
        self.value = nn.Linear(dim * mult, dim, bias=False)

    def forward(self, x):
        return self.value(F.relu(self.key(self.norm(x))))


class Model(nn.Module):
    def __init__(self, vocab=2048, dim=1024, depth=6):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([ChannelMix(dim) for _ in range(depth)])
        self.norm = Norm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, idx):
        x = self.emb(idx)
        for b in self.blocks:
            x = x + b(x)
        return self.head(self.norm(x))


def train(batch=32, seq=512):
    model = Model().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=6e-4, fused=True)
    ids = torch.randint(0, 2048, (512, seq + 1), device=device)
    for step in range(400):
        s = ids[torch.randperm(512, device=device)[:batch]]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(s[:, :-1]).flatten(0, 1), s[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item())


train()
