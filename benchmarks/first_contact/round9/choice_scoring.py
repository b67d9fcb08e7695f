"""Score a language model on multiple-choice questions by the logits of the four answer letters."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

LETTERS = (319, 350, 315, 360)


def parse_args():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if gpu else "cpu")
    parser.add_argument("--vocab", type=int, default=128256 if gpu else 1024)
    parser.add_argument("--dim", type=int, default=1024 if gpu else 32)
    parser.add_argument("--depth", type=int, default=8 if gpu else 2)
    parser.add_argument("--heads", type=int, default=16 if gpu else 2)
    parser.add_argument("--window", type=int, default=512 if gpu else 32)
    parser.add_argument("--batch-size", type=int, default=64 if gpu else 4)
    parser.add_argument("--questions", type=int, default=64 * 120 if gpu else 24)
    return parser.parse_args()


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.wqkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm_a, self.norm_m = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = SelfAttention(dim, heads)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        x = x + self.attention(self.norm_a(x))
        return x + self.down(F.gelu(self.up(self.norm_m(x))))


class CausalLM(nn.Module):
    def __init__(self, vocab, dim, depth, heads, window):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(window, dim)
        self.layers = nn.ModuleList(DecoderLayer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        hidden = self.embed(ids) + self.position.weight[: ids.size(1)]
        for layer in self.layers:
            hidden = layer(hidden)
        return self.lm_head(self.norm(hidden))  # flaw: unused-logits


def make_questions(args):
    """Few-shot prompts, cut to the window: the question's last token is near its end."""
    g = torch.Generator(device=args.device).manual_seed(11)
    shape = (args.questions, args.window)
    ids = torch.randint(0, args.vocab, shape, generator=g, device=args.device)
    low = args.window - args.window // 16
    ends = torch.randint(low, args.window, shape[:1], generator=g, device=args.device)
    answers = torch.randint(0, 4, shape[:1], generator=g, device=args.device)
    return ids, ends, answers


@torch.inference_mode()
def evaluate(model, ids, ends, answers, batch_size):
    letters = torch.tensor(LETTERS, device=ids.device)
    correct = torch.zeros((), dtype=torch.long, device=ids.device)
    margin = torch.zeros((), device=ids.device)
    for lo in range(0, len(ids), batch_size):
        batch, end = ids[lo : lo + batch_size], ends[lo : lo + batch_size]
        truth = answers[lo : lo + batch_size]
        logits = model(batch)  # flaw: unused-logits
        last = logits[torch.arange(len(batch), device=ids.device), end].float()  # flaw: unused-logits
        scores = last.log_softmax(-1)[:, letters]
        correct += (scores.argmax(-1) == truth).sum()
        best = scores.topk(2, dim=-1).values
        margin += (best[:, 0] - best[:, 1]).sum()
    return correct.item() / len(ids), margin.item() / len(ids)


def main():
    args = parse_args()
    torch.manual_seed(0)
    dtype = torch.bfloat16 if args.device == "cuda" else torch.float32
    with torch.device(args.device):
        model = CausalLM(args.vocab, args.dim, args.depth, args.heads, args.window)
    model = model.to(dtype).eval()
    accuracy, margin = evaluate(model, *make_questions(args), args.batch_size)
    print(f"accuracy {accuracy:.4f}, mean margin {margin:.4f}")


if __name__ == "__main__":
    main()
