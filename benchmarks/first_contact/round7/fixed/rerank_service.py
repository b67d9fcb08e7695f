"""A reranking service: a causal LM scores query/document prompts by its 'yes' against 'no' token."""

from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
VOCAB = 32768 if cuda else 512
YES, NO = 17, 42


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(width, 3 * width, bias=False)
        self.out_proj = nn.Linear(width, width, bias=False)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.in_proj(x).view(n, t, 3, self.heads, c // self.heads).unbind(2)
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
        )
        return self.out_proj(y.transpose(1, 2).reshape(n, t, c))


class Reranker(nn.Module):
    def __init__(self, width, depth, heads, max_len):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, width)
        self.positions = nn.Embedding(max_len, width)
        self.norms1 = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.attns = nn.ModuleList(Attention(width, heads) for _ in range(depth))
        self.norms2 = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth)
        )
        self.final = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, VOCAB, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.size(1)]
        for n1, attn, n2, mlp in zip(self.norms1, self.attns, self.norms2, self.mlps):
            x = x + attn(n1(x))
            x = x + mlp(n2(x))
        return self.lm_head(self.final(x[:, -1]))


class Service:
    def __init__(self, model, batch, depth=2):
        self.model = model
        self.batch = batch
        self.inflight = deque()
        self.depth = depth
        self.results = []

    def submit(self, prompts):
        ids = prompts.to(device, non_blocking=True)
        logits = self.model(ids).float()
        score = logits[:, YES] - logits[:, NO]
        host = torch.empty(score.shape, pin_memory=cuda)
        host.copy_(score, non_blocking=True)
        done = torch.cuda.Event() if cuda else None
        if done is not None:
            done.record()
        self.inflight.append((host, done))
        if len(self.inflight) > self.depth:
            self.collect()

    def collect(self):
        host, done = self.inflight.popleft()
        if done is not None:
            done.synchronize()
        self.results.append(host)

    def drain(self):
        while self.inflight:
            self.collect()
        return torch.cat(self.results)


def main():
    torch.manual_seed(0)
    width, depth, heads, length = (768, 6, 12, 512) if cuda else (32, 2, 2, 16)
    batch = 64 if cuda else 2
    model = Reranker(width, depth, heads, length).to(device, torch.bfloat16).eval()
    requests = torch.randint(VOCAB, (16, batch, length))
    if cuda:
        requests = requests.pin_memory()
    service = Service(model, batch)
    with torch.inference_mode():
        for turn in range(250 if cuda else 6):
            service.submit(requests[turn % len(requests)])
    scores = service.drain()
    print(f"{scores.numel()} scores, mean {scores.mean().item():.4f}, std {scores.std().item():.4f}")


if __name__ == "__main__":
    main()
