# %% Harpsichord codec: frames of 320 samples, 16 residual codebooks, decoded again
import time

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(21)
FRAME, WIDTH, CODE, BOOKS, WORDS = 320, 768, 32, 16, 512
CLIPS, FRAMES, STEPS = 16, 512, 700


# %% the strings: decaying plucked partials
def recordings(clips, frames):
    rng = torch.Generator(device=device).manual_seed(5)
    t = torch.arange(frames * FRAME, device=device) / 16000
    sound = torch.zeros(clips, frames * FRAME, device=device)
    for _ in range(10):
        pitch = 110 * 2 ** (torch.rand(clips, 1, generator=rng, device=device) * 3)
        start = torch.rand(clips, 1, generator=rng, device=device) * t[-1]
        age = (t - start).clamp(min=0)
        sound += torch.sin(6.2832 * pitch * age) * torch.exp(-4 * age) * (age > 0)
    return (sound / 3).view(clips, frames, FRAME)


# %% layers
class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Codebook(nn.Module):
    """Nearest neighbours, learned by moving averages. Words that nothing uses move to vectors of the batch."""

    def __init__(self, decay=0.98):
        super().__init__()
        self.decay = decay
        self.register_buffer("words", torch.randn(WORDS, CODE) * 0.3)
        self.register_buffer("usage", torch.ones(WORDS))
        self.register_buffer("sums", self.words.clone())
        self.register_buffer("one", torch.ones(1))

    def unused(self):
        return self.usage < 0.05

    @torch.no_grad()
    def learn(self, x, ids):
        seen = torch.zeros_like(self.usage).index_add_(0, ids, self.one.expand(len(ids)))
        moved = torch.zeros_like(self.sums).index_add_(0, ids, x)
        self.usage.lerp_(seen, 1 - self.decay)
        self.sums.lerp_(moved, 1 - self.decay)
        self.words.copy_(self.sums / self.usage.clamp(min=1e-3)[:, None])
        self.revive(x)

    def revive(self, x):
        gone = self.unused()
        self.words.copy_(torch.where(gone[:, None], x[: len(gone)], self.words))
        self.sums.copy_(torch.where(gone[:, None], self.words, self.sums))
        self.usage.masked_fill_(gone, 1.0)

    def forward(self, x):
        near = torch.addmm(self.words.square().sum(1), x, self.words.T, beta=-0.5)
        ids = near.argmax(1)
        picked = F.embedding(ids, self.words)
        if self.training:
            self.learn(x, ids)
        return picked


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(FRAME, WIDTH), *[Mix() for _ in range(6)], nn.Linear(WIDTH, CODE))
        self.books = nn.ModuleList(Codebook() for _ in range(BOOKS))
        self.decode = nn.Sequential(nn.Linear(CODE, WIDTH), *[Mix() for _ in range(6)], nn.Linear(WIDTH, FRAME))

    def forward(self, frames):
        z = self.encode(frames)
        with torch.no_grad():
            rest = flat = z.flatten(0, 1).float()
            for book in self.books:
                rest = rest - book(rest)
            coded = (flat - rest).view(z.shape)
        commit = F.mse_loss(z.float(), coded)
        return self.decode(z + (coded - z).detach()), commit


# %% train
clips = recordings(CLIPS * 8, FRAMES)
codec = Codec().to(device)
optimizer = torch.optim.AdamW(codec.parameters(), lr=3e-4, fused=True)
began = time.perf_counter()
for step in range(STEPS):
    batch = clips[step % 8 * CLIPS :][:CLIPS]
    with torch.autocast(device, dtype=torch.bfloat16):
        heard, commit = codec(batch)
        loss = F.l1_loss(heard, batch) + 0.25 * commit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 100 == 0:
        print(f"{step + 1} steps, loss {loss.item():.4f}, {(time.perf_counter() - began) / (step + 1) * 1e3:.2f} ms each")
