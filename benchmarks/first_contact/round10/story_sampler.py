"""Sample continuations of story prompts from a decoder-only language model."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

GPU = torch.cuda.is_available()


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--layers", type=int, default=12 if GPU else 2)
    p.add_argument("--dim", type=int, default=768 if GPU else 32)
    p.add_argument("--heads", type=int, default=12 if GPU else 2)
    p.add_argument("--vocab", type=int, default=32768 if GPU else 96)
    p.add_argument("--batch", type=int, default=64 if GPU else 2)
    p.add_argument("--prompt-len", type=int, default=64 if GPU else 8)
    p.add_argument("--max-len", type=int, default=512 if GPU else 24)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--top-k", type=int, default=50)
    p.add_argument("--temperature", type=float, default=0.9)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x, cache=None, start=0):
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        if cache is not None:
            cache[0, :, :, start : start + t] = k
            cache[1, :, :, start : start + t] = v
            k, v = cache[:, :, :, : start + t]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.tokens = nn.Embedding(args.vocab, args.dim)
        self.positions = nn.Embedding(args.max_len, args.dim)
        self.layers = nn.ModuleList([Layer(args.dim, args.heads) for _ in range(args.layers)])
        self.norm = nn.LayerNorm(args.dim)

    def make_caches(self, batch):
        a, w = self.args, self.tokens.weight
        shape = (2, batch, a.heads, a.max_len, a.dim // a.heads)
        return [torch.empty(shape, dtype=w.dtype, device=w.device) for _ in self.layers]

    def forward(self, ids, caches=None, start=0):
        """Logits of the token that follows the last one of `ids`."""
        x = self.tokens(ids) + self.positions.weight[start : start + ids.size(1)]
        for i, layer in enumerate(self.layers):
            x = layer(x, caches[i] if caches is not None else None, start)
        return self.norm(x[:, -1]) @ self.tokens.weight.T


def pick(logits, top_k, temperature):
    values, indices = torch.topk(logits.float() / temperature, top_k)
    noise = torch.empty_like(values).exponential_()
    choice = (F.softmax(values, -1) / noise).argmax(-1, keepdim=True)
    return indices.gather(1, choice)


@torch.inference_mode()
def continue_stories(model, prompts, args):
    batch, length = prompts.shape
    ids = torch.zeros(batch, args.max_len, dtype=torch.long, device=prompts.device)
    ids[:, :length] = prompts
    for end in range(length, args.max_len):
        logits = model(ids[:, :end])  # flaw: generation-without-cache
        ids[:, end : end + 1] = pick(logits, args.top_k, args.temperature)
    return ids


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if GPU else "cpu")
    dtype = torch.bfloat16 if GPU else torch.float32
    model = Decoder(args).to(device, dtype).eval()
    for number in range(args.rounds):
        prompts = torch.randint(args.vocab, (args.batch, args.prompt_len), device=device)
        stories = continue_stories(model, prompts, args)
        distinct = stories[:, args.prompt_len :].unique().numel()
        print(f"round {number}: {stories.shape[0]} stories, {distinct} different tokens")
    print("checksum", int(stories.sum()))


if __name__ == "__main__":
    main()
