"""Self-predictive representations from robot trajectories: a student chases a slowly moving copy of itself."""
import copy
import os

import torch
import torch.nn.functional as F
from torch import nn

small = bool(os.environ.get("SMALL"))
SENSORS, WIDTH, HEADS, LAYERS, HORIZON = (12, 32, 2, 2, 16) if small else (96, 384, 6, 12, 256)
BATCH, STEPS = (2, 30) if small else (64, 90)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.n2(x))


class Encoder(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(SENSORS, WIDTH), *[Block() for _ in range(LAYERS)], nn.LayerNorm(WIDTH))


class Dreamer(nn.Module):
    def __init__(self, decay=0.99):
        super().__init__()
        self.online = Encoder()
        self.slow = copy.deepcopy(self.online).requires_grad_(False)
        self.ahead = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.decay = decay

    def forward(self, path):
        guess = self.ahead(self.online(path[:, :-1]))
        with torch.no_grad():
            real = self.slow(path[:, 1:])
        return 1 - F.cosine_similarity(guess.float(), real.float(), dim=-1).mean()

    @torch.no_grad()
    def drift(self):
        for slow, fast in zip(self.slow.parameters(), self.online.parameters()):
            slow.data = self.decay * slow.data + (1 - self.decay) * fast.data  # flaw: parameter-loop


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(6)
    dreamer = Dreamer().to(device)
    optimizer = torch.optim.AdamW([p for p in dreamer.parameters() if p.requires_grad], lr=2e-4, fused=True)
    paths = torch.randn(16, BATCH, HORIZON + 1, SENSORS, device=device).cumsum(2) * 0.1
    history = []
    for step in range(STEPS):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = dreamer(paths[step % 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dreamer.drift()
        history.append(loss.detach())
    print("loss", torch.stack(history)[-10:].mean().item())


if __name__ == "__main__":
    main()
