"""Sample lines of text from a small character-level GPT."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cache=None):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.append(k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class LayerCache:
    """Keys and values of one layer, in buffers of the full length."""

    def __init__(self, batch, heads, length, size):
        self.keys = torch.empty(batch, heads, length, size)
        self.values = torch.empty(batch, heads, length, size)
        self.used = 0

    def append(self, k, v):
        end = self.used + k.shape[2]
        self.keys[:, :, self.used : end] = k
        self.values[:, :, self.used : end] = v
        self.used = end
        return self.keys[:, :, :end], self.values[:, :, :end]


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, cache=None):
        x = x + self.attn(self.ln1(x), cache)
        return x + self.mlp(self.ln2(x))


class HaikuGPT(nn.Module):
    def __init__(self, vocab=96, width=128, layers=4, heads=4, block_size=256):
        super().__init__()
        self.heads, self.width, self.block_size = heads, width, block_size
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(block_size, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab, bias=False)

    def new_cache(self, batch):
        size = self.width // self.heads
        return [LayerCache(batch, self.heads, self.block_size, size) for _ in self.layers]

    def forward(self, ids, cache=None):
        start = cache[0].used if cache else 0
        x = self.wte(ids) + self.wpe.weight[start : start + ids.shape[1]]
        for i, layer in enumerate(self.layers):
            x = layer(x, cache[i] if cache else None)
        return self.lm_head(self.ln(x[:, -1]))


@torch.inference_mode()
def sample(model, prompt, new_tokens, temperature=0.8, top_k=20):
    ids = torch.empty(prompt.shape[0], prompt.shape[1] + new_tokens, dtype=torch.long)
    length = prompt.shape[1]
    ids[:, :length] = prompt
    cache = model.new_cache(prompt.shape[0])
    for _ in range(new_tokens):
        logits = model(ids[:, cache[0].used : length], cache) / temperature
        values, indices = logits.topk(top_k)
        choice = torch.multinomial(values.softmax(-1), 1)
        ids[:, length] = indices.gather(1, choice).squeeze(1)
        length += 1
    return ids


def main():
    torch.manual_seed(3)
    model = HaikuGPT().eval()
    prompt = torch.randint(96, (12, 24))
    text = sample(model, prompt, new_tokens=200)
    for row in text[:3].tolist():
        print("".join(chr(32 + i) for i in row[24:84]))


if __name__ == "__main__":
    main()
