# Batched sampling from a GPT with a preallocated key/value cache and top-k sampling.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
on_gpu = torch.cuda.is_available()
device = torch.device("cuda" if on_gpu else "cpu")
vocab, width, depth, heads = (32768, 1280, 10, 20) if on_gpu else (64, 32, 2, 2)
batch, prompt, total, top_k, rounds = (256, 384, 768, 50, 4) if on_gpu else (2, 4, 9, 5, 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        shape = (batch, heads, total, width // heads)
        self.register_buffer("keys", torch.zeros(shape, dtype=torch.bfloat16), persistent=False)
        self.register_buffer("values", torch.zeros(shape, dtype=torch.bfloat16), persistent=False)

    def forward(self, x, start):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, heads, -1).permute(2, 0, 3, 1, 4)
        end = start + n
        self.keys[:, :, start:end] = k
        self.values[:, :, start:end] = v
        y = F.scaled_dot_product_attention(q, self.keys[:, :, :end], self.values[:, :, :end], is_causal=start == 0)
        return self.out(y.transpose(1, 2).reshape(b, n, width))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.attn = nn.LayerNorm(width), Attention()
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x, start):
        x = x + self.attn(self.ln1(x), start)
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(total, width)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, start):
        x = self.tokens(ids) + self.positions.weight[start : start + ids.shape[1]]
        for block in self.blocks:
            x = block(x, start)
        return self.head(self.norm(x[:, -1]))


def pick(logits, temperature=0.8):
    values, ids = logits.float().topk(top_k, dim=-1)
    gumbel = -torch.empty_like(values).exponential_().log()
    return ids.gather(-1, (values / temperature + gumbel).argmax(-1, keepdim=True))


@torch.inference_mode()
def write(model, prompts):
    ids = torch.empty(batch, total, dtype=torch.long, device=device)
    ids[:, :prompt] = prompts
    current, start = prompts, 0
    for position in range(prompt, total):
        current, start = pick(model(current, start)), position
        ids[:, position : position + 1] = current
    return ids


model = GPT().to(device, torch.bfloat16).eval()
for i in range(rounds):
    prompts = torch.randint(0, vocab, (batch, prompt), device=device)
    ids = write(model, prompts)
    print("round", i, "distinct tokens", ids[:, prompt:].unique().numel())
