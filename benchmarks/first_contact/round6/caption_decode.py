"""Greedy decoding with a preallocated cache; each decoding step is replayed as a CUDA graph."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = bool(os.environ.get("SMALL"))
V, D, L, H, B, PROMPT, NEW, ROUNDS = (128, 32, 1, 2, 2, 4, 10, 3) if TINY else (8192, 1024, 12, 16, 64, 128, 128, 40)
TOTAL = PROMPT + NEW
device = "cuda" if torch.cuda.is_available() else "cpu"


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
        self.register_buffer("k", torch.zeros(B, H, TOTAL, D // H), persistent=False)
        self.register_buffer("v", torch.zeros(B, H, TOTAL, D // H), persistent=False)

    def forward(self, x, where, mask):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, H, D // H).permute(2, 0, 3, 1, 4)
        self.k.index_copy_(2, where, k)
        self.v.index_copy_(2, where, v)
        if mask is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = F.scaled_dot_product_attention(q, self.k, self.v, attn_mask=mask)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, D))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(TOTAL, D)
        self.layers = nn.ModuleList(Layer() for _ in range(L))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        self.register_buffer("all", torch.arange(TOTAL), persistent=False)

    def forward(self, ids, where, prefill):
        x = self.tok(ids) + self.pos(where)
        mask = None if prefill else (self.all <= where)[None, None, None, :]
        for layer in self.layers:
            x = layer(x, where, mask)
        return self.head(self.norm(x[:, -1])).argmax(-1, keepdim=True)


class Stepper:
    """One token for each row; the state (token and position) stays in fixed memory."""

    def __init__(self, model):
        self.model = model
        self.token = torch.zeros(B, 1, dtype=torch.long, device=device)
        self.where = torch.full((1,), PROMPT, device=device)
        self.graph = None
        if device == "cuda":
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):
                    self.advance()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.advance()

    def advance(self):
        self.token.copy_(self.model(self.token, self.where, False))
        self.where += 1

    def __call__(self):
        self.graph.replay() if self.graph else self.advance()
        return self.token


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    model = Decoder().to(device, torch.bfloat16).eval()
    stepper = Stepper(model)
    for r in range(ROUNDS):
        prompt = torch.randint(V, (B, PROMPT), device=device)
        out = torch.empty(B, NEW, dtype=torch.long, device=device)
        first = model(prompt, model.all[:PROMPT], True)
        stepper.token.copy_(first)
        stepper.where.fill_(PROMPT)
        out[:, :1] = first
        for n in range(1, NEW):
            out[:, n : n + 1] = stepper()
        if r % 10 == 0 or TINY:
            print(f"round {r} mean token {out.float().mean().item():.1f}")


main()
