# Continues short stories with a small GPT (weights would come from a checkpoint).
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1337)
device = "cuda" if torch.cuda.is_available() else "cpu"
on_gpu = device == "cuda"
dtype = torch.bfloat16 if on_gpu else torch.float32

n_layer, n_head, n_embd = (12, 16, 1024) if on_gpu else (2, 2, 32)
vocab_size = 50304 if on_gpu else 128
block_size = 512 if on_gpu else 48
batch_size = 32 if on_gpu else 2
prompt_len = 256 if on_gpu else 8
max_new_tokens = 192 if on_gpu else 16
num_batches = 4 if on_gpu else 2


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x, cache, start):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(n_embd, dim=2)
        q = q.view(B, T, n_head, C // n_head).transpose(1, 2)
        k = k.view(B, T, n_head, C // n_head).transpose(1, 2)
        v = v.view(B, T, n_head, C // n_head).transpose(1, 2)
        keys, values = cache
        keys[:, :, start : start + T] = k
        values[:, :, start : start + T] = v
        k, v = keys[:, :, : start + T], values[:, :, : start + T]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
        y = y.transpose(1, 2).reshape(B, T, C)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention()
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * n_embd, n_embd),
        )

    def forward(self, x, cache, start):
        x = x + self.attn(self.ln_1(x), cache, start)
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)
        for name, p in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * n_layer))

    def forward(self, idx, caches, start):
        T = idx.size(1)
        x = self.wte(idx) + self.wpe.weight[start : start + T]
        for block, cache in zip(self.h, caches, strict=True):
            x = block(x, cache, start)
        return self.lm_head(self.ln_f(x[:, -1]))

    @torch.inference_mode()
    def generate(self, prompt, temperature=0.9, top_k=50):
        start, end = prompt.size(1), prompt.size(1) + max_new_tokens
        idx = torch.zeros(prompt.size(0), end, dtype=torch.long, device=device)
        idx[:, :start] = prompt
        shape = (2, prompt.size(0), n_head, end, n_embd // n_head)
        caches = [torch.empty(shape, dtype=dtype, device=device) for _ in self.h]
        done = 0
        for t in range(start, end):
            logits = self(idx[:, done:t], caches, done).float() / temperature
            done = t
            values, choices = torch.topk(logits, top_k)
            probs = F.softmax(values, dim=-1)
            pick = torch.multinomial(probs, num_samples=1)
            idx[:, t] = choices.gather(1, pick).squeeze(1)
        return idx


with torch.device(device):
    model = GPT()
model.to(dtype).eval()

stories = []
for _ in range(num_batches):
    prompt = torch.randint(vocab_size, (batch_size, prompt_len), device=device)
    stories.append(model.generate(prompt))
print("tokens", tuple(torch.cat(stories).shape), "sum", torch.cat(stories).sum().item())
