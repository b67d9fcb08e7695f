"""Sample stories from a decoder with top-k sampling."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
cuda = torch.cuda.is_available()
dev = "cuda" if cuda else "cpu"
dtype = torch.bfloat16 if cuda else torch.float32

vocab, dim, depth, heads = (8192, 1024, 8, 16) if cuda else (128, 32, 2, 2)
prompt_len, new_tokens, batch = (192, 256, 48) if cuda else (8, 8, 2)
max_len = prompt_len + new_tokens


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)
        self.ln2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.append(k, v)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, dim))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class LayerCache:
    def __init__(self):
        self.k = torch.zeros(batch, heads, max_len, dim // heads, device=dev, dtype=dtype)
        self.v = torch.zeros_like(self.k)
        self.length = 0

    def append(self, k, v):
        end = self.length + k.size(2)
        self.k[:, :, self.length : end] = k
        self.v[:, :, self.length : end] = v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]


class StoryModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.layers = nn.ModuleList(Layer() for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids, caches=None):
        start = caches[0].length if caches is not None else 0
        x = self.tok(ids) + self.pos.weight[start : start + ids.size(1)]
        for i, layer in enumerate(self.layers):
            x = layer(x, caches[i] if caches is not None else None)
        return self.head(self.norm(x[:, -1]))


def sample(logits, top_k=50, temperature=0.9):
    values, indices = torch.topk(logits.float() / temperature, min(top_k, vocab))
    noise = torch.empty_like(values).exponential_()
    choice = (values.softmax(-1) / noise).argmax(-1, keepdim=True)
    return indices.gather(-1, choice)


@torch.inference_mode()
def generate(model, prompt):
    ids = torch.empty(prompt.size(0), max_len, dtype=torch.long, device=dev)
    ids[:, :prompt_len] = prompt
    caches = [LayerCache() for _ in range(depth)]
    for end in range(prompt_len, max_len):
        logits = model(ids[:, caches[0].length : end], caches)
        ids[:, end : end + 1] = sample(logits)
    return ids


model = StoryModel().to(dev, dtype).eval()
prompts = torch.randint(vocab, (batch, prompt_len), device=dev)
stories = generate(model, prompts)
print("generated", tuple(stories.shape), "checksum", stories[:, prompt_len:].sum().item())
