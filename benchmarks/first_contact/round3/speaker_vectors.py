import os
import torch
from torch import nn
from torch.nn import functional as F

tiny = os.environ.get("SMALL") == "1"
MEL, WIDTH, LAYERS, FRAMES, CLIPS, ROUNDS = (16, 32, 2, 20, 2, 30) if tiny else (80, 768, 8, 300, 64, 100)


class FeedBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Voice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(MEL, WIDTH)
        self.blocks = nn.ModuleList(FeedBlock() for _ in range(LAYERS))
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, mel):
        x = self.inp(mel)
        for block in self.blocks:
            x = block(x)
        weight = self.score(x).softmax(1)
        return F.normalize((weight * x).sum(1), dim=-1), x


class Enrolment:
    """Running centroid for each speaker plus what was seen of them."""

    def __init__(self, speakers, device, dtype):
        self.centroid = torch.zeros(speakers, WIDTH, device=device, dtype=dtype)
        self.history = {}

    def add(self, number, who, vectors, frames):
        self.centroid.index_add_(0, who, vectors)
        self.history[number] = (who, frames)  # flaw: memory-growth

    def similarity(self, vectors):
        return vectors @ F.normalize(self.centroid, dim=-1).T


@torch.inference_mode()
def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(4)
    voice = Voice().to(device, torch.bfloat16).eval()
    book = Enrolment(512, device, torch.bfloat16)
    mels = torch.randn(10, CLIPS, FRAMES, MEL, device=device, dtype=torch.bfloat16)
    agree = torch.zeros((), device=device)
    for number in range(ROUNDS):
        who = torch.randint(512, (CLIPS,), device=device)
        vectors, frames = voice(mels[number % 10])
        book.add(number, who, vectors, frames)
        agree += (book.similarity(vectors).argmax(1) == who).float().mean()
    print(f"agreement {agree.item() / ROUNDS:.3f} over {len(book.history)} rounds")


main()
