"""Learning to rank: listwise softmax loss on query groups, NDCG tracked while training."""

import torch
from torch import nn

torch.set_float32_matmul_precision("high")
torch.manual_seed(0)

gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")
queries, docs, features, width = (512, 128, 256, 1024) if gpu else (8, 6, 8, 16)
steps = 200 if gpu else 5
K = 10


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.inp(x)
        for norm, layer in zip(self.norms, self.hidden):
            x = x + nn.functional.gelu(layer(norm(x)))
        return self.out(x).squeeze(-1)


def listwise_loss(scores, relevance):
    target = torch.softmax(relevance, dim=-1)
    return nn.functional.cross_entropy(scores.float(), target)


def ndcg_at_k(scores, relevance, discount):
    k = min(len(discount), scores.size(1))
    ranked = relevance.gather(1, scores.topk(k).indices)
    ideal = relevance.topk(k).values
    gain = torch.exp2(ranked).sub(1) @ discount[:k]
    best = torch.exp2(ideal).sub(1) @ discount[:k]
    return (gain / best.clamp(min=1e-9)).mean()


pool = torch.randn(16, queries, docs, features, device=device, dtype=torch.bfloat16)
grades = torch.randint(0, 5, (16, queries, docs), device=device).float()
model = Ranker().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=gpu)

discount = 1.0 / torch.arange(2, K + 2, device=device).float().log2()
running = 0.0
for step in range(steps):
    x, relevance = pool[step % 16], grades[step % 16]
    with torch.autocast(device.type, dtype=torch.bfloat16):
        scores = model(x)
    loss = listwise_loss(scores, relevance)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)

    ndcg = ndcg_at_k(scores.detach().float(), relevance, discount)
    running = ndcg if step == 0 else 0.9 * running + 0.1 * ndcg
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f} ndcg@{K} {running:.4f}")

print(f"loss {loss.item():.4f} ndcg@{K} {running:.4f}")
