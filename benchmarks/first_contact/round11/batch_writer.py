"""Offline text generation for large batches of equally long prompts, with a preallocated key-value cache."""
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Spec:
    vocab: int
    dim: int
    heads: int
    layers: int
    prompt: int
    new: int
    batch: int
    batches: int

    @property
    def head_dim(self):
        return self.dim // self.heads


GPU_SPEC = Spec(vocab=16_384, dim=2048, heads=16, layers=8, prompt=512, new=128, batch=192, batches=2)
CPU_SPEC = Spec(vocab=64, dim=32, heads=2, layers=2, prompt=8, new=6, batch=3, batches=1)


class KVCache:
    def __init__(self, spec, device, dtype):
        shape = (2, spec.layers, spec.batch, spec.heads, spec.prompt + spec.new, spec.head_dim)
        self.store = torch.empty(shape, device=device, dtype=dtype)

    def extend(self, layer, k, v, start):
        end = start + k.shape[2]
        keys, values = self.store[0, layer], self.store[1, layer]
        keys[:, :, start:end], values[:, :, start:end] = k, v
        return keys[:, :, :end], values[:, :, :end]


class Layer(nn.Module):
    def __init__(self, spec, index):
        super().__init__()
        d = spec.dim
        self.spec, self.index = spec, index
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, cache, start):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.spec.heads, -1).permute(2, 0, 3, 1, 4)
        if n > 1:  # the prompt: nothing is cached yet
            cache.extend(self.index, k, v, start)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            keys, values = cache.extend(self.index, k, v, start)
            y = F.scaled_dot_product_attention(q, keys, values)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Writer(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.tokens = nn.Embedding(spec.vocab, spec.dim)
        self.positions = nn.Parameter(torch.randn(spec.prompt + spec.new, spec.dim) * 0.02)
        self.layers = nn.ModuleList(Layer(spec, i) for i in range(spec.layers))
        self.norm = nn.LayerNorm(spec.dim)
        self.head = nn.Linear(spec.dim, spec.vocab, bias=False)

    def forward(self, ids, cache, start):
        """Scores of the token that follows the last one of `ids`."""
        x = self.tokens(ids) + self.positions[start:start + ids.shape[1]]
        for layer in self.layers:
            x = layer(x, cache, start)
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def generate(model, prompts, cache, spec):
    """Appends `spec.new` greedily chosen tokens to each prompt; the ids stay on the device."""
    ids = torch.empty(spec.batch, spec.prompt + spec.new, dtype=torch.long, device=prompts.device)
    ids[:, :spec.prompt] = prompts
    scores = model(prompts, cache, 0)
    for position in range(spec.prompt, spec.prompt + spec.new):
        ids[:, position] = scores.argmax(-1)
        if position + 1 < ids.shape[1]:
            scores = model(ids[:, position:position + 1], cache, position)
    return ids[:, spec.prompt:]


def main():
    cuda = torch.cuda.is_available()
    spec = GPU_SPEC if cuda else CPU_SPEC
    device, dtype = ("cuda", torch.bfloat16) if cuda else ("cpu", torch.float32)
    torch.manual_seed(0)
    with torch.device(device):
        model = Writer(spec).to(dtype).eval()
    cache = KVCache(spec, device, dtype)
    gen = torch.Generator(device).manual_seed(2)
    began, written = time.perf_counter(), []
    for _ in range(spec.batches):
        prompts = torch.randint(spec.vocab, (spec.batch, spec.prompt), device=device, generator=gen)
        written.append(generate(model, prompts, cache, spec))
    means = [round(w.float().mean().item(), 2) for w in written]
    seconds = time.perf_counter() - began
    print(f"mean token ids {means}")
    print(f"{spec.batches * spec.batch * spec.new / seconds:.0f} tokens/s")


if __name__ == "__main__":
    main()
