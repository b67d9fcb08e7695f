"""Streaming decoder for chat requests, with a static key-value cache and early stop."""
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, LAYERS, MAX = 2000, 256, 8, 5, 160
requests = 14


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x, keys, values, at):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        keys[:, :, at:at + t] = k
        values[:, :, at:at + t] = v
        y = F.scaled_dot_product_attention(q, keys[:, :, :at + t], values[:, :, :at + t], is_causal=t > 1)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Chat(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(MAX, DIM)
        self.layers = nn.ModuleList(DecoderLayer() for _ in range(LAYERS))
        self.ln = nn.LayerNorm(DIM)

    def forward(self, ids, cache, at):
        x = self.tok(ids) + self.pos.weight[at:at + ids.shape[1]]
        for layer, (k, v) in zip(self.layers, cache):
            x = layer(x, k, v, at)
        return F.linear(self.ln(x[:, -1]), self.tok.weight)


@torch.inference_mode()
def answer(model, prompt, limit):
    b, t = prompt.shape
    shape = (b, HEADS, MAX, DIM // HEADS)
    cache = [(torch.empty(shape), torch.empty(shape)) for _ in model.layers]
    logits = model(prompt, cache, 0)
    produced = []
    done = torch.zeros(b, dtype=torch.bool)
    for at in range(t, limit):
        token = logits.argmax(-1)
        produced.append(token)
        done |= token == 2
        if len(produced) % 16 == 0 and bool(done.all()):
            break
        logits = model(token[:, None], cache, at)
    return torch.stack(produced, 1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(5)
    model = Chat().eval()
    gen = torch.Generator().manual_seed(5)
    for r in range(requests):
        prompt = torch.randint(3, VOCAB, (8, 48), generator=gen)
        text = answer(model, prompt, MAX)
        print(f"request {r}: {text.shape[1]} tokens, checksum {int(text.sum())}")
