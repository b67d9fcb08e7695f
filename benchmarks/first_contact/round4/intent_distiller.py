import os
import torch
from torch import nn, Tensor
import torch.nn.functional as F

FAST = os.environ.get("SMALL") == "1"
VOCAB, INTENTS = (256, 8) if FAST else (4096, 160)
LENGTH, BATCH = (16, 4) if FAST else (128, 96)
STEPS = 30 if FAST else 80
BIG = dict(dim=64, depth=2, heads=2) if FAST else dict(dim=768, depth=12, heads=12)
LITTLE = dict(dim=32, depth=1, heads=2) if FAST else dict(dim=384, depth=4, heads=6)


class TextNet(nn.Module):
    def __init__(self, dim: int, depth: int, heads: int):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim)
        self.slots = nn.Parameter(torch.zeros(LENGTH, dim))
        self.layers = nn.ModuleList(self._layer(dim) for _ in range(depth))
        self.heads = heads
        self.top = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, INTENTS))

    @staticmethod
    def _layer(dim: int) -> nn.ModuleDict:
        return nn.ModuleDict(dict(
            n1=nn.LayerNorm(dim), qkv=nn.Linear(dim, 3 * dim), proj=nn.Linear(dim, dim),
            n2=nn.LayerNorm(dim), up=nn.Linear(dim, 4 * dim), down=nn.Linear(4 * dim, dim)))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.slots
        for m in self.layers:
            q, k, v = m["qkv"](m["n1"](x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + m["proj"](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            x = x + m["down"](F.gelu(m["up"](m["n2"](x))))
        return self.top(x.mean(1))


class Distiller:
    def __init__(self, device: torch.device, warmth: float = 2.0, balance: float = 0.7):
        self.device, self.warmth, self.balance = device, warmth, balance
        self.expert = TextNet(**BIG).to(device).eval()  # flaw: grad-in-eval|wasted-gradient
        self.pupil = TextNet(**LITTLE).to(device).train()
        self.optimizer = torch.optim.AdamW(self.pupil.parameters(), lr=5e-4, fused=True)

    def loss(self, ids: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            guide = self.expert(ids)  # flaw: grad-in-eval|wasted-gradient
            mine = self.pupil(ids)
        soft = F.softmax(guide.float() / self.warmth, dim=-1)
        match = F.kl_div(F.log_softmax(mine.float() / self.warmth, dim=-1), soft, reduction="batchmean")
        hard = F.cross_entropy(mine.float(), labels)
        return self.balance * self.warmth ** 2 * match + (1 - self.balance) * hard

    def fit(self, ids: Tensor, labels: Tensor, steps: int) -> Tensor:
        trail = torch.zeros(steps, device=self.device)
        for step in range(steps):
            pick = torch.randint(ids.size(0), (BATCH,), device=self.device)
            loss = self.loss(ids[pick], labels[pick])
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            trail[step] = loss.detach()
        return trail


if __name__ == "__main__":
    torch.manual_seed(0)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    utterances = torch.randint(VOCAB, (BATCH * 40, LENGTH), device=dev)
    intents = utterances[:, 0] % INTENTS
    trail = Distiller(dev).fit(utterances, intents, STEPS)
    print("first/last loss:", trail[0].item(), trail[-1].item())
