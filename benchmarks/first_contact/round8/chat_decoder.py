"""Serves batches of chat prompts with a decoder-only transformer: prefill once, then decode token by token."""

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BIG = DEVICE == "cuda"
DTYPE = torch.bfloat16 if BIG else torch.float32

LAYERS = 16 if BIG else 2
DIM = 2048 if BIG else 64
HEADS = 16 if BIG else 4
VOCAB = 32000 if BIG else 512
BATCH = 64 if BIG else 2
PROMPT = 1024 if BIG else 16
NEW_TOKENS = 160 if BIG else 12
REQUESTS = 4 if BIG else 2


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.keys = None
        self.values = None

    def reset(self):
        self.keys = self.values = None

    def forward(self, x, position):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.keys is None:
            self.keys, self.values = k, v
        else:
            self.keys = torch.cat((self.keys, k), dim=2)  # flaw: cat-in-loop
            self.values = torch.cat((self.values, v), dim=2)  # flaw: cat-in-loop
        y = F.scaled_dot_product_attention(q, self.keys, self.values, is_causal=t > 1)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, position):
        x = x + self.attn(self.norm1(x), position)
        return x + self.mlp(self.norm2(x))


class ChatModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, DIM)
        self.positions = nn.Embedding(PROMPT + NEW_TOKENS, DIM)
        self.blocks = nn.ModuleList(Block(DIM, HEADS) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def reset(self):
        for block in self.blocks:
            block.attn.reset()

    def forward(self, ids, position):
        steps = self.positions.weight[position : position + ids.shape[1]]
        x = self.tokens(ids) + steps
        for block in self.blocks:
            x = block(x, position)
        return self.head(self.norm(x[:, -1]))


class ChatService:
    def __init__(self, temperature=0.8):
        torch.manual_seed(0)
        with torch.device(DEVICE):
            self.model = ChatModel().to(DTYPE).eval()
        self.temperature = temperature

    def pick(self, logits):
        probs = torch.softmax(logits.float() / self.temperature, dim=-1)
        return torch.multinomial(probs, num_samples=1)

    @torch.inference_mode()
    def answer(self, prompts):
        self.model.reset()
        reply = torch.empty(prompts.shape[0], NEW_TOKENS, dtype=torch.long, device=DEVICE)
        token = self.pick(self.model(prompts, 0))
        for step in range(NEW_TOKENS):
            reply[:, step : step + 1] = token
            token = self.pick(self.model(token, PROMPT + step))
        return reply


def main():
    service = ChatService()
    checksum = torch.zeros((), dtype=torch.long, device=DEVICE)
    for _ in range(REQUESTS):
        prompts = torch.randint(VOCAB, (BATCH, PROMPT), device=DEVICE)
        checksum += service.answer(prompts).sum()
    print("checksum", int(checksum))


if __name__ == "__main__":
    main()
