"""Continue pretraining a language model on long documents."""

import torch
import torch.nn as nn
import torch.nn.functional as F

MODELS = {
    "tiny": dict(dim=32, heads=2, layers=2, vocab=100, context=32),
    "base": dict(dim=768, heads=12, layers=8, vocab=16384, context=4096),
}


def get_model(name):
    return LongLM(**MODELS[name])


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, context):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)
        causal = torch.ones(context, context, dtype=torch.bool).tril()  # flaw: slow-attention-kernel
        self.register_buffer("causal", causal, persistent=False)  # flaw: slow-attention-kernel

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.to_qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mask = self.causal[:n, :n]  # flaw: slow-attention-kernel
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # flaw: slow-attention-kernel
        return self.to_out(out.transpose(1, 2).reshape(b, n, d))


class FeedForward(nn.Sequential):
    def __init__(self, dim):
        super().__init__(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))


class LongLM(nn.Module):
    def __init__(self, dim, heads, layers, vocab, context):
        super().__init__()
        self.context, self.vocab = context, vocab
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Parameter(torch.zeros(context, dim))
        self.layers = nn.ModuleList(
            nn.ModuleList(
                [nn.LayerNorm(dim), SelfAttention(dim, heads, context), nn.LayerNorm(dim), FeedForward(dim)]
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(dim)
        self.unembed = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids) + self.position[: ids.shape[1]]
        for norm1, attend, norm2, ff in self.layers:
            x = x + attend(norm1(x))
            x = x + ff(norm2(x))
        return self.unembed(self.norm(x))


def document_stream(vocab, context, batch, device):
    documents = torch.randint(vocab, (batch * 12, context + 1), device=device)
    while True:
        order = torch.randperm(len(documents), device=device)
        for chosen in order.split(batch):
            yield documents[chosen]


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if on_gpu else "cpu")
    batch, accumulate, steps = (2, 2, 110) if on_gpu else (2, 2, 4)

    model = get_model("base" if on_gpu else "tiny").to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    stream = document_stream(model.vocab, model.context, batch, device)
    for step in range(steps):
        total = torch.zeros((), device=device)
        for _ in range(accumulate):
            ids = next(stream)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(ids[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) / accumulate
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 25 == 0 or step == steps - 1:
            print(f"step {step}: loss {total.item():.4f}")


if __name__ == "__main__":
    main()
