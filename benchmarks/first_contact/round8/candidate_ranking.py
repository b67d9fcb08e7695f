"""A cross-encoder that ranks retrieved candidates for each query of a request log."""

import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("ranker")


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.ln_attn = nn.LayerNorm(dim)
        self.fc_in = nn.Linear(dim, 4 * dim)
        self.fc_out = nn.Linear(4 * dim, dim)
        self.ln_ffn = nn.LayerNorm(dim)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = self.ln_attn(x + self.out(a.transpose(1, 2).reshape(n, t, d)))
        return self.ln_ffn(x + self.fc_out(F.gelu(self.fc_in(x))))


class CrossEncoder(nn.Module):
    def __init__(self, vocab, dim, heads, layers, length):
        super().__init__()
        self.words = nn.Embedding(vocab, dim)
        self.places = nn.Embedding(length, dim)
        self.ln = nn.LayerNorm(dim)
        self.layers = nn.ModuleList(EncoderLayer(dim, heads) for _ in range(layers))
        self.score = nn.Linear(dim, 1)

    def forward(self, ids):
        x = self.ln(self.words(ids) + self.places.weight[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return self.score(x[:, 0]).squeeze(-1)


class RankingService:
    def __init__(self, model, device, keep):
        self.model = model
        self.device = device
        self.keep = keep
        self.served = 0

    @torch.inference_mode()
    def handle(self, query, candidates):
        query = query.to(self.device, non_blocking=True)
        candidates = candidates.to(self.device, non_blocking=True)
        pairs = torch.cat((query.expand(len(candidates), -1), candidates), dim=1)
        scores = self.model(pairs).float()
        best = scores.topk(self.keep).indices
        self.served += 1
        del pairs, scores
        if self.device.type == "cuda":  # flaw: cache-emptied-in-step
            torch.cuda.empty_cache()  # flaw: cache-emptied-in-step
        return best


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    vocab, dim, heads, layers, length = (30528, 768, 12, 12, 128) if gpu else (200, 32, 2, 2, 16)
    candidates, requests, keep = (256, 250, 20) if gpu else (8, 12, 3)

    torch.manual_seed(0)
    with device:
        model = CrossEncoder(vocab, dim, heads, layers, length)
    model = model.to(torch.bfloat16 if gpu else torch.float32).eval()
    service = RankingService(model, device, keep)

    corpus = torch.randint(vocab, (40, candidates, length * 3 // 4))
    queries = torch.randint(vocab, (40, 1, length // 4))
    if gpu:
        corpus, queries = corpus.pin_memory(), queries.pin_memory()

    ranked = []
    for i in range(requests):
        ranked.append(service.handle(queries[i % 40], corpus[i % 40]))
    ranked = torch.stack(ranked).cpu()
    log.info("served %d requests, mean first choice %.2f", service.served, ranked[:, 0].float().mean())


if __name__ == "__main__":
    main()
