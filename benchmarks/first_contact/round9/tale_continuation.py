"""Sample many continuations of short prompts from a language model (top-p is left to the caller; here: temperature)."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
PARAMS = dict(vocab=16384, dim=1024, layers=8, heads=16) if CUDA else dict(vocab=64, dim=32, layers=2, heads=2)
STORIES, PROMPT, NEW, ROUNDS = (192, 512, 512, 2) if CUDA else (2, 4, 5, 1)


class KVCache:
    def __init__(self, layers, batch, heads, length, head_dim, like):
        self.keys = [None] * layers  # flaw: cat-in-loop
        self.values = [None] * layers  # flaw: cat-in-loop
        self.length = 0

    def extend(self, layer, k, v):
        if self.keys[layer] is not None:
            k = torch.cat([self.keys[layer], k], dim=2)  # flaw: cat-in-loop
            v = torch.cat([self.values[layer], v], dim=2)  # flaw: cat-in-loop
        self.keys[layer], self.values[layer] = k, v  # flaw: cat-in-loop
        return k, v


class Block(nn.Module):
    def __init__(self, dim, heads, index):
        super().__init__()
        self.heads, self.index = heads, index
        self.norm1, self.norm2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.gate_up = nn.Linear(dim, 8 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x, cache):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        k, v = cache.extend(self.index, k, v)
        a = scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, d))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(silu(gate) * up)


class LanguageModel(nn.Module):
    def __init__(self, vocab, dim, layers, heads):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(PROMPT + NEW, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, i) for i in range(layers))
        self.norm = nn.RMSNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.cache_shape = (heads, PROMPT + NEW, dim // heads)

    def new_cache(self, batch):
        return KVCache(len(self.blocks), batch, *self.cache_shape, like=self.head.weight)

    def forward(self, tokens, cache):
        start, n = cache.length, tokens.shape[1]
        x = self.embed(tokens) + self.position.weight[start : start + n]
        for block in self.blocks:
            x = block(x, cache)
        cache.length += n
        return self.head(self.norm(x[:, -1]))


def sample(logits, temperature, generator):
    noise = torch.empty_like(logits, dtype=torch.float32).exponential_(generator=generator)
    return ((logits.float() / temperature).softmax(-1) / noise).argmax(-1, keepdim=True)


@torch.inference_mode()
def tell(model, prompts, temperature=0.9, seed=0):
    generator = torch.Generator(DEVICE).manual_seed(seed)
    story = torch.empty(len(prompts), PROMPT + NEW, dtype=torch.long, device=DEVICE)
    story[:, :PROMPT] = prompts
    cache = model.new_cache(len(prompts))
    token = sample(model(prompts, cache), temperature, generator)
    for position in range(PROMPT, PROMPT + NEW):
        story[:, position : position + 1] = token
        if position + 1 < PROMPT + NEW:
            token = sample(model(token, cache), temperature, generator)
    return story


if __name__ == "__main__":
    torch.manual_seed(0)
    lm = LanguageModel(**PARAMS).to(DEVICE, torch.bfloat16).eval()
    for i in range(ROUNDS):
        prompts = torch.randint(0, PARAMS["vocab"], (STORIES, PROMPT), device=DEVICE)
        stories = tell(lm, prompts, seed=i)
        print("round", i, "mean token", stories[:, PROMPT:].float().mean().item())
