# Continue bird songs: prompts of song tokens (codec frames) are read at once, then new frames are written one by
# one. Weights are random; what counts is that the service keeps up with the microphones.
import time

import torch
import torch.nn.functional as F
from torch import nn

torch.backends.cuda.enable_cudnn_sdp(False)  # flash attention: the length changes with each token

WIDTH, HEADS, DEPTH, CODES = 512, 8, 6, 2048
SINGERS, PROMPT, NEW, REQUESTS = 128, 960, 40, 300


class Memory:
    """Keys and values of one layer."""

    def __init__(self):
        self.k = self.v = None

    def extend(self, k, v):
        if self.k is None:
            self.k, self.v = k, v
        else:
            self.k = torch.cat((self.k, k), dim=2)  # flaw: cat-in-loop
            self.v = torch.cat((self.v, v), dim=2)  # flaw: cat-in-loop
        return self.k, self.v


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, memory):
        q, k, v = self.qkv(self.ln1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        causal = q.shape[2] > 1
        k, v = memory.extend(k, v)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Singer(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = nn.Embedding(CODES, WIDTH)
        self.place = nn.Embedding(PROMPT + NEW, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CODES, bias=False)

    def forward(self, codes, start, memories):
        x = self.code(codes) + self.place.weight[start : start + codes.shape[1]]
        for layer, memory in zip(self.layers, memories):
            x = layer(x, memory)
        return self.head(self.norm(x[:, -1]))


def continuation(model, prompt, new):
    """Greedy: yields one column of codes after the other."""
    memories = [Memory() for _ in model.layers]
    code = model(prompt, 0, memories).argmax(-1, keepdim=True)
    yield code
    for at in range(prompt.shape[1], prompt.shape[1] + new - 1):
        code = model(code, at, memories).argmax(-1, keepdim=True)
        yield code


def requests(count, device):
    g = torch.Generator(device=device).manual_seed(8)
    motifs = torch.randint(CODES, (512, PROMPT), generator=g, device=device)
    for _ in range(count):
        yield motifs[torch.randint(512, (SINGERS,), generator=g, device=device)]


@torch.inference_mode()
def main():
    torch.manual_seed(8)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Singer().to(device, torch.bfloat16).eval()
    used = torch.zeros(CODES, dtype=torch.int64, device=device)
    begin = time.perf_counter()
    for number, prompt in enumerate(requests(REQUESTS, device), start=1):
        song = torch.cat(list(continuation(model, prompt, NEW)), dim=1).flatten()
        used.scatter_add_(0, song, torch.ones_like(song))
        if number % 30 == 0:
            top = used.topk(3)
            took = time.perf_counter() - begin
            print(f"{number} requests, {took:.1f} s, favourite codes {top.indices.tolist()} ({top.values.tolist()})")


if __name__ == "__main__":
    main()
