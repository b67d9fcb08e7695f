"""A batched decoding session: prefill many chats, then decode token by token."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
DTYPE = torch.bfloat16 if CUDA else torch.float32

VOCAB = 32000 if CUDA else 100
DIM, HEADS, LAYERS = (1024, 16, 12) if CUDA else (32, 2, 2)
HEAD_DIM = DIM // HEADS
CHATS = 80 if CUDA else 2
PROMPT = 1024 if CUDA else 8
NEW_TOKENS = 512 if CUDA else 12
CONTEXT = PROMPT + NEW_TOKENS


class KVCache:
    """Keys and values of one layer."""

    def __init__(self, chats):
        shape = (chats, HEADS, 0, HEAD_DIM)  # flaw: cat-in-loop
        self.k = torch.empty(shape, device=DEVICE, dtype=DTYPE)
        self.v = torch.empty(shape, device=DEVICE, dtype=DTYPE)

    def append(self, k, v):
        self.k = torch.cat([self.k, k], dim=2)  # flaw: cat-in-loop
        self.v = torch.cat([self.v, v], dim=2)  # flaw: cat-in-loop
        return self.k, self.v  # flaw: cat-in-loop


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm = nn.RMSNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.wo = nn.Linear(DIM, DIM, bias=False)
        self.ffn_norm = nn.RMSNorm(DIM)
        self.up = nn.Linear(DIM, 4 * DIM, bias=False)
        self.down = nn.Linear(4 * DIM, DIM, bias=False)

    def forward(self, x, cache):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.attn_norm(x)).view(b, t, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        k, v = cache.append(k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.wo(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.ffn_norm(x))))


class ChatModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.position = nn.Embedding(CONTEXT, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids, caches, start):
        x = self.embed(ids) + self.position.weight[start : start + ids.shape[1]]
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return self.head(self.norm(x[:, -1]))


class Session:
    def __init__(self, model, chats):
        self.model = model
        self.caches = [KVCache(chats) for _ in range(LAYERS)]
        self.position = 0

    def feed(self, ids):
        logits = self.model(ids, self.caches, self.position)
        self.position += ids.shape[1]
        return logits.argmax(-1, keepdim=True)

    def stream(self, prompts, count):
        token = self.feed(prompts)
        for _ in range(count - 1):
            yield token
            token = self.feed(token)
        yield token


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    with torch.device(DEVICE):
        model = ChatModel().to(DTYPE).eval()
    prompts = torch.randint(VOCAB, (CHATS, PROMPT), device=DEVICE)
    session = Session(model, CHATS)
    replies = torch.empty(CHATS, NEW_TOKENS, dtype=torch.long, device=DEVICE)
    for i, token in enumerate(session.stream(prompts, NEW_TOKENS)):
        replies[:, i] = token[:, 0]
    print("tokens", replies.numel(), "checksum", int(replies.sum()))


if __name__ == "__main__":
    main()
