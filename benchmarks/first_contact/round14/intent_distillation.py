"""A small network learns what a large one knows about the intent of a request."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
WORDS, LENGTH, INTENTS, BATCH, STEPS = (100, 12, 6, 4, 4) if TINY else (12_000, 128, 160, 128, 900)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.f1, self.f2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.f2(F.gelu(self.f1(self.n2(x))))


class Reader(nn.Module):
    def __init__(self, width, depth, heads):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.places = nn.Parameter(torch.zeros(LENGTH, width))
        self.layers = nn.Sequential(*[Layer(width, heads) for _ in range(depth)])
        self.intent = nn.Linear(width, INTENTS)

    def forward(self, words):
        return self.intent(self.layers(self.words(words) + self.places).mean(1))


def main():
    torch.manual_seed(22)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    teacher = Reader(*((32, 2, 4) if TINY else (768, 10, 12))).to(device, torch.bfloat16).eval().requires_grad_(False)
    student = Reader(*((16, 1, 2) if TINY else (512, 6, 8))).to(device)
    optimizer = torch.optim.AdamW(student.parameters(), lr=5e-4, fused=True)
    for step in range(STEPS):
        words = torch.randint(WORDS, (BATCH, LENGTH), device=device)
        with torch.no_grad():
            known = F.softmax(teacher(words).float() / 2, dim=-1)
        with torch.autocast(device, dtype=torch.bfloat16):
            said = student(words)
        loss = F.cross_entropy(said.float() / 2, known)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"{step}: {loss.item():.4f}", flush=True)
    print(f"end: {loss.item():.4f}")


if __name__ == "__main__":
    main()
