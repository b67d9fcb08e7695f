"""Full-catalogue evaluation of a self-attentive next-item recommender (Recall@k, NDCG@k)."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")

ITEMS = 120_000 if gpu else 400
USERS = 512 * 200 if gpu else 48
BATCH = 512 if gpu else 16
HISTORY = 128 if gpu else 12
WIDTH = 256 if gpu else 16
CUTOFFS = (10, 50, 100)


class SASRecBlock(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm_attn, self.norm_ff = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ff1, self.ff2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm_attn(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.ff2(F.relu(self.ff1(self.norm_ff(x))))


class SASRec(nn.Module):
    def __init__(self, items, width, length, blocks=3):
        super().__init__()
        self.item_emb = nn.Embedding(items, width)
        self.pos_emb = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(SASRecBlock(width) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)

    def encode(self, history):
        x = self.item_emb(history) + self.pos_emb.weight
        for block in self.blocks:
            x = block(x)
        return self.norm(x[:, -1])


class RankingMetrics:
    def __init__(self, cutoffs):
        self.cutoffs = cutoffs
        ranks = torch.arange(max(cutoffs), device=device)
        self.discount = 1.0 / torch.log2(ranks + 2.0)
        self.recall = torch.zeros(len(cutoffs), device=device)
        self.ndcg = torch.zeros(len(cutoffs), device=device)
        self.count = 0

    def update(self, ranked, target):
        hits = (ranked == target[:, None]).float()
        gains = hits * self.discount
        for i, k in enumerate(self.cutoffs):
            self.recall[i] += hits[:, :k].sum()
            self.ndcg[i] += gains[:, :k].sum()
        self.count += len(target)

    def compute(self):
        rows = zip(self.cutoffs, self.recall.tolist(), self.ndcg.tolist())
        return {k: (recall / self.count, ndcg / self.count) for k, recall, ndcg in rows}


@torch.inference_mode()
def evaluate(model, histories, targets):
    metrics = RankingMetrics(CUTOFFS)
    for lo in range(0, len(histories), BATCH):
        seen, target = histories[lo : lo + BATCH], targets[lo : lo + BATCH]
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=gpu):
            state = model.encode(seen)
        scores = state.float() @ model.item_emb.weight.t()
        scores.scatter_(1, seen, -math.inf)
        top = torch.topk(scores, max(CUTOFFS), dim=1).indices
        metrics.update(top, target)
    return metrics.compute()


def main():
    torch.manual_seed(2024)
    torch.set_float32_matmul_precision("high")
    model = SASRec(ITEMS, WIDTH, HISTORY).to(device).eval()
    histories = torch.randint(0, ITEMS, (USERS, HISTORY), device=device)
    # the next item resembles the last ones: a noisy copy of somebody's history
    targets = (histories[:, -1] + torch.randint(1, 50, (USERS,), device=device)) % ITEMS
    for k, (recall, ndcg) in evaluate(model, histories, targets).items():
        print(f"recall@{k} {recall:.5f}  ndcg@{k} {ndcg:.5f}")


if __name__ == "__main__":
    main()
