# %% Sample continuations from a small decoder
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = bool(os.environ.get("SMALL"))
V, D, L, H = (256, 32, 1, 2) if SMALL else (16384, 1024, 8, 16)
PROMPT, NEW, ROWS, ROUNDS = (8, 10, 2, 3) if SMALL else (256, 96, 32, 3)
device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16


# %% model
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.f1, self.f2 = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x, slot, start, keep):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.a(x)).view(b, t, 3, H, D // H).permute(2, 0, 3, 1, 4)
        if slot is not None:
            slot[0][:, :, start : start + t] = k
            slot[1][:, :, start : start + t] = v
        if keep is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = F.scaled_dot_product_attention(q, *slot, attn_mask=keep)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, D))
        return x + self.f2(F.gelu(self.f1(self.b(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(PROMPT + NEW, D)
        self.layers = nn.ModuleList(Layer() for _ in range(L))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        self.register_buffer("index", torch.arange(PROMPT + NEW))

    def slots(self, rows):
        shape = (rows, H, PROMPT + NEW, D // H)
        return [(torch.zeros(shape, device=device, dtype=dtype), torch.zeros(shape, device=device, dtype=dtype)) for _ in range(L)]

    def forward(self, ids, slots=None, start=0):
        x = self.tok(ids) + self.pos(self.index[start : start + ids.shape[1]])
        keep = (self.index <= start)[None, None, None] if start else None
        for i, layer in enumerate(self.layers):
            x = layer(x, slots[i] if slots else None, start, keep)
        return self.head(self.norm(x[:, -1]))


# %% sampling
def pick(logits, k=40):
    top, where = logits.float().topk(k)
    return where.gather(1, torch.multinomial(top.softmax(-1), 1))


@torch.inference_mode()
def continue_text(model, prompt):
    text = torch.empty(prompt.shape[0], PROMPT + NEW, dtype=torch.long, device=device)
    text[:, :PROMPT] = prompt
    slots, done = model.slots(prompt.shape[0]), 0
    for n in range(PROMPT, PROMPT + NEW):
        logits = model(text[:, done:n], slots, done)
        done = n
        text[:, n : n + 1] = pick(logits)
    return text


# %% run
torch.manual_seed(0)
model = Decoder().to(device, dtype).eval()
for r in range(ROUNDS):
    prompts = torch.randint(V, (ROWS, PROMPT), device=device)
    out = continue_text(model, prompts)
    print(f"round {r}: {out.shape[0]} texts, mean id {out.float().mean().item():.1f}")
