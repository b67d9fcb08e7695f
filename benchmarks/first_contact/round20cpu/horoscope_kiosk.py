"""A kiosk that prints horoscopes: visitors queue with a prompt, a small language model writes for several at once."""
import collections
import time

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, HEADS, DEPTH = 1500, 192, 6, 4
PROMPT, LONGEST = 40, 104
VISITORS, AT_ONCE = 64, 8

Visit = collections.namedtuple("Visit", "ticket prompt")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Linear(3 * WIDTH, WIDTH)
        )

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = self.qkv(self.before(x)).view(rows, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # flaw: generation-without-cache
        x = x + self.out(y.transpose(1, 2).reshape(rows, length, WIDTH))
        return x + self.mlp(x)


class Stars(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, -1]))


def write(model, prompts):
    paper = prompts.new_zeros(len(prompts), LONGEST)
    paper[:, :PROMPT] = prompts
    for place in range(PROMPT, LONGEST):
        scores = model(paper[:, :place])  # flaw: generation-without-cache
        paper[:, place] = scores.argmax(1)
    return paper


def serve(model, queue):
    while queue:
        group = [queue.popleft() for _ in range(min(AT_ONCE, len(queue)))]
        began = time.perf_counter()
        papers = write(model, torch.stack([visit.prompt for visit in group]))
        took = time.perf_counter() - began
        for visit, paper in zip(group, papers):
            yield visit.ticket, paper[PROMPT:], took


def main():
    torch.manual_seed(12)
    model = Stars().eval()
    queue = collections.deque(
        Visit(f"A{number:03}", prompt) for number, prompt in enumerate(torch.randint(WORDS, (VISITORS, PROMPT)))
    )
    variety = 0
    with torch.inference_mode():
        for ticket, paper, took in serve(model, queue):
            variety += paper.unique().numel()
            if ticket.endswith("0"):
                print(f"{ticket}: {' '.join(map(str, paper[:6].tolist()))} ... ({took * 1e3:.0f} ms)")
    print(f"{variety / VISITORS:.1f} different words a paper")


if __name__ == "__main__":
    main()
