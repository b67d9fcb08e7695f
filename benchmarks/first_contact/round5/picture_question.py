"""Answer questions about pictures: patches and words in one sequence, answer from the first token."""
import os
from collections.abc import Iterator

import torch
from torch import Tensor, nn
import torch.nn.functional as F

FULL = os.environ.get("SMALL") != "1"
WIDTH, HEADS, LAYERS = (1024, 16, 6) if FULL else (32, 2, 2)
PATCHES, WORDS, BATCH, STEPS = (224, 31, 64, 60) if FULL else (9, 6, 3, 30)
ANSWERS, VOCAB = 3136, 4096


class JointLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pre, self.post = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.merge = nn.Linear(WIDTH, WIDTH)
        self.ff = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(self.pre(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.merge(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.ff(self.post(x))


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.see = nn.Linear(768, WIDTH)
        self.read = nn.Embedding(VOCAB, WIDTH)
        self.start = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.place = nn.Parameter(torch.randn(1 + PATCHES + WORDS, WIDTH) * 0.02)
        self.layers = nn.Sequential(*(JointLayer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.answer = nn.Linear(WIDTH, ANSWERS)

    def forward(self, patches: Tensor, words: Tensor) -> Tensor:
        seen, read = self.see(patches), self.read(words)
        x = torch.cat((self.start.expand(len(words), -1, -1), seen, read), dim=1) + self.place
        return self.answer(self.norm(self.layers(x)[:, 0]))


def questions(device: torch.device) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    patches = torch.randn(BATCH, PATCHES, 768, device=device, dtype=torch.bfloat16)
    words = torch.randint(VOCAB, (4, BATCH, WORDS), device=device)
    answers = torch.randint(ANSWERS, (4, BATCH), device=device)
    for i in range(STEPS):
        yield patches, words[i % 4], answers[i % 4]


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(55)
    reader = Reader().to(device)
    opt = torch.optim.AdamW(reader.parameters(), lr=1e-4, fused=True)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, 4e-4, total_steps=STEPS)
    kept: list[Tensor] = []
    for patches, words, answers in questions(device):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = F.cross_entropy(reader(patches, words), answers)
        opt.zero_grad()
        loss.backward()
        opt.step()
        plan.step()
        kept.append(loss.detach())
    first, last = torch.stack((kept[0], kept[-1])).tolist()
    print(f"loss {first:.3f} -> {last:.3f}")


if __name__ == "__main__":
    main()
