"""Serve chat turns: prefill a batch of conversations, then decode the answers token by token."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
DTYPE = torch.bfloat16 if GPU else torch.float32

SPEC = dict(
    vocab=32064 if GPU else 256,
    dim=1024 if GPU else 32,
    heads=16 if GPU else 2,
    layers=8 if GPU else 2,
    context=2048 if GPU else 24,
    answer=128 if GPU else 8,
)
CONVERSATIONS = 64 if GPU else 3
TURNS = 6 if GPU else 2


class KVCache:
    """Keys and values of all the tokens so far, one pair of tensors per layer."""

    def __init__(self, layers, batch, heads, length, head_dim):
        empty = torch.empty(batch, heads, 0, head_dim, device=DEVICE, dtype=DTYPE)  # flaw: cat-in-loop
        self.keys = [empty for _ in range(layers)]  # flaw: cat-in-loop
        self.values = [empty for _ in range(layers)]  # flaw: cat-in-loop
        self.length = 0

    def extend(self, layer, k, v):
        self.keys[layer] = torch.cat([self.keys[layer], k], dim=2)  # flaw: cat-in-loop
        self.values[layer] = torch.cat([self.values[layer], v], dim=2)  # flaw: cat-in-loop
        return self.keys[layer], self.values[layer]  # flaw: cat-in-loop


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.attn_norm, self.mlp_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x, cache, index):
        b, t, d = x.shape
        qkv = self.qkv(self.attn_norm(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        k, v = cache.extend(index, k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.silu(self.up(self.mlp_norm(x))))


class ChatModel(nn.Module):
    def __init__(self, vocab, dim, heads, layers, context, answer):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(context + answer, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids, cache):
        start = cache.length
        x = self.embed(ids) + self.position.weight[start : start + ids.size(1)]
        for index, layer in enumerate(self.layers):
            x = layer(x, cache, index)
        cache.length += ids.size(1)
        return self.norm(x[:, -1]) @ self.embed.weight.t()


@torch.inference_mode()
def respond(model, prompts, new_tokens):
    batch, context = prompts.shape
    head_dim = SPEC["dim"] // SPEC["heads"]
    cache = KVCache(SPEC["layers"], batch, SPEC["heads"], context + new_tokens, head_dim)
    answer = torch.empty(batch, new_tokens, dtype=torch.long, device=DEVICE)
    ids = prompts
    for i in range(new_tokens):
        ids = model(ids, cache).argmax(dim=-1, keepdim=True)
        answer[:, i : i + 1] = ids
    return answer


if __name__ == "__main__":
    torch.manual_seed(3)
    with DEVICE:
        model = ChatModel(**SPEC).to(DTYPE).eval()
    for turn in range(TURNS):
        prompts = torch.randint(0, SPEC["vocab"], (CONVERSATIONS, SPEC["context"]), device=DEVICE)
        began = time.perf_counter()
        answer = respond(model, prompts, SPEC["answer"]).cpu()
        rate = answer.numel() / (time.perf_counter() - began)
        print(f"turn {turn}: {rate:.0f} tokens/s, checksum {answer.sum().item()}")
