"""Sample continuations of story openings from a small GPT."""

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
big = device == "cuda"
dtype = torch.bfloat16 if big else torch.float32
VOCAB, WIDTH, LAYERS, HEADS = (32000, 1024, 12, 16) if big else (512, 32, 2, 2)
STORIES, PROMPT, NEW = (384, 128, 128) if big else (4, 16, 12)
BLOCK = PROMPT + NEW


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x, past=None, start=0):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if past is not None:
            past[0][:, :, start : start + t] = k
            past[1][:, :, start : start + t] = v
            k, v = past[0][:, :, : start + t], past[1][:, :, : start + t]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return self.proj(y.transpose(1, 2).reshape(b, t, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, past=None, start=0):
        x = x + self.attn(self.ln_1(x), past, start)
        return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, WIDTH)
        self.wpe = nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def empty_cache(self, batch):
        shape = (batch, HEADS, BLOCK, WIDTH // HEADS)
        weight = self.head.weight
        return [(weight.new_empty(shape), weight.new_empty(shape)) for _ in self.blocks]

    def forward(self, idx, cache=None, start=0):
        """Logits of the token that follows idx; idx begins at position start."""
        x = self.wte(idx) + self.wpe.weight[start : start + idx.size(1)]
        for i, block in enumerate(self.blocks):
            x = block(x, None if cache is None else cache[i], start)
        return self.head(self.ln_f(x[:, -1]))


@torch.inference_mode()
def generate(model, prompts, new_tokens, temperature=0.8, top_k=40):
    batch, length = prompts.shape
    out = torch.empty(batch, length + new_tokens, dtype=torch.long, device=prompts.device)
    out[:, :length] = prompts
    for pos in range(length, length + new_tokens):
        logits = model(out[:, :pos]).float() / temperature  # flaw: generation-without-cache
        values, candidates = logits.topk(top_k, dim=-1)
        choice = torch.multinomial(F.softmax(values, dim=-1), 1)
        out[:, pos] = candidates.gather(1, choice).squeeze(1)
    return out


torch.manual_seed(1337)
with torch.device(device):
    model = GPT().to(dtype).eval()
prompts = torch.randint(0, VOCAB, (STORIES, PROMPT), device=device)
stories = generate(model, prompts, NEW)
print(f"{STORIES} stories of {stories.size(1)} tokens, mean id {stories.float().mean().item():.2f}")
